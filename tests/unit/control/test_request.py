"""A request is checked once, with everything that is wrong in one text, before submission and at the gate alike."""

from __future__ import annotations

from typing import Any

import pytest

from scheduler_core.errors import InvalidValue
from scheduler_core.model.job import JobSpec
from scheduler_core.model.queue import Queue
from voda_flows.config import Settings
from voda_flows.control.request import Asked, Limits, read_request
from voda_flows.control.steps import check_submission, remarks

LIMITS = Limits(
    settings=Settings(
        queues={"default": Queue(name="default"), "lab": Queue(name="lab", namespaces=("x",), max_priority=0)}
    ),
    gpus_by_type={"a100": 4, "v100": 2},
)


def asked(*, parallelism: int | None = None, started: bool = False, **inputs: str) -> Asked:
    """A training step with these parameters."""
    return Asked(
        workflow_uid="u",
        namespace="default",
        workflow="wf",
        parameters={"command": "python x.py"} | {name.replace("_", "-"): text for name, text in inputs.items()},
        parallelism=parallelism,
        started=started,
    )


def test_a_legal_request_becomes_a_spec() -> None:
    """Text becomes numbers, names of classes become values, and what is left out has its default."""
    spec = read_request(
        asked(min_gpus="2", max_gpus="4", gpus_per_worker="2", priority="high", gpu_type="a100"), LIMITS
    )

    assert spec == JobSpec(
        id="u/train",
        namespace="default",
        workflow="wf",
        name="train",
        submitted_s=0.0,
        min_gpus=2,
        max_gpus=4,
        gpus_per_worker=2,
        priority=100,
        gpu_type="a100",
    )


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"command": " "}, "expected command to be given, got none"),
        ({"min_gpus": "two"}, "expected min-gpus to be a whole number >= 1, got 'two'"),
        ({"min_gpus": "0"}, "expected min-gpus to be a whole number >= 1, got '0'"),
        ({"min_gpus": "1.5"}, "expected min-gpus to be a whole number >= 1, got '1.5'"),
        ({"retry_limit": "-1"}, "expected retry-limit to be a whole number >= 0, got '-1'"),
        ({"min_gpus": "3", "max_gpus": "2"}, "expected min-gpus <= max-gpus, got 3 and 2"),
        ({"num_gpus": "two"}, "expected num-gpus to be a whole number >= 1 or nothing, got 'two'"),
        ({"num_gpus": "0"}, "expected num-gpus to be a whole number >= 1 or nothing, got '0'"),
        (
            {"max_gpus": "4", "num_gpus": "5"},
            "expected num-gpus from min-gpus 1 to max-gpus 4 in multiples of gpus-per-worker 1, got 5",
        ),
        (
            {"min_gpus": "2", "max_gpus": "4", "gpus_per_worker": "2", "num_gpus": "3"},
            "expected num-gpus from min-gpus 2 to max-gpus 4 in multiples of gpus-per-worker 2, got 3",
        ),
        (
            {"gpu_sizes": "1,two"},
            "expected gpu-sizes to be GPU counts >= 1 joined by commas, each once, or powers-of-two, got '1,two'",
        ),
        ({"gpu_sizes": "2,2"}, "expected gpu-sizes to be GPU counts >= 1 joined by commas, each once"),
        ({"gpu_sizes": "0,1"}, "expected gpu-sizes to be GPU counts >= 1 joined by commas, each once"),
        (
            {"min_gpus": "5", "max_gpus": "7", "gpu_sizes": "powers-of-two"},
            "from min-gpus 5 to max-gpus 7 in multiples of gpus-per-worker 1, got 1,2,4,8,16,32,64,128,...",
        ),
        ({"max_gpus": "3", "gpus_per_worker": "2"}, "expected max-gpus in multiples of gpus-per-worker 2, got 3"),
        ({"workdir": "/voda/../etc"}, "expected workdir to be a path without '..', got '/voda/../etc'"),
        ({"gpu_type": "a10"}, "expected a gpu-type of this cluster, got 'a10'; did you mean 'a100'?"),
        ({"queue": "defualt"}, "expected a queue that exists, got 'defualt'; did you mean 'default'?"),
        ({"queue": "lab"}, "expected a namespace that queue 'lab' is open to, got 'default'"),
        ({"queue": "lab", "priority": "high"}, "expected a priority of at most 0 in queue 'lab', got 100"),
        ({"priority": "hihg"}, "expected priority to be a class or a whole number, got 'hihg'; did you mean 'high'?"),
        ({"job_name": "Train_1"}, "expected job-name of at most 63 lower-case letters, digits and '-', got 'Train_1'"),
        (
            {"volume": "../../x"},
            "expected volume to be a claim's name of lower-case letters, digits, '-' and '.', got '../../x'",
        ),
        ({"cpu_per_worker": "lots"}, "expected cpu-per-worker to be an amount such as 2, 500m or 4Gi, got 'lots'"),
        ({"memory_per_worker": ""}, "expected memory-per-worker to be an amount such as 2, 500m or 4Gi, got ''"),
        ({"memory_per_worker": "4GB"}, "expected memory-per-worker to be an amount such as 2, 500m or 4Gi, got '4GB'"),
        ({"launcher": "mpi"}, "expected launcher out of horovod, got 'mpi'"),
        ({"max_gpu": "4"}, "expected a parameter of voda-elastic-job, got 'max-gpu'; did you mean 'max-gpus'?"),
        (
            {"max_gpus": "4", "parallelism": 4},
            "expected the Workflow's parallelism to be at least 5 (max-gpus in workers, and a driver), got 4",
        ),
    ],
)
def test_what_is_not_legal_is_refused_by_name(changes: dict[str, Any], says: str) -> None:
    """Each message says what was expected, what was found, and for a typing error what is near."""
    with pytest.raises(InvalidValue, match=r"^job wf/") as refused:
        read_request(asked(**changes), LIMITS)

    assert says in str(refused.value)


def test_everything_wrong_is_said_at_once() -> None:
    """One look is enough to mend a request."""
    with pytest.raises(InvalidValue) as refused:
        read_request(asked(min_gpus="x", queue="y", priority="z"), LIMITS)

    assert str(refused.value).count("expected") == 3


def test_a_number_is_a_priority_too() -> None:
    """A class is only a name for a number."""
    assert read_request(asked(priority="-7"), LIMITS).priority == -7


def test_a_job_that_has_run_is_not_refused_any_more() -> None:
    """A queue taken away or a cluster become smaller does not kill what trains already."""
    assert read_request(asked(min_gpus="7", max_gpus="7", queue="gone", started=True), LIMITS).min_gpus == 7


def workflow(*steps: dict[str, Any], parameters: dict[str, str] | None = None) -> dict[str, Any]:
    """A Workflow that is one job, or whose steps call the job's template."""
    if parameters is not None:
        rows = [{"name": name, "value": text} for name, text in parameters.items()]
        spec: dict[str, Any] = {"workflowTemplateRef": {"name": "voda-elastic-job"}, "arguments": {"parameters": rows}}
    else:
        calls = [
            {
                "name": f"s{index}",
                "templateRef": {"name": "voda-elastic-job", "template": "job"},
                "arguments": {"parameters": [{"name": name, "value": text} for name, text in step.items()]},
            }
            for index, step in enumerate(steps)
        ]
        spec = {"templates": [{"name": "main", "steps": [calls]}]}
    return {"kind": "Workflow", "metadata": {"name": "wf"}, "spec": spec}


def test_submission_refuses_with_the_text_of_the_gate() -> None:
    """The same fault reads the same whether found before or after submission."""
    with pytest.raises(InvalidValue) as at_gate:
        read_request(asked(min_gpus="3", max_gpus="2"), LIMITS)
    for document in (
        workflow(parameters={"command": "python x.py", "min-gpus": "3", "max-gpus": "2"}),
        workflow({"command": "python x.py", "min-gpus": "3", "max-gpus": "2"}),
    ):
        with pytest.raises(InvalidValue) as before:
            check_submission(document, LIMITS)
        assert str(before.value) == str(at_gate.value)


def test_what_is_not_known_before_the_step_runs_is_left_to_the_gate() -> None:
    """Outputs of other steps have no value yet."""
    check_submission(workflow({"command": "x", "epochs": "{{steps.prepare.outputs.parameters.n}}"}), LIMITS)
    with pytest.raises(InvalidValue, match="epochs"):
        check_submission(workflow({"command": "x", "epochs": "many"}), LIMITS)


def test_two_training_steps_need_two_names() -> None:
    """A job is known by its Workflow and its name."""
    with pytest.raises(InvalidValue, match="job wf/train: expected a job-name that no other training step"):
        check_submission(workflow({"command": "x"}, {"command": "y"}), LIMITS)
    check_submission(workflow({"command": "x"}, {"command": "y", "job-name": "other"}), LIMITS)


def test_a_workflow_without_training_passes() -> None:
    """Other people's Workflows are none of our business."""
    check_submission({"kind": "Workflow", "metadata": {"name": "a"}, "spec": {"templates": [{"name": "x"}]}}, LIMITS)


@pytest.mark.parametrize(
    ("inputs", "said"),
    [
        ({"min-gpus": "7", "max-gpus": "7"}, "min-gpus is 7 and the cluster has 6: it waits until there are more"),
        ({"max-gpus": "9"}, "max-gpus is 9 and the cluster has 6: it gets 6 at most"),
        ({"max-gpus": "3", "gpu-type": "v100"}, "max-gpus is 3 and the cluster has 2 of v100: it gets 2 at most"),
        ({"max-gpus": "6"}, None),
        ({"max-gpus": "3", "gpu-type": "{{steps.a.outputs.result}}"}, None),
    ],
)
def test_sizes_that_the_cluster_does_not_have_are_remarked_on(inputs: dict[str, str], said: str | None) -> None:
    """They are legal, at submission and at the gate: nodes come and go."""
    document = workflow(parameters={"command": "x", **inputs})

    check_submission(document, LIMITS)

    assert remarks(document, LIMITS) == ([f"job wf/train: {said}"] if said else [])


def test_a_fault_has_the_path_of_the_parameter() -> None:
    """Of a step too, so that its line in the file is found."""
    document = workflow({"command": "x"}, {"command": "x", "job-name": "b", "epochs": "-1"})

    with pytest.raises(InvalidValue) as refused:
        check_submission(document, LIMITS)

    assert refused.value.path == "spec.templates[0].steps[0][1].arguments.parameters[2].value"


@pytest.mark.parametrize(
    ("own", "of_cluster", "found"),
    [
        ("", (), ()),
        ("1,2,8", (), (1, 2)),
        ("", (2, 4), (2, 4)),
        ("1, 4", (2, 4), (1, 4)),
        ("powers-of-two", (3,), (1, 2, 4)),
        ("1,2,3,4,5", (), ()),
    ],
    ids=["all", "cut to the bounds", "the cluster's", "its own before the cluster's", "powers", "no restriction"],
)
def test_sizes_and_the_number_asked_for_reach_the_core(
    own: str, of_cluster: tuple[int, ...], found: tuple[int, ...]
) -> None:
    """Its own sizes win over the cluster's; those beyond its bounds are left out."""
    limits = Limits(settings=Settings(gpu_sizes=of_cluster))

    spec = read_request(asked(max_gpus="4", gpu_sizes=own, num_gpus="4"), limits)

    assert (spec.gpu_sizes, spec.num_gpus) == (found, 4)


def test_a_setting_that_leaves_a_job_no_size_refuses_it_only_before_it_has_begun() -> None:
    """Whoever comes is told which list it is; who trains already goes on at any size."""
    limits = Limits(settings=Settings(gpu_sizes=(8,)))

    with pytest.raises(InvalidValue, match=r"expected one of the cluster's gpu_sizes .* from min-gpus 1 to max-gpus 4"):
        read_request(asked(max_gpus="4"), limits)
    assert read_request(asked(max_gpus="4", started=True), limits).gpu_sizes == ()

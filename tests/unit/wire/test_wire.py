"""Values of the core survive JSON, equal values give equal bytes, and what does not fit is refused with its path."""

from __future__ import annotations

import json
import re

import pytest

from scheduler_core.errors import InvalidValue
from scheduler_core.model.allocation import Allocation
from scheduler_core.model.cluster import Cluster, Node
from scheduler_core.model.decision import CycleResult, Decision, DecisionKind
from scheduler_core.model.job import Job, JobPhase, JobSpec, Progress, Worker, WorkerPhase
from scheduler_core.model.observation import Observation
from scheduler_core.model.placement import Placement
from scheduler_core.model.plan import (
    Abandon,
    Announce,
    Evict,
    Grant,
    Grow,
    NewWorker,
    Plan,
    Publish,
    Refuse,
    Release,
    Stop,
)
from scheduler_core.model.queue import Queue
from scheduler_core.model.target import Target
from voda_flows.wire import (
    AllocationDocument,
    DocumentWorker,
    document_text,
    from_json,
    gate_workers_text,
    read_document,
    read_gate_workers,
    to_json,
    worker_shown,
)

WORKER = NewWorker(id="w0", node="n0", gpus=1)
JOB = Job(
    spec=JobSpec(
        id="u/train", namespace="default", workflow="a", name="train", submitted_s=1.5, min_gpus=1, max_gpus=4
    ),
    phase=JobPhase.RUNNING,
    workers=(Worker(id="w0", node="n0", gpus=1, phase=WorkerPhase.READY, address="127.1.0.5", since_s=2.25),),
    published=("w0",),
    generation=3,
    started_s=2.0,
    granted_s=None,
    progress=Progress(epoch=1, samples_per_s=0.1),
)
OBSERVATION = Observation(
    now_s=1e9 + 1 / 3,
    cluster=Cluster(nodes=(Node(name="n0", gpus=2, labels={"rack": "r1"}, foreign_gpus=1),), levels=("rack",)),
    jobs=(JOB,),
    queues={"default": Queue(name="default", nominal_gpus={"a100": 2}, namespaces=("x",), max_priority=None)},
    refused={"u/other": "expected ..."},
    speed_by_job={"u/train": (0.0, 1.5)},
)
TARGET = Target(
    decision=3,
    decided_s=2.5,
    digest="d",
    allocation=Allocation(gpus_by_job={"u/train": 2}),
    placement=Placement(workers_by_job={"u/train": {"n0": 2}}),
    reasons={"u/train": "has 2"},
)
PLAN = Plan(
    actions=(
        Stop(job_id="u/train", segment=0, generation=4, reason="preempted"),
        Evict(job_id="u/train", segment=0, worker_id="w1", reason="late"),
        Abandon(job_id="u/train", segment=0, role="driver", reason="late"),
        Release(job_id="u/train", segment=0),
        Publish(job_id="u/train", segment=0, generation=4, worker_ids=("w0",)),
        Grant(job_id="u/train", segment=0, workers=(WORKER,)),
        Grow(job_id="u/train", segment=0, workers=(WORKER,)),
        Refuse(job_id="u/train", reason="no"),
        Announce(job_id="u/train", message="queued"),
    )
)


@pytest.mark.parametrize(
    "value",
    [
        OBSERVATION,
        TARGET,
        PLAN,
        Decision(target=TARGET, kind=DecisionKind.FULL, disturbed=("u/train",)),
        CycleResult(
            observation=OBSERVATION,
            decision=Decision(target=TARGET, kind=DecisionKind.KEPT),
            plan=PLAN,
            done=PLAN.actions,
        ),
    ],
    ids=lambda value: type(value).__name__,
)
def test_a_value_survives_json(value: object) -> None:
    """Reading what was written gives an equal value, and writing that gives the same bytes."""
    text = to_json(value)
    read = from_json(text, type(value))

    assert read == value
    assert to_json(read) == text


def test_the_order_of_entries_leaves_no_trace() -> None:
    """Equal mappings give equal bytes, however they were built."""
    one = Target(reasons={"a": "1", "b": "2"})
    other = Target(reasons={"b": "2", "a": "1"})

    assert to_json(one) == to_json(other)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"now_s": "noon"}, "$.now_s: expected float, got 'noon'"),
        ({"jobs": [{"spec": {}}]}, "$.jobs[0]: expected the field 'phase' of Job, it is missing"),
        ({"cluster": {"nodes": [{"name": "n", "gpus": True}]}}, "$.cluster.nodes[0].gpus: expected int, got True"),
        ({"jobz": []}, "$: expected fields of Observation, got 'jobz'"),
        ({"cluster": None}, "$.cluster: expected dict, got None"),
    ],
)
def test_what_does_not_fit_is_refused_with_its_path(change: dict[str, object], says: str) -> None:
    """A fault is found by the place it stands at."""
    body = json.loads(to_json(OBSERVATION))
    body["value"] |= change

    with pytest.raises(InvalidValue) as refused:
        from_json(json.dumps(body), Observation)

    assert says in str(refused.value)


def test_a_phase_and_an_action_that_nobody_knows_are_refused() -> None:
    """Enumerations and action names are closed."""
    text = to_json(OBSERVATION).replace('"phase":"Running"', '"phase":"Jogging"')
    with pytest.raises(InvalidValue, match=r"\$\.jobs\[0\]\.phase: expected one of Queued"):
        from_json(text, Observation)
    with pytest.raises(InvalidValue, match=r"\$\.actions\[3\]: expected an action out of"):
        from_json(to_json(PLAN).replace("Release", "Free"), Plan)


@pytest.mark.parametrize(
    "text", ["", "[]", "{}", '{"kind":"Target","version":2,"value":{}}', '{"kind":"Plan","version":1}']
)
def test_another_kind_or_a_newer_version_is_refused(text: str) -> None:
    """A file of something else, or of a later Voda, is never half understood."""
    with pytest.raises(InvalidValue):
        from_json(text, Target)


def test_the_allocation_document_is_the_contracts() -> None:
    """The text is what the contract shows, key by key, and reads back."""
    worker = DocumentWorker(id="w0", role="worker", address="127.1.0.5", node="n0", slots=1)
    document = AllocationDocument(
        job="u/train", driver_uid="d", segment=0, generation=3, min_workers=1, workers=(worker,)
    )

    assert json.loads(document_text(document)) == {
        "version": 1,
        "job": "u/train",
        "driver_uid": "d",
        "segment": 0,
        "generation": 3,
        "min_workers": 1,
        "workers": [{"id": "w0", "role": "worker", "address": "127.1.0.5", "node": "n0", "slots": 1}],
        "stop": None,
    }
    assert read_document(document_text(document)) == document
    assert read_document("") is None
    assert read_document('{"version": 1}') is None


@pytest.mark.parametrize("gpus", [1, 16])
@pytest.mark.parametrize("node", ["n0", "ip-10-0-1-2.eu-central-1.compute.internal", "a" * 57 + "-.b", "a" * 253, "ü"])
def test_what_a_worker_is_called_is_to_argos_liking(node: str, gpus: int) -> None:
    """A display name that does not match Argo's rule would fail the worker's node."""
    shown = worker_shown(NewWorker(id="w12", node=node, gpus=gpus))

    assert re.fullmatch(r"[a-zA-Z0-9][a-zA-Z0-9-.]{0,61}[a-zA-Z0-9]", shown)
    assert shown.startswith("w12-on")


def test_a_gates_workers_are_text() -> None:
    """Argo's parameters are text, so every field is."""
    text = gate_workers_text((WORKER, NewWorker(id="w1", node="n1", gpus=2)))

    assert json.loads(text) == [
        {"id": "w0", "node": "n0", "gpus": "1", "shown": "w0-on-n0"},
        {"id": "w1", "node": "n1", "gpus": "2", "shown": "w1-on-n1-2gpus"},
    ]
    assert read_gate_workers(text) == (WORKER, NewWorker(id="w1", node="n1", gpus=2))
    with pytest.raises(InvalidValue, match="gate output workers"):
        read_gate_workers('[{"id": "w0"}]')

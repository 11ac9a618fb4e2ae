"""The model's values: checked where they are made, totally ordered, and their laws name what is wrong."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from scheduler_core.errors import InvalidValue, LawBroken
from scheduler_core.model.allocation import Allocation
from scheduler_core.model.cluster import Cluster, Node
from scheduler_core.model.job import WorkerPhase
from scheduler_core.model.observation import Observation
from scheduler_core.model.params import Params
from scheduler_core.model.placement import Placement
from scheduler_core.model.plan import Grant, Grow, NewWorker, Plan, Publish, Stop
from scheduler_core.model.units import Resources
from tests.unit.core.builders import cluster, queued, running, seen, spec, workers


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: spec("a", (0, 1)), "job 'a': expected 1 <= min-gpus <= max-gpus, got 0 and 1"),
        (lambda: spec("a", (3, 2)), "job 'a': expected 1 <= min-gpus <= max-gpus, got 3 and 2"),
        (lambda: spec("a", gpus_per_worker=0), "job 'a': expected gpus-per-worker >= 1, got 0"),
        (
            lambda: spec("a", (1, 4), gpus_per_worker=2),
            "job 'a': expected min-gpus and max-gpus in multiples of gpus-per-worker 2, got 1 and 4",
        ),
        (lambda: Node(name="n0", gpus=-1), r"node 'n0': expected GPU counts >= 0, got \(-1, 0, 0\)"),
        (
            lambda: Cluster(nodes=(Node(name="n0", gpus=1), Node(name="n0", gpus=2))),
            r"cluster: expected unique node names, got \['n0', 'n0'\]",
        ),
        (
            lambda: seen(cluster(1), queued(spec("a")), queued(spec("a"))),
            r"observation: expected unique job ids, got \['a', 'a'\]",
        ),
        (lambda: Params(decide_interval_s=-1), "decide_interval_s: expected >= 0 seconds, got -1"),
        (lambda: Params(start_limit_s=0), "start_limit_s: expected > 0 seconds, got 0"),
    ],
)
def test_a_value_that_breaks_a_rule_is_refused(make: Callable[[], object], message: str) -> None:
    """With what was expected, what was found, and where."""
    with pytest.raises(InvalidValue, match=message):
        make()


def test_resources_are_compared_one_by_one() -> None:
    """A request fits only where all of it fits."""
    free = Resources(gpus=2, cpu_milli=1_000, memory_bytes=10)

    assert Resources(gpus=1, cpu_milli=500) * 2 == Resources(gpus=2, cpu_milli=1_000)
    assert (Resources(gpus=1) * 2).fits_in(free)
    assert not Resources(gpus=1, memory_bytes=11).fits_in(free)
    assert free - Resources(gpus=3) == Resources(gpus=-1, cpu_milli=1_000, memory_bytes=10)


def test_the_topology_says_how_near_two_nodes_are() -> None:
    """Levels shared from the outermost; a node without a label stands alone on that level."""
    one, near, far, bare = (
        Node(name="n0", gpus=1, labels={"zone": "a", "rack": "x"}),
        Node(name="n1", gpus=1, labels={"zone": "a", "rack": "x"}),
        Node(name="n2", gpus=1, labels={"zone": "a", "rack": "y"}),
        Node(name="n3", gpus=1),
    )
    nodes = Cluster(nodes=(bare, far, near, one), levels=("zone", "rack"))

    assert [node.name for node in nodes.nodes] == ["n0", "n1", "n2", "n3"]
    assert [nodes.common_levels(one, other) for other in (one, near, far, bare)] == [3, 2, 1, 0]


def test_gpus_are_held_until_a_pod_has_ended() -> None:
    """Promised and terminating workers count, ended ones and those on nodes that are gone do not."""
    job = running(spec("a", (1, 8)), "n0")
    more = (
        *workers("n0", phase=WorkerPhase.GRANTED, first=1),
        *workers("n1", phase=WorkerPhase.LEAVING, first=2),
        *workers("n1", phase=WorkerPhase.ENDED, first=3),
        *workers("gone", first=4),
    )
    nodes = Cluster(nodes=(*cluster(3, 2).nodes, Node(name="n2", gpus=2, foreign_gpus=1)))
    observation = seen(nodes, job.replace(workers=(*job.workers, *more)))

    assert observation.held_gpus() == {"n0": 2, "n1": 1, "n2": 0}
    assert observation.free_gpus() == {"n0": 1, "n1": 1, "n2": 1}


@pytest.mark.parametrize(
    ("gpus_by_job", "message"),
    [
        ({"a": 1}, r"job 'a': expected 0 or 2\.\.4 GPUs in multiples of 2, got 1 \(policy test\)"),
        ({"a": 3}, r"job 'a': expected 0 or 2\.\.4 GPUs in multiples of 2, got 3 \(policy test\)"),
        ({"a": 6}, r"job 'a': expected 0 or 2\.\.4 GPUs in multiples of 2, got 6 \(policy test\)"),
        ({"z": 1}, r"job 'z': expected only jobs that were asked about \(policy test\)"),
        ({"a": 4, "b": 1}, r"expected at most 4 GPUs in all, got 5 \(policy test\)"),
    ],
)
def test_an_allocation_that_breaks_the_law_is_named(gpus_by_job: dict[str, int], message: str) -> None:
    """Job, bounds, what was given and by whom."""
    specs = [spec("a", (2, 4), gpus_per_worker=2), spec("b")]

    with pytest.raises(LawBroken, match=message):
        Allocation(gpus_by_job=gpus_by_job).check(specs, 4, by="test")


def test_a_size_that_a_job_may_not_have_breaks_the_law() -> None:
    """Though it lies between its bounds."""
    specs = [spec("a", (1, 4), gpu_sizes=(1, 2, 4))]

    assert Allocation(gpus_by_job={"a": 4}).check(specs, 4, by="test").total_gpus == 4
    with pytest.raises(LawBroken, match=r"job 'a': expected 0 or a size of 1, 2, 4, got 3 GPUs \(policy test\)"):
        Allocation(gpus_by_job={"a": 3}).check(specs, 4, by="test")


@pytest.mark.parametrize(
    ("placement", "message"),
    [
        (Placement(workers_by_job={"a": {"n0": 1}}), r"job 'a': expected 2 workers placed, got \{'n0': 1\}"),
        (Placement(unplaced={"a": "no room"}, workers_by_job={"a": {"n0": 1}}), "job 'a': expected 0 workers placed"),
        (
            Placement(workers_by_job={"a": {"n0": 2}, "b": {"n0": 1}}),
            r"expected only allocated jobs placed, got \['b'\]",
        ),
        (Placement(workers_by_job={"a": {"n1": 2}}), "node 'n1': expected at most 1 GPUs, got 2"),
    ],
)
def test_a_placement_that_breaks_the_law_is_named(placement: Placement, message: str) -> None:
    """Every allocated worker exactly once, no node over capacity."""
    with pytest.raises(LawBroken, match=message):
        placement.check(Allocation(gpus_by_job={"a": 2}), [spec("a", (2, 2))], {"n0": 4, "n1": 1})


def new(name: str, node: str = "n0", gpus: int = 1) -> NewWorker:
    """A worker to be granted."""
    return NewWorker(id=name, node=node, gpus=gpus)


def publish(generation: int, *ids: str) -> Publish:
    """A document of job a."""
    return Publish(job_id="a", segment=0, generation=generation, worker_ids=ids)


STOP = Stop(job_id="a", segment=0, generation=2, reason="")


@pytest.mark.parametrize(
    ("actions", "message"),
    [
        ((Grant(job_id="b", segment=0, workers=(new("w0"), new("w0"))),), r"new workers with ids not used before, got"),
        (
            (Grow(job_id="a", segment=0, workers=(new("w1"),)),),
            r"job 'a': expected new workers with ids not used before",
        ),
        ((Grant(job_id="b", segment=0, workers=(new("w0", gpus=2),)),), "job 'b': expected workers of 1 GPUs"),
        ((Grant(job_id="b", segment=0, workers=(new("w0"),)),), r"job 'b': expected 2\.\.2 GPUs granted, got 1"),
        (
            (Grow(job_id="a", segment=0, workers=(new("w3", "n1"), new("w4", "n1"))),),
            "node 'n1': expected claims of free",
        ),
        ((publish(3, "w0", "w1", "w2"),), "job 'a': expected one document of generation 2"),
        ((STOP, STOP), "job 'a': expected one document of generation 2"),
        ((STOP, publish(2, "w0")), "job 'a': expected one document of generation 2"),
        ((publish(2, "w0", "w2"),), r"job 'a': expected workers only added or only dropped, got \['w0', 'w1'\]"),
        ((publish(2, "w0", "w1", "w2"),), r"job 'a': expected only ready workers to be added, got \['w2'\]"),
        ((publish(2, "w0", "w1", "w9"),), r"job 'a': expected only ready workers to be added, got \['w9'\]"),
        ((publish(2, "w0"),), "job 'a': expected at least 2 GPUs in the document, got 1"),
    ],
)
def test_a_plan_that_breaks_the_law_is_named(actions: tuple[Grant | Grow | Publish | Stop, ...], message: str) -> None:
    """Claims fit what is free, ids are new, one document at a time, only ready workers, never below the minimum."""
    job = running(spec("a", (2, 8)), "n0", "n0")
    job = job.replace(workers=(*job.workers, *workers("n0", first=2, phase=WorkerPhase.RUNNING)))
    observation: Observation = seen(cluster(8, 1), job, queued(spec("b", (2, 2))))

    with pytest.raises(LawBroken, match=message):
        Plan(actions=actions).check(observation)

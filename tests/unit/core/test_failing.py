"""Workers that fail soon after their start: growth waits longer each time, and their nodes are avoided for a while."""

from __future__ import annotations

from dataclasses import replace

import pytest

from scheduler_core.cycle import decide
from scheduler_core.diff import diff
from scheduler_core.estimate.failing import AVOID_S, avoided_nodes, failed_growths, grows_from_s
from scheduler_core.model.job import Job, WorkerFailure, WorkerPhase
from scheduler_core.model.params import Params
from scheduler_core.model.plan import Grow, NewWorker
from scheduler_core.model.target import Target
from tests.unit.core.builders import NOW_S, aimed, cluster, queued, running, seen, spec, workers

PARAMS = Params()
LIMIT_S = PARAMS.start_limit_s


def failure(ended_s: float, node: str = "n1", worker: str = "w1", lived_s: float = 2.0) -> WorkerFailure:
    """A worker that failed."""
    return WorkerFailure(worker=worker, node=node, started_s=ended_s - lived_s, ended_s=ended_s)


def growing(*failures: WorkerFailure) -> Job:
    """A job of 1..2 that trains on n0 alone."""
    return running(spec("a", (1, 2)), "n0", failures=failures)


@pytest.mark.parametrize(
    ("failures", "from_s"),
    [
        ((), 0.0),
        ((failure(NOW_S),), 0.0),
        ((failure(NOW_S - 10), failure(NOW_S)), NOW_S + 10),
        ((failure(NOW_S - 40), failure(NOW_S - 20), failure(NOW_S)), NOW_S + 20),
        (tuple(failure(NOW_S - 10 * age) for age in range(20, -1, -1)), NOW_S + 300),
        ((failure(NOW_S, worker="w1"), failure(NOW_S, "n2", worker="w2")), 0.0),
        ((failure(NOW_S - 10, lived_s=LIMIT_S + 31), failure(NOW_S, lived_s=LIMIT_S + 31)), 0.0),
    ],
    ids=["none", "the first is free", "two", "three", "at most five minutes", "one growth of two", "long lives"],
)
def test_growth_waits_longer_after_each_failure(failures: tuple[WorkerFailure, ...], from_s: float) -> None:
    """10 s after the second in a row, then 20, ...; those of one growth count once, one that had worked does not."""
    assert grows_from_s(growing(*failures), NOW_S, LIMIT_S) == from_s


def test_a_grown_worker_that_trains_for_a_minute_ends_the_row() -> None:
    """Growing works again: the next loss is replaced at once."""
    job = growing(failure(NOW_S - 90), failure(NOW_S - 80))
    grown = replace(workers("n1", first=3)[0], since_s=NOW_S - 70.0)
    healthy = job.replace(workers=(*job.workers, grown), published=("w0", "w3"))

    assert failed_growths(job, NOW_S, LIMIT_S) == 2
    assert failed_growths(healthy, NOW_S, LIMIT_S) == 0
    assert failed_growths(healthy, NOW_S - 11, LIMIT_S) == 2, "not yet for a minute"


def test_nothing_is_grown_before_its_time() -> None:
    """The plan waits, and grows when the time is over."""
    job = growing(failure(NOW_S - 10), failure(NOW_S))
    world, target = seen(cluster(1, 1), job), aimed({"a": {"n0": 1, "n1": 1}}, job)

    assert diff(world, target, PARAMS).actions == ()
    assert diff(replace(world, now_s=NOW_S + 10), target, PARAMS).actions == (
        Grow(job_id="a", segment=0, workers=(NewWorker(id="w1", node="n1", gpus=1),)),
    )


def test_a_node_is_avoided_for_a_while_unless_a_worker_is_ready_there() -> None:
    """A node on which others of the job train is no bad node; in time each is tried again."""
    job = growing(failure(NOW_S, "n1"), failure(NOW_S, "n0"))
    warming = job.replace(workers=workers("n0", phase=WorkerPhase.RUNNING))

    assert avoided_nodes(job, NOW_S, LIMIT_S) == ("n1",)
    assert avoided_nodes(warming, NOW_S, LIMIT_S) == ("n0", "n1")
    assert avoided_nodes(job, NOW_S + AVOID_S, LIMIT_S) == ()


def test_the_next_worker_goes_to_another_node() -> None:
    """The decision is made anew, even within the rate limit, and nobody else is moved."""
    job, other = growing(), running(spec("b", submitted_s=1.0), "n2")
    target = decide(seen(cluster(1, 1, 1, 1), job, other), Target(), PARAMS).target
    assert target.placement.workers_by_job == {"a": {"n0": 1, "n1": 1}, "b": {"n2": 1}}
    failed = seen(cluster(1, 1, 1, 1), growing(failure(NOW_S)), other, now_s=NOW_S + 1)

    decision = decide(failed, replace(target, disturbed_s=NOW_S), PARAMS)

    assert decision.target.placement.workers_by_job == {"a": {"n0": 1, "n3": 1}, "b": {"n2": 1}}


def test_a_waiting_job_is_not_put_on_the_node_that_failed_it_unless_there_is_no_other() -> None:
    """Below its minimum it came to a new gate: the tightest fit would be the same node again."""
    job = queued(spec("a", (2, 2)), segment=1, failures=(failure(NOW_S, "n0"),))

    there = decide(seen(cluster(2, 4), job), Target(), PARAMS).target
    full = decide(seen(cluster(2), job), Target(), PARAMS).target
    before = decide(seen(cluster(2, 4), job.replace(failures=())), Target(), PARAMS).target

    assert there.placement.workers_by_job == {"a": {"n1": 2}}
    assert full.placement.workers_by_job == {"a": {"n0": 2}}
    assert before.placement.workers_by_job == {"a": {"n0": 2}}

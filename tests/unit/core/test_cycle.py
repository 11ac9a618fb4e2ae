"""One round: save before acting, conflicts end one job's actions only, and a plan that breaks a law is not enforced."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest

from scheduler_core.cycle import run_cycle
from scheduler_core.errors import Conflict
from scheduler_core.model.decision import DecisionKind
from scheduler_core.model.job import WorkerPhase
from scheduler_core.model.observation import Observation
from scheduler_core.model.params import Params
from scheduler_core.model.plan import Action, Grant, NewWorker, Plan
from scheduler_core.model.target import Target
from tests.unit.core.builders import cluster, queued, running, seen, spec, workers
from tests.unit.core.world import World


@dataclass(kw_only=True)
class Fixed:
    """A world that shows one observation and takes note of what it is told, in order."""

    observation: Observation
    target: Target = Target()
    refusing: frozenset[str] = frozenset()
    stored_by_another: bool = False
    told: list[object] = field(default_factory=list)

    def observe(self) -> Observation:
        """The one observation."""
        return self.observation

    def load(self) -> Target:
        """The stored target."""
        return self.target

    def save(self, target: Target) -> None:
        """Note it, unless somebody else was quicker."""
        if self.stored_by_another:
            raise Conflict("target: stored by another scheduler")
        self.told.append(target.decision)
        self.target = target

    def enforce(self, action: Action) -> None:
        """Note it, unless its job moved meanwhile."""
        if action.job_id in self.refusing:
            raise Conflict(f"job {action.job_id!r}: changed")
        self.told.append(action)


def grant(job_id: str, node: str) -> Grant:
    """One worker on this node."""
    return Grant(job_id=job_id, segment=0, workers=(NewWorker(id="w0", node=node, gpus=1),))


def two_waiting() -> Observation:
    """Two jobs of one GPU, and room for both."""
    return seen(cluster(1, 1), queued(spec("a")), queued(spec("b")))


def test_the_target_is_stored_before_anything_is_done() -> None:
    """A scheduler that dies in between goes on from the target."""
    world = Fixed(observation=two_waiting())

    result = run_cycle(world, world, world, Params())

    assert world.told == [1, grant("a", "n0"), grant("b", "n1")]
    assert result.done == (grant("a", "n0"), grant("b", "n1"))
    assert (result.conflicts, result.fault, result.decision.kind) == ({}, "", DecisionKind.FULL)


def test_an_unchanged_target_is_not_stored_again() -> None:
    """The second round on the same world writes no target and, as the world did not move, acts again."""
    world = Fixed(observation=two_waiting())
    run_cycle(world, world, world, Params())
    world.told.clear()

    result = run_cycle(world, world, world, Params())

    assert result.decision.kind is DecisionKind.KEPT
    assert world.told == [grant("a", "n0"), grant("b", "n1")]


def test_a_conflict_ends_that_jobs_actions_only() -> None:
    """The other job is granted; the next round looks again."""
    world = Fixed(observation=two_waiting(), refusing=frozenset({"a"}))

    result = run_cycle(world, world, world, Params())

    assert result.done == (grant("b", "n1"),)
    assert dict(result.conflicts) == {"a": "job 'a': changed"}


def test_a_scheduler_whose_target_was_replaced_does_nothing() -> None:
    """Another one decides now."""
    world = Fixed(observation=two_waiting(), stored_by_another=True)

    with pytest.raises(Conflict, match="stored by another scheduler"):
        run_cycle(world, world, world, Params())

    assert world.told == []


def test_a_plan_that_breaks_a_law_is_not_enforced() -> None:
    """A world that cannot be (a ready worker of two GPUs for a job of one) is fenced; the fault says what is wrong."""
    strange = running(spec("a", (1, 4)), "n0")
    strange = strange.replace(workers=(*strange.workers, *workers("n0", gpus=1, first=0)))
    world = Fixed(observation=seen(cluster(4), strange.replace(published=(), generation=0, acknowledged=0)))

    result = run_cycle(world, world, world, Params())

    assert (result.plan, result.done) == (Plan(), ())
    assert result.fault.startswith("LawBroken: job 'a': expected every worker at most once in the document")


def test_a_round_without_news_does_nothing() -> None:
    """A world at rest: kept, no action, nothing stored."""
    world = World(cluster=cluster(2))
    world.submit(spec("a", (1, 2)))
    for _ in range(4):
        run_cycle(world, world, world, Params())
        world.settle()
    stored = world.target

    result = run_cycle(world, world, world, Params())

    assert (result.decision.kind, result.plan, world.target) == (DecisionKind.KEPT, Plan(), stored)
    assert [worker.phase for worker in world.jobs["a"].workers] == [WorkerPhase.READY] * 2

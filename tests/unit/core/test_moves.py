"""The planner of moves, one small board per rule: whole plans, written as ``job+node`` and ``job-node``."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from scheduler_core.converging.board import Stand, StepKind
from scheduler_core.converging.moves import Moves, moves

_SIGNS = {StepKind.ADD: "+", StepKind.DROP: "-", StepKind.RESTART: "!"}


def stand(job_id: str, here: Mapping[str, int], want: Mapping[str, int], least: int, size: int = 1) -> Stand:
    """A job that is to go from here to there, with so many workers at least."""
    return Stand(job_id=job_id, gpus_per_worker=size, min_workers=least, here=here, want=want)


def told(plan: Moves) -> list[str]:
    """The plan's steps."""
    return [
        f"{step.job_id}{_SIGNS[step.kind]}{','.join(f'{node}*{count}' for node, count in step.workers.items())}"
        for step in plan.steps
    ]


SPREAD = {"n0": 1, "n1": 1}


def test_two_jobs_spread_over_two_full_nodes_are_gathered_through_one_free_gpu_elsewhere() -> None:
    """The last steps aside to n2; the first then finds its place free, and the last goes on to where it is to be."""
    a, b = stand("a", SPREAD, {"n0": 2}, 2), stand("b", SPREAD, {"n1": 2}, 2)

    plan = moves([a, b], {"n0": 0, "n1": 0, "n2": 1})

    assert told(plan) == ["b+n2*1", "b-n0*1", "a+n0*1", "a-n1*1", "b+n1*1", "b-n2*1"]
    assert plan.restarts == ()
    assert plan.lowest_gpus == {"n0": 0, "n1": 0, "n2": 0}


def test_without_that_gpu_one_of_them_goes_through_a_checkpoint() -> None:
    """The last; the other moves in place then."""
    plan = moves([stand("a", SPREAD, {"n0": 2}, 2), stand("b", SPREAD, {"n1": 2}, 2)], {"n0": 0, "n1": 0})

    assert told(plan) == ["b!n0*1,n1*1", "a+n0*1", "a-n1*1"]
    assert plan.restarts == ("b",)


def test_a_job_that_stays_lends_the_gpu_rather_than_somebody_be_restarted() -> None:
    """It shrinks on n2, above its minimum; that it grows back is no part of the plan, but nobody else may take it."""
    a, b = stand("a", SPREAD, {"n0": 2}, 2), stand("b", SPREAD, {"n1": 2}, 2)
    lender = stand("c", {"n2": 2}, {"n2": 2}, 1)

    plan = moves([a, b, lender], {"n0": 0, "n1": 0, "n2": 0})

    assert told(plan) == ["c-n2*1", "b+n2*1", "b-n0*1", "a+n0*1", "a-n1*1", "b+n1*1", "b-n2*1"]


def test_who_may_shrink_does_so_before_anybody_steps_aside() -> None:
    """It needs one step less, though there is a free GPU."""
    a, b = stand("a", {"n0": 1}, {"n1": 1}, 1), stand("b", {"n1": 2}, {"n0": 1, "n1": 1}, 1)

    assert told(moves([a, b], {"n0": 0, "n1": 0, "n2": 1})) == ["b-n1*1", "a+n1*1", "a-n0*1"]


def test_a_node_on_which_somebody_waits_to_start_is_stood_aside_on_last() -> None:
    """So that the moves keep nobody waiting where there is another free GPU."""
    a, b = stand("a", {"n0": 1}, {"n1": 1}, 1), stand("b", {"n1": 1}, {"n0": 1}, 1)

    plan = moves([a, b], {"n0": 0, "n1": 0, "n2": 1, "n3": 1}, promised={"n2"})

    assert plan.lowest_gpus == {"n0": 0, "n1": 0, "n3": 0}


def test_circles_beside_each_other_step_aside_to_different_nodes() -> None:
    """So that they go on at the same time."""
    stands = [
        stand(f"{name}{turn}", {f"{name}{turn}": 1}, {f"{name}{1 - turn}": 1}, 1) for name in "xy" for turn in (0, 1)
    ]

    plan = moves(stands, {"x0": 0, "x1": 0, "y0": 0, "y1": 0, "z0": 1, "z1": 1})

    assert [step for step in told(plan) if "+z" in step] == ["x1+z0*1", "y1+z1*1"]


@pytest.mark.parametrize(
    ("free", "steps"),
    [
        ({"n0": 0, "n1": 0, "n2": 2}, ["b+n2*1", "b-n1*1", "a+n1*1", "a-n0*1"]),
        ({"n0": 0, "n1": 0, "n2": 1}, ["b!n1*1"]),
    ],
    ids=["room for a worker of two GPUs", "room for half of one"],
)
def test_a_worker_of_two_gpus_steps_aside_to_two_gpus_of_one_node(free: dict[str, int], steps: list[str]) -> None:
    """It must go whole."""
    a, b = stand("a", {"n0": 1}, {"n1": 1}, 1, size=2), stand("b", {"n1": 1}, {"n0": 1}, 1, size=2)

    assert told(moves([a, b], free))[: len(steps)] == steps


def test_nobody_is_disturbed_for_a_place_that_cannot_be_made_free() -> None:
    """A foreign pod sits on n1 since the decision: all of it stays as it is until there is another decision."""
    plan = moves([stand("a", {"n0": 1}, {"n1": 1}, 1)], {"n0": 0, "n1": 0, "n2": 1})

    assert told(plan) == []
    assert plan.unmoved == ("a",)


def test_of_several_that_would_restart_those_are_spared_without_which_it_works_too() -> None:
    """Both small ones are in the way of the large one, and one of them finds room when the large one goes itself."""
    large = stand("a", {"n0": 1}, {"n1": 1}, 1, size=2)
    small = [stand(name, {"n1": 1}, {"n0": 1}, 1) for name in ("b", "c")]

    plan = moves([large, *small], {"n0": 0, "n1": 0})

    assert plan.restarts == ("a",)
    assert told(plan) == ["a!n0*1", "b+n0*1", "b-n1*1", "c+n0*1", "c-n1*1"]

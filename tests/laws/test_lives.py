"""Laws of the whole line, on a world in memory where anything may happen between two rounds, in any order.

Arrivals, finishes, lost workers, conflicts, cordons, the clock and every step of every pod are played from drawn
numbers. Whatever was played: no node is ever over-booked (the world asserts it after each action), no plan or decision
is fenced, the world comes to rest once nothing happens any more, and every job ends exactly once.
"""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scheduler_core.cycle import run_cycle
from scheduler_core.model.cluster import Cluster
from scheduler_core.model.job import JobPhase
from scheduler_core.model.params import Params
from tests.unit.core.builders import cluster, spec
from tests.unit.core.world import World

#: Ten thousand cases take a minute on an idle core, more on a busy one.
pytestmark = pytest.mark.timeout(900)

#: What may happen: most often the world's own moves and rounds of the scheduler.
EVENTS = ("move", "move", "move", "round", "round", "submit", "wait", "finish", "lose", "conflict", "cordon")
STEPS = st.lists(st.tuples(st.sampled_from(EVENTS), st.integers(0, 1_000)), min_size=30, max_size=100)
CLUSTERS = st.sampled_from([(2, 2), (4,), (1, 2, 4), (4, 4), (3, 3, 2)])
SHAPES = ((1, 1, 1), (1, 4, 1), (2, 2, 1), (2, 4, 1), (3, 3, 1), (2, 4, 2), (2, 2, 2), (1, 8, 1))
ROUNDS_TO_REST = 200


def one_round(world: World, params: Params) -> int:
    """One round of the scheduler; how much it did."""
    result = run_cycle(world, world, world, params)
    assert (result.fault, result.decision.fault) == ("", "")
    return len(result.plan.actions)


def submit(world: World, number: int) -> None:
    """A job of one of the shapes, of one of three priorities."""
    least, most, step = SHAPES[number % len(SHAPES)]
    job_id = f"j{len(world.ended) + len(world.jobs):02d}"
    priority = (0, 0, 100)[number % 3]
    world.submit(spec(job_id, (least, most), gpus_per_worker=step, priority=priority, submitted_s=world.now_s))


def happen(world: World, event: str, number: int, params: Params) -> None:
    """Play one event; the number says which of the possible ones."""
    training = [job for job in world.jobs.values() if job.phase is JobPhase.RUNNING]
    moves = world.moves()
    if event == "move" and moves:
        moves[number % len(moves)]()
    elif event == "round":
        one_round(world, params)
    elif event == "submit" and len(world.jobs) < 6:
        submit(world, number)
    elif event == "wait":
        world.now_s += number / 10
    elif event == "finish" and training:
        world.finish(training[number % len(training)].id)
    elif event == "lose" and training:
        job = training[number % len(training)]
        if job.holding:
            world.lose_worker(job.id, job.holding[number % len(job.holding)].id)
    elif event == "conflict" and training:
        world.refusing.add(training[number % len(training)].id)
    elif event == "cordon":
        flip(world, number % len(world.cluster.nodes))


def flip(world: World, index: int) -> None:
    """Cordon a node, or lift its cordon."""
    nodes = list(world.cluster.nodes)
    nodes[index] = replace(nodes[index], schedulable=not nodes[index].schedulable)
    world.cluster = Cluster(nodes=tuple(nodes), levels=world.cluster.levels)


def come_to_rest(world: World, params: Params) -> None:
    """Nothing happens any more but what follows from the plans: then the plan must become empty and stay so."""
    world.settle()
    for _ in range(ROUNDS_TO_REST):
        world.now_s += params.decide_interval_s + 1
        if not one_round(world, params) and not world.moves():
            assert one_round(world, params) == 0
            return
        world.settle()
    raise AssertionError(f"no rest after {ROUNDS_TO_REST} rounds: {world.log[-12:]}")


@given(sizes=CLUSTERS, steps=STEPS)
def test_whatever_happens_it_comes_to_rest_and_every_job_ends_once(
    sizes: tuple[int, ...], steps: list[tuple[str, int]]
) -> None:
    """Any history, then rest, then one finish after another until no job is left."""
    world, params = World(cluster=cluster(*sizes)), Params()
    for event, number in steps:
        happen(world, event, number, params)
    world.cluster = cluster(*sizes)
    come_to_rest(world, params)
    submitted = {*world.jobs, *world.ended}
    while any(job.holding for job in world.jobs.values()):
        world.finish(next(job.id for job in world.jobs.values() if job.holding))
        come_to_rest(world, params)

    too_wide = {job.id for job in world.jobs.values()}
    assert all(world.jobs[job_id].spec.min_gpus > sum(sizes) or wide_worker(world, job_id) for job_id in too_wide)
    assert dict(world.ended) == dict.fromkeys(submitted - too_wide, 1)


def wide_worker(world: World, job_id: str) -> bool:
    """Whether a job's workers cannot all be placed even on the empty cluster."""
    one = world.jobs[job_id].spec
    slots = sum(node.gpus // one.gpus_per_worker for node in world.cluster.nodes)
    return slots * one.gpus_per_worker < one.min_gpus

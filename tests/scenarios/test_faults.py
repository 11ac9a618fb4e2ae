"""Whole lives with faults in them, on a world in memory: what fails harms nobody else, and comes back more slowly.

Rounds are run every two seconds of the world's clock, as the scheduler does; a trace line is the second and the action.
"""

from __future__ import annotations

from itertools import pairwise

import pytest

from scheduler_core.cycle import run_cycle
from scheduler_core.model.job import JobPhase, WorkerPhase
from scheduler_core.model.params import Params
from scheduler_core.model.plan import Action, Announce, Grant, Grow
from tests.scenarios.test_lives import told
from tests.unit.core.builders import cluster, spec
from tests.unit.core.test_fence import Poisoned
from tests.unit.core.world import World

PARAMS = Params(decide_interval_s=30.0)
HEARTBEAT_S = 2.0


def rounds(world: World, until_s: float, decider: Poisoned | None = None) -> list[str]:
    """What is done until that second after the start; announcements apart."""
    trace = []
    while world.now_s < 1_000.0 + until_s:
        read = len(world.log)
        run_cycle(world, world, world, PARAMS, decider or Poisoned(poison=""))
        done: list[Action] = world.log[read:]
        trace += [f"{world.now_s - 1_000.0:g}: {told(one)}" for one in done if not isinstance(one, Announce)]
        world.settle()
        world.now_s += HEARTBEAT_S
    return trace


def test_a_script_that_fails_on_every_new_worker_is_grown_more_and_more_seldom() -> None:
    """Each new worker dies two seconds after it joined: at 0, then at once, after 10, 20, 40, ... 300 s.

    In an hour that is some twenty growths, where each heartbeat would have made one.
    """
    world = World(cluster=cluster(1, 1))
    world.submit(spec("a", (1, 2)))
    grown = []
    while world.now_s < 4_600.0:
        grown += [line.split(":")[0] for line in rounds(world, world.now_s - 1_000.0 + HEARTBEAT_S) if " grow " in line]
        job = world.jobs["a"]
        young = [one for one in job.workers if one.phase is WorkerPhase.READY and one.number > 0]
        for worker in young:
            if worker.id in job.published:
                world.fail_worker("a", worker.id)
    gaps = [float(after) - float(before) for before, after in pairwise(grown)]

    assert 15 <= len(grown) <= 25
    assert gaps == sorted(gaps)
    assert gaps[-1] >= 300.0
    assert world.jobs["a"].phase is JobPhase.RUNNING


def test_a_job_that_one_node_fails_starts_on_another() -> None:
    """Its worker never gets ready there: evicted after the limit, a new gate, and then another node, not the same."""
    world = World(cluster=cluster(1, 1))
    world.submit(spec("a"))
    run_cycle(world, world, world, PARAMS)
    (granted,) = [one for one in world.log if isinstance(one, Grant)]
    world.now_s += 3.0
    world.fail_worker("a", "w0")
    world.settle()

    trace = rounds(world, 20.0)

    assert [worker.node for worker in granted.workers] == ["n0"]
    assert [line.split(": ")[1] for line in trace] == ["a stop", "a release", "a grant +w0@n1", "a publish =w0"]


@pytest.mark.parametrize("tries_a_round", [1, 100], ids=["each try costs a limit", "tries are quick"])
def test_a_poisonous_job_harms_nobody(tries_a_round: int) -> None:
    """One runs when the poisonous one arrives with others: it goes on untouched, the others start, the one waits."""
    world = World(cluster=cluster(2, 2))
    world.submit(spec("a", (1, 2)))
    rounds(world, 4.0)
    for at, name in enumerate("bcd"):
        world.submit(spec(name, submitted_s=1.0 + at))

    trace = []
    while world.now_s < 1_060.0:
        trace += rounds(world, world.now_s - 1_000.0 + HEARTBEAT_S, Poisoned(poison="c", tries_a_round=tries_a_round))

    assert [line.split(": ")[1] for line in trace] == [
        "b grant +w0@n1",
        "d grant +w0@n1",
        "b publish =w0",
        "d publish =w0",
    ]
    assert list(world.target.quarantined) == ["c"]
    assert world.jobs["a"].held_gpus == 2
    assert world.jobs["c"].phase is JobPhase.QUEUED
    assert "left out of decisions: no answer within 5 s" in world.jobs["c"].message


def test_while_decisions_fail_losses_and_time_limits_are_seen_to() -> None:
    """The policy fails whoever is served: a lost worker is dropped, its replacement grown as last decided."""
    world = World(cluster=cluster(2))
    world.submit(spec("a", (1, 2)))
    rounds(world, 4.0)
    world.submit(spec("b", submitted_s=1.0))
    world.lose_worker("a", "w1")

    trace = rounds(world, 12.0, Poisoned(poison="ab"))

    assert [line.split(": ")[1] for line in trace] == ["a publish =w0", "a grow +w2@n0", "a publish =w0 w2"]
    assert [one for one in world.log if isinstance(one, Grow)] != []
    assert world.target.fence is not None

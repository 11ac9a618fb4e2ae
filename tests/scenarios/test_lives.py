"""Whole lives on a world in memory: from arrivals to the last finish, the whole trace of actions written out.

After each event the scheduler and the world take turns until nothing changes. A trace line is the job, what was done,
and with whom: ``+`` workers granted, ``=`` workers of the allocation document.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from scheduler_core.cycle import run_cycle
from scheduler_core.model.job import JobPhase
from scheduler_core.model.params import Params
from scheduler_core.model.plan import Action, Announce, Evict, Grant, Grow, Publish
from tests.unit.core.builders import cluster, spec
from tests.unit.core.world import World

PARAMS = Params(decide_interval_s=30.0)


def told(action: Action) -> str:
    """One line of the trace."""
    name = f"{action.job_id} {type(action).__name__.lower()}"
    if isinstance(action, Grant | Grow):
        return f"{name} +{' '.join(f'{worker.id}@{worker.node}' for worker in action.workers)}"
    if isinstance(action, Publish):
        return f"{name} ={' '.join(action.worker_ids)}"
    return f"{name} {action.worker_id}" if isinstance(action, Evict) else name


@dataclass(kw_only=True)
class Story:
    """A world and how much of its log was read."""

    world: World
    read: int = field(default=0)

    def goes_on(self) -> list[str]:
        """Rounds and the world's moves in turn until nothing changes; what was done meanwhile, announcements apart."""
        while True:
            run_cycle(self.world, self.world, self.world, PARAMS)
            if len(self.world.log) == self.read and not self.world.moves():
                return []
            new, self.read = self.world.log[self.read :], len(self.world.log)
            self.world.settle()
            return [told(action) for action in new if not isinstance(action, Announce)] + self.goes_on()

    def after_the_interval(self) -> list[str]:
        """The same, half a minute later."""
        self.world.now_s += PARAMS.decide_interval_s
        return self.goes_on()


def test_a_job_grows_shrinks_is_preempted_and_finishes() -> None:
    """On 2x2 slots: alone it has all; another takes half in place; a high one takes all; then back, step by step."""
    story = Story(world=World(cluster=cluster(2, 2)))
    world = story.world

    world.submit(spec("a", (1, 4), submitted_s=1.0))
    assert story.goes_on() == ["a grant +w0@n0 w1@n0 w2@n1 w3@n1", "a publish =w0 w1 w2 w3"]

    world.submit(spec("b", (2, 2), submitted_s=2.0))
    assert story.goes_on() == ["a publish =w0 w1", "b grant +w0@n1 w1@n1", "b publish =w0 w1"]

    world.submit(spec("h", (4, 4), submitted_s=3.0, priority=100))
    assert story.goes_on() == []
    assert story.after_the_interval() == [
        "a stop",
        "b stop",
        "a release",
        "b release",
        "h grant +w0@n0 w1@n0 w2@n1 w3@n1",
        "h publish =w0 w1 w2 w3",
    ]

    world.finish("h")
    assert story.goes_on() == [
        "h release",
        "a grant +w0@n0 w1@n0",
        "b grant +w0@n1 w1@n1",
        "a publish =w0 w1",
        "b publish =w0 w1",
    ]

    world.finish("b")
    assert story.after_the_interval() == ["b release", "a grow +w2@n1 w3@n1", "a publish =w0 w1 w2 w3"]

    world.finish("a")
    assert story.goes_on() == ["a release"]
    assert world.ended == {"h": 1, "b": 1, "a": 1}
    assert world.jobs == {}


def test_a_waiting_job_starts_on_free_gpus_within_the_interval() -> None:
    """While nobody may be disturbed, a finish still lets the next one start at once."""
    story = Story(world=World(cluster=cluster(2)))
    world = story.world
    world.submit(spec("a", (1, 2), submitted_s=1.0))
    story.goes_on()
    world.submit(spec("b", submitted_s=2.0))
    world.submit(spec("c", submitted_s=3.0))
    assert story.goes_on() == ["a publish =w0", "b grant +w0@n0", "b publish =w0"]

    world.now_s += 1.0
    world.finish("b")

    assert story.goes_on() == ["b release", "c grant +w0@n0", "c publish =w0"]


def test_a_worker_lost_in_training_is_replaced() -> None:
    """The job goes on without it, and grows back through the gate."""
    story = Story(world=World(cluster=cluster(2)))
    story.world.submit(spec("a", (1, 2)))
    story.goes_on()

    story.world.lose_worker("a", "w1")

    assert story.goes_on() == ["a publish =w0", "a grow +w2@n0", "a publish =w0 w2"]


def test_losing_the_minimum_costs_a_segment() -> None:
    """A rigid job of two loses one: it stops at a checkpoint and is granted anew in segment 1."""
    story = Story(world=World(cluster=cluster(2)))
    story.world.submit(spec("a", (2, 2)))
    story.goes_on()

    story.world.lose_worker("a", "w1")

    assert story.goes_on() == ["a stop", "a release", "a grant +w0@n0 w1@n0", "a publish =w0 w1"]
    assert story.world.jobs["a"].segment == 1


def test_a_small_worker_makes_way_in_place_for_one_that_needs_a_whole_node() -> None:
    """Single GPUs on both nodes, and a worker of two must go whole: one is added there, then dropped here."""
    story = Story(world=World(cluster=cluster(2, 2)))
    world = story.world
    for at, job_id in enumerate(("a", "x", "b")):
        world.submit(spec(job_id, submitted_s=float(at)))
    story.goes_on()
    world.finish("x")
    story.goes_on()

    world.submit(spec("wide", (2, 2), gpus_per_worker=2, submitted_s=3.0))

    assert story.goes_on() == [
        "a grow +w1@n1",
        "a publish =w0 w1",
        "a publish =w1",
        "wide grant +w0@n0",
        "wide publish =w0",
    ]


def test_a_granted_worker_that_never_comes_up_does_not_keep_the_others_waiting() -> None:
    """After the limit training starts with the two that did."""
    world = World(cluster=cluster(2, 1))
    world.submit(spec("a", (2, 3)))
    run_cycle(world, world, world, PARAMS)
    while any(worker.phase.value != "Ready" for worker in world.jobs["a"].workers[:2]):
        world.moves()[0]()
    world.moves()[0]()
    world.moves()[-1]()
    assert (world.jobs["a"].driver_ready, world.jobs["a"].workers[2].phase.value) == (True, "Pending")
    read = len(world.log)

    world.now_s += PARAMS.start_limit_s
    run_cycle(world, world, world, PARAMS)

    assert [told(action) for action in world.log[read:]] == ["a evict w2", "a publish =w0 w1"]
    assert world.jobs["a"].phase is JobPhase.STARTING

"""Moves of running jobs from decision to rest, on a world in memory: the whole trace of actions written out.

Every job here has two workers at least, so none may shrink first.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from scheduler_core.diff import diff
from scheduler_core.model.cluster import Cluster
from scheduler_core.model.job import Job
from scheduler_core.model.params import Params
from scheduler_core.model.plan import Publish
from tests.scenarios.test_lives import told
from tests.unit.core.builders import aimed, cluster, queued, running, spec
from tests.unit.core.world import World

PARAMS = Params()


def world_of(nodes: Cluster, *jobs: Job, target: dict[str, dict[str, int]]) -> World:
    """These jobs, and a target that stays."""
    world = World(cluster=nodes, jobs={job.id: job for job in jobs}, target=aimed(target, *jobs))
    world.log += [Publish(job_id=job.id, segment=0, generation=1, worker_ids=job.published) for job in jobs]
    return world


def trace(world: World) -> list[str]:
    """Rounds and the world's moves in turn until nothing changes."""
    read = len(world.log)
    while actions := diff(world.observe(), world.target, PARAMS).check(world.observe()).actions:
        for action in actions:
            world.enforce(action)
        world.settle()
    return [told(action) for action in world.log[read:]]


def placed(world: World) -> dict[str, dict[str, int]]:
    """Workers by node, by job."""
    return {job.id: dict(Counter(worker.node for worker in job.holding)) for job in world.jobs.values()}


def test_two_full_nodes_rotate_through_the_one_free_gpu_of_a_third() -> None:
    """Both jobs end gathered, each on a node, by growing and shrinking only."""
    target = {"a": {"n0": 2}, "b": {"n1": 2}}
    jobs = [running(spec(name, (2, 2), submitted_s=at), "n0", "n1") for at, name in enumerate("ab")]
    world = world_of(cluster(2, 2, 1), *jobs, target=target)

    assert trace(world) == [
        "b grow +w2@n2",
        "b publish =w0 w1 w2",
        "b publish =w1 w2",
        "a grow +w2@n0",
        "a publish =w0 w1 w2",
        "a publish =w0 w2",
        "b grow +w3@n1",
        "b publish =w1 w2 w3",
        "b publish =w1 w3",
    ]
    assert placed(world) == target


def test_a_job_that_waits_for_the_free_gpu_starts_when_the_rotation_is_done_with_it() -> None:
    """It was promised that GPU too: it is not granted first, which would cost somebody a restart."""
    target = {"a": {"n0": 2}, "b": {"n1": 2}, "c": {"n2": 1}}
    jobs = [running(spec(name, (2, 2), submitted_s=at), "n0", "n1") for at, name in enumerate("ab")]
    world = world_of(cluster(2, 2, 1), *jobs, queued(spec("c")), target=target)

    steps = trace(world)

    assert steps[0] == "b grow +w2@n2"
    assert steps[-2:] == ["c grant +w0@n2", "c publish =w0"]
    assert not [step for step in steps if "stop" in step]
    assert placed(world) == target


def test_a_gpu_is_borrowed_for_a_rotation_and_given_back() -> None:
    """No GPU is free: c shrinks for the time of it, and grows again on its own node at the end."""
    target = {"a": {"n0": 2}, "b": {"n1": 2}, "c": {"n2": 2}}
    jobs = [running(spec(name, (2, 2), submitted_s=at), "n0", "n1") for at, name in enumerate("ab")]
    world = world_of(cluster(2, 2, 2), *jobs, running(spec("c", (1, 2)), "n2", "n2"), target=target)

    steps = trace(world)

    assert (steps[0], steps[-2:]) == ("c publish =w0", ["c grow +w2@n2", "c publish =w0 w2"])
    assert not [step for step in steps if "stop" in step]
    assert placed(world) == target


def test_workers_leave_a_closed_node_in_place_and_nobody_stands_aside_on_it() -> None:
    """n1 is cordoned and has a free GPU, which is nobody's: a moves off it by growing on n0 first."""
    nodes = cluster(2, 2)
    closed = Cluster(nodes=(nodes.nodes[0], replace(nodes.nodes[1], schedulable=False)))
    world = world_of(closed, running(spec("a", (2, 2)), "n0", "n1"), target={"a": {"n0": 2}})

    assert trace(world) == ["a grow +w2@n0", "a publish =w0 w1 w2", "a publish =w0 w2"]


def test_pods_on_their_way_out_and_foreign_ones_keep_their_gpus() -> None:
    """A move waits for the first, and never begins where the second are."""
    job = running(spec("a", (2, 2)), "n0", "n1")
    for nodes in (cluster(2, 2, leaving_gpus=1), cluster(2, 2, foreign_gpus=1)):
        world = world_of(nodes, job, target={"a": {"n0": 2}})

        assert trace(world) == []


def test_a_target_that_changes_while_somebody_stands_aside_is_followed_at_once() -> None:
    """Job b is on its way to n2 when the decision leaves both where they are: its new worker is let go of."""
    jobs = [running(spec(name, (2, 2), submitted_s=at), "n0", "n1") for at, name in enumerate("ab")]
    world = world_of(cluster(2, 2, 1), *jobs, target={"a": {"n0": 2}, "b": {"n1": 2}})
    for action in diff(world.observe(), world.target, PARAMS).actions:
        world.enforce(action)
    world.moves()[0]()

    world.target = aimed({"a": {"n0": 1, "n1": 1}, "b": {"n0": 1, "n1": 1}}, *jobs)

    assert trace(world) == ["b evict w2"]

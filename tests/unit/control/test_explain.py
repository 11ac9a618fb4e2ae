"""What people are told when something goes wrong: what, why, since when, what to do; of quarantine, fence, failures."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from scheduler_core.deciding.fence import fenced
from scheduler_core.errors import StageFailed
from scheduler_core.model.decision import Decision, DecisionKind
from scheduler_core.model.job import WorkerPhase
from scheduler_core.model.observation import Observation
from scheduler_core.model.params import Params
from scheduler_core.model.queue import Queue
from scheduler_core.model.target import Target
from tests.unit.control.world import PARAMS, World
from voda_flows.config import Settings
from voda_flows.control.explain import explain, explained
from voda_flows.objects import Object
from voda_flows.workflows.parameters import JOB_TEMPLATE


@pytest.fixture
def world(tmp_path: Path) -> World:
    """Two nodes with two GPUs each."""
    return World(tmp_path)


class Failing:
    """A decider that fails with some jobs, so many tries a round."""

    def __init__(self, poison: tuple[str, ...], tries: int = 100) -> None:
        self.poison = poison
        self.tries = tries

    def attempt(self, observation: Observation, target: Target, params: Params) -> Decision:
        """Fails while one of them is served."""
        self.tries -= 1
        names = {job.spec.name for job in observation.jobs if job.id not in target.quarantined}
        if names.intersection(self.poison):
            raise StageFailed("no answer within 5 s")
        return Decision(target=replace(target, decision=target.decision + 1), kind=DecisionKind.FULL)

    def has_time(self) -> bool:
        """While there are tries."""
        return self.tries > 0


def store_failed(world: World, decider: Failing) -> None:
    """One round of decisions that fail is stored."""
    target = world.targets.load()
    world.targets.save(fenced(world.observer.observe(), target, PARAMS, "digest", decider).target)


def told(world: World, name: str) -> str:
    """All that is said of a job."""
    return "\n".join(explain(world.store, Settings(), name))


def test_a_quarantined_job_is_told_why_since_when_and_what_to_do(world: World) -> None:
    """And the others are not told anything of it."""
    world.submit("good", job_name="good")
    world.submit("bad", job_name="bad")
    store_failed(world, Failing(("bad",)))

    bad, good = told(world, "bad"), told(world, "good")

    assert "It is quarantined since 20" in bad
    assert "It is left out of decisions and keeps what it has, because policy" in bad
    assert "fails with it (once up to now): no answer within 5 s.\nIt is tried again in 1m00s, " in bad
    assert "To do: delete it and submit it with other inputs, or set another policy" in bad
    assert "quarantined" not in good


def test_while_decisions_fail_everybody_is_told(world: World) -> None:
    """While the cause is searched, and when it is no job's; nobody is asked whether the scheduler runs."""
    world.submit("one", job_name="one")
    world.submit("two", job_name="two")
    store_failed(world, Failing(("one", "two"), tries=2))
    searching = told(world, "one")
    store_failed(world, Failing(("one", "two")))
    given_up = told(world, "one")

    assert (
        "Which jobs cause it is being found out; until then everybody keeps what the last decision gave." in searching
    )
    assert "Decisions fail since 20" in given_up
    assert "(elastic_fifo), and leaving out single jobs does not cure it: no answer within 5 s." in given_up
    assert "the next try comes in 9" in given_up or "the next try comes in 10s" in given_up
    assert "is the scheduler running" not in searching + given_up


def test_who_asks_after_the_scheduler_is_sent_to_its_namespace(world: World) -> None:
    """Which need not be ``voda``; the command is one that can be typed."""
    world.submit("digits")

    said = explain(world.store, Settings(namespace="ml"), "digits")

    assert said[1] == "No decision has seen it yet; is the scheduler running? See: voda list -n ml"


def test_a_worker_wider_than_every_node_is_told_so_before_and_after_a_decision(world: World) -> None:
    """Also while others have all GPUs; so is a minimum above the whole cluster."""
    world.submit("busy", min_gpus="4", max_gpus="4", job_name="busy")
    world.submit("wide", min_gpus="4", max_gpus="4", gpus_per_worker="4", job_name="wide")
    before = told(world, "wide")
    world.cycle()

    for said in (before, told(world, "wide")):
        assert "It is unschedulable: each of its workers needs 4 GPUs on one node" in said
    assert "unschedulable: each of its workers" in world.job("wide").message


def test_a_minimum_above_the_cluster_waits_as_unschedulable(world: World) -> None:
    """It is not refused: nodes may be added."""
    world.submit("huge", min_gpus="9", max_gpus="9")
    world.cycle()

    assert "It is unschedulable: it needs 9 GPUs at least, and the cluster has 4" in told(world, "huge")
    assert world.job().phase.value == "Queued"


def test_two_steps_of_one_name_are_both_explained(world: World) -> None:
    """The second is refused by its own text, under the name that its user gave."""
    call = {"templateRef": {"name": JOB_TEMPLATE, "template": "job"}}
    step: Object = call | {"arguments": {"parameters": [{"name": "command", "value": "python -m workloads.digits"}]}}
    templates = [{"name": "both", "steps": [[step | {"name": "one"}, step | {"name": "other"}]]}]
    world.submit("pipe", {"entrypoint": "both", "templates": templates})

    lines = explain(world.store, Settings(), "pipe/train")

    assert [line.split(" (")[0] for line in lines if line.startswith("pipe/train")] == [
        "pipe/train waits at its gate",
        next(line for line in lines if "is refused" in line).split(" (")[0],
    ]
    assert sum("pipe/train is refused: " in line and "got 'train' twice" in line for line in lines) == 1
    assert "@" not in "\n".join(lines)


def test_workers_that_die_as_soon_as_they_are_grown_are_told_and_wait(world: World) -> None:
    """From the Workflow's own nodes: which failed where; the second time in a row the growth waits."""
    world.submit("digits", min_gpus="1", max_gpus="2")
    world.cycle()
    world.run_pods()
    for worker in ("w1", "w2"):
        while worker not in world.job().published:
            world.cycle()
            world.run_pods()
            world.acknowledge()
        world.end_pod("worker", worker, phase="Failed")

    job = world.job()
    said = told(world, "digits")

    assert [failure.worker for failure in job.failures] == ["w1", "w2"]
    assert [worker.phase for worker in job.workers] == [WorkerPhase.READY, WorkerPhase.ENDED, WorkerPhase.ENDED]
    assert "Workers failed soon after they were started: w1 on n" in said
    assert "); see: voda logs digits/train -n default\n" in said
    assert "Growing it failed 2 times in a row; it may grow again in " in said
    for _ in range(3):
        world.cycle()
        world.acknowledge()
    assert len(world.job().workers) == 3, "nothing is grown meanwhile"


def test_a_suspended_job_that_never_ran_is_held_at_its_gate(world: World) -> None:
    """It had no segment it could be between; what lets it go on is named."""
    world.submit("digits")
    world.store.merge_patch("Workflow", "default", "digits", {"spec": {"suspend": True}})

    lines = explain(world.store, Settings(), "digits")

    assert lines[0].startswith("digits/train is held at its gate (queue default, submitted ")
    assert lines[0].endswith(" ago, segment 0).")
    assert (
        "Its Workflow is suspended (see: voda resume digits -n default) or told to stop: its gate is not answered."
        in lines
    )
    assert "between two segments" not in "\n".join(lines)


def test_a_suspended_job_that_trains_is_not_grown(world: World) -> None:
    """Its gate was answered long ago."""
    world.submit("digits")
    world.cycle()
    world.store.merge_patch("Workflow", "default", "digits", {"spec": {"suspend": True}})

    said = told(world, "digits")

    assert "Its Workflow is suspended (see: voda resume digits -n default) or told to stop: it is not grown." in said
    assert "gate" not in said


def test_a_decision_is_told_with_a_code_and_the_codes_of_what_else_it_says(tmp_path: Path) -> None:
    """Of a job that has GPUs, and of one whose queue may have no more: both are told so by name and by code."""
    settings = Settings(queues={"default": Queue(name="default", nominal_gpus={"": 3}, borrows=False)})
    world = World(tmp_path / "capped", settings=settings)
    world.submit("first", min_gpus="3", max_gpus="3", job_name="first")
    world.submit("second", job_name="second")
    world.cycle()

    first, second = (explained(world.store, settings, name) for name in ("first", "second"))

    assert [(one.code, one.notes) for one in first[:2]] == [("starting", ()), ("granted", ())]
    assert [(one.code, one.notes) for one in second[:2]] == [("queued", ()), ("waiting", ("queue-limit",))]
    assert "(queue default may have 3 GPUs, and its jobs have 3)" in second[1].text

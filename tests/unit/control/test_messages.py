"""What stands on a Workflow's nodes: why its job got, gave back and lost GPUs, as people see it in Argo."""

from __future__ import annotations

from pathlib import Path

import pytest

from scheduler_core.errors import Conflict
from scheduler_core.model.plan import Stop
from tests.unit.control.world import World
from voda_flows.objects import Object


@pytest.fixture
def world(tmp_path: Path) -> World:
    """One node with two GPUs."""
    return World(tmp_path, gpus=(2,))


def messages(world: World, workflow: str) -> dict[str, str]:
    """The message of each node that has one, by what the node is called."""
    nodes = world.store.get("Workflow", "default", workflow)["status"]["nodes"].values()
    skipped = [node for node in nodes if node["type"] != "Skipped"]
    return {node["displayName"]: node["message"] for node in skipped if node.get("message")}


def start(world: World) -> None:
    """Whoever was granted something trains."""
    world.run_pods()
    world.cycle()
    world.acknowledge()


def outrank(world: World) -> None:
    """Job a trains on one GPU, and b, which wants both, goes before it."""
    world.submit("a", max_gpus="1")
    world.cycle()
    start(world)
    world.submit("b", min_gpus="2", max_gpus="2", priority="high")


def test_gates_and_workers_say_why_they_were_answered_and_left(world: World) -> None:
    """A grant says how much and where, a worker that is dropped says for whom, each by which decision."""
    world.submit("a", max_gpus="2")
    world.cycle()
    start(world)
    world.submit("b", max_gpus="1")
    world.cycle()

    assert messages(world, "a") == {
        "gate": "2 GPUs: 2 on n0; decision 1, elastic_fifo",
        "w1-on-n0": "gives its GPUs back in place; makes room for b (0 -> 1); decision 2, elastic_fifo",
    }
    world.end_pod("worker", "w1")
    world.cycle()
    assert messages(world, "b") == {
        "gate": "1 GPU: 1 on n0; takes what is left by a (2 -> 1); decision 2, elastic_fifo"
    }
    assert messages(world, "a")["w1-on-n0"].startswith("gives its GPUs back in place")


def test_a_growth_and_a_stop_say_why(world: World) -> None:
    """The grow gate says what came, the driver why it was told to stop; both still when they have ended."""
    outrank(world)
    world.cycle()

    said = messages(world, "a")["driver"]
    world.end_pod("driver")

    assert said == (
        "preempted: its GPUs are given to jobs before it; makes room for b (0 -> 2); decision 2, elastic_fifo"
    )
    assert messages(world, "a")["driver"] == said
    world.cycle()
    assert messages(world, "a")["grow-gate"] == "no more workers: its driver has ended"


def test_words_are_written_though_the_workflow_changed_meanwhile(world: World) -> None:
    """Progress of running pods changes a Workflow all the time; only nodes that are still there are written on."""
    world.submit("a", max_gpus="1")
    world.cycle()
    start(world)
    view = world.view()
    world.store.merge_patch("Workflow", "default", "a", {"metadata": {"labels": {"x": "y"}}})

    world.enforcer.enforce(Stop(job_id=view.id, segment=0, generation=2, reason="why not"))

    assert messages(world, "a")["driver"].startswith("why not; decision 1")


def test_words_are_written_though_somebody_is_quicker_each_time(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Argo writes between our reading and our writing: what is there is read again, and nobody's words are lost."""
    outrank(world)
    written = world.store.merge_patch
    quicker = iter(range(3))

    def comes_late(kind: str, namespace: str, name: str, change: Object, resource_version: str) -> Object:
        if kind == "Workflow" and (turn := next(quicker, None)) is not None:
            written(kind, namespace, name, {"metadata": {"labels": {"turn": str(turn)}}})
        return written(kind, namespace, name, change, resource_version=resource_version)

    monkeypatch.setattr(world.store, "merge_patch", comes_late)
    world.round()

    assert messages(world, "a")["driver"].startswith("preempted: its GPUs are given to jobs before it; makes room")
    assert world.store.get("Workflow", "default", "a")["metadata"]["labels"]["turn"] == "2"


def test_words_are_not_worth_a_conflict(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """A stop counts when the document is written, whatever becomes of the message."""
    outrank(world)
    written = world.store.merge_patch

    def refuses(kind: str, *rest: str, **options: str) -> Object:
        if kind == "Workflow":
            raise Conflict("somebody else was quicker")
        return written(kind, *rest, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(world.store, "merge_patch", refuses)
    result = world.round()

    assert ([type(action).__name__ for action in result.done], dict(result.conflicts)) == (["Stop"], {})

"""The whole life of the recursive elastic job, step by step, as the real controller lived it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.contract.argo import golden
from tests.contract.argo.small_world import ENDED, SmallWorld
from voda_flows.local.argo import operate
from voda_flows.objects import Object

NAME = "elastic-job"
Shown = dict[str, dict[str, Any]]


def open_gates(world: SmallWorld) -> list[Object]:
    """Suspended nodes that nobody has opened."""
    nodes = world.status["nodes"].values()
    return [node for node in nodes if node["type"] == "Suspend" and node["phase"] == "Running"]


def supply(world: SmallWorld, template: str, **values: str) -> None:
    """What a scheduler does: complete the open gate of that template with values, by one patch."""
    (gate,) = [node for node in open_gates(world) if node["templateName"] == template]
    outputs = {"parameters": [{"name": name, "value": value} for name, value in values.items()]}
    given = {**gate, "phase": "Succeeded", "finishedAt": "2026-11-29T00:00:00Z", "outputs": outputs}
    status = world.workflow["status"]
    world.workflow = {**world.workflow, "status": {**status, "nodes": {**status["nodes"], gate["id"]: given}}}


def workers(*rows: tuple[str, str]) -> str:
    """A grant's list of workers: (id, node), one GPU each."""
    return json.dumps([{"id": worker, "node": node, "gpus": "1"} for worker, node in rows])


def grant(world: SmallWorld, *rows: tuple[str, str]) -> None:
    """Open the start gate."""
    supply(world, "gate", grant="given", workers=workers(*rows))


def release(world: SmallWorld) -> None:
    """Open the grow gate with nothing, and no more to come."""
    supply(world, "grow-gate", workers="[]", more="no")


def end_driver(world: SmallWorld, word: str) -> None:
    """Tell the driver to end, by the annotation that it reads through its downward-API volume."""
    process = world.processes[driver_pod(world)]
    process.pod["metadata"]["annotations"]["voda.dev/allocation"] = word
    process.annotated()
    world.until(lambda: not process.is_running)


def driver_pod(world: SmallWorld) -> str:
    """The name of the running driver's pod."""
    return next(name for name, pod in world.pods.items() if _is(pod, "driver") and world.processes[name].is_running)


def dismiss_workers(world: SmallWorld) -> None:
    """Ask every running worker to leave; each ends with 0."""
    running = [each for each in world.processes.values() if _is(each.pod, "worker") and each.is_running]
    world.until(lambda: all(process.catches_term for process in running))
    for process in running:
        process.stop()


def _is(pod: Object, role: str) -> bool:
    return bool(pod["metadata"]["labels"].get("voda.dev/role") == role)


def act_submit(world: SmallWorld) -> None:
    """It has been submitted already."""


def act_resume(world: SmallWorld) -> None:
    world.workflow = operate.resume(world.workflow, datetime.now(UTC))


def act_stop_for_resize(world: SmallWorld) -> None:
    end_driver(world, "stop")
    dismiss_workers(world)
    release(world)


def act_lose_driver(world: SmallWorld) -> None:
    world.delete_pod(driver_pod(world), force=True)
    dismiss_workers(world)
    release(world)


def act_grant_and_stop(world: SmallWorld) -> None:
    grant(world, ("w0", "n0"))
    world.until(lambda: _running_pods(world) == 2)
    world.workflow = operate.stop(world.workflow)


def act_retry(world: SmallWorld) -> None:
    again = operate.retry(world.workflow, datetime.now(UTC))
    for name in again.delete:
        world.processes.pop(name, None)
    world.workflow = again.workflow


def act_done(world: SmallWorld) -> None:
    end_driver(world, "done")
    dismiss_workers(world)


def _running_pods(world: SmallWorld) -> int:
    nodes = world.status["nodes"].values()
    return sum(node["type"] == "Pod" and node["phase"] == "Running" for node in nodes)


ACTS: tuple[Callable[[SmallWorld], None], ...] = (
    act_submit,
    act_resume,
    lambda world: grant(world, ("w0", "n0"), ("w1", "n0")),
    lambda world: supply(world, "grow-gate", workers=workers(("w2", "n1")), more="yes"),
    act_resume,
    act_stop_for_resize,
    lambda world: grant(world, ("w0", "n1")),
    act_lose_driver,
    act_grant_and_stop,
    act_retry,
    act_done,
)
"""What was done before each of the states that were recorded, in order."""


def shown(status: Object) -> Shown:
    """What is recorded of every node after each step."""
    names = {node["id"]: node["name"] for node in status["nodes"].values()}
    fields = ("type", "phase", "displayName", "message")
    found: Shown = {}
    for node in status["nodes"].values():
        found[node["name"]] = {field: node[field] for field in fields if node.get(field)}
        if node.get("boundaryID"):
            found[node["name"]]["boundary"] = names[node["boundaryID"]]
    return found


@pytest.fixture
def world(tmp_path: Path) -> Iterator[SmallWorld]:
    """The job, submitted as a Workflow that refers to its WorkflowTemplate."""
    template = yaml.safe_load((golden.FOLDER / f"{NAME}.yaml").read_text())
    workflow = {
        "apiVersion": "argoproj.io/v1alpha1",
        "kind": "Workflow",
        "metadata": {"name": NAME},
        "spec": {"workflowTemplateRef": {"name": NAME}},
    }
    small = SmallWorld(workflow, tmp_path, {NAME: template})
    yield small
    small.close()


def test_elastic_job_lives_as_on_the_real_controller(world: SmallWorld) -> None:
    """After each of eleven steps phase, progress and every node agree, and in the end all that must."""
    recorded = golden.outcome(NAME)

    for act, step in zip(ACTS, recorded["steps"], strict=True):
        if world.workflow.get("status"):
            act(world)
        expected = _recorded(step)
        world.until(lambda state=expected: _state(world.status) == state or _settled(world), limit_s=20)  # type: ignore[misc]

        assert _state(world.status) == expected, step["after"]

    assert world.status["phase"] in ENDED
    assert golden.agreed(world.status) == golden.expected(recorded["final"])


def _state(status: Object) -> Mapping[str, Any]:
    return {"phase": status.get("phase"), "progress": status.get("progress"), "nodes": shown(status)}


def _recorded(step: Object) -> Mapping[str, Any]:
    fields = ("type", "phase", "displayName", "message", "boundary")
    nodes = {node["name"]: {field: node[field] for field in fields if node.get(field)} for node in step["nodes"]}
    return {"phase": step["phase"], "progress": step["progress"], "nodes": nodes}


def _settled(world: SmallWorld) -> bool:
    """Whether the Workflow has ended, so that waiting for another state is no use."""
    return world.status.get("phase") in ENDED and world.step() is None

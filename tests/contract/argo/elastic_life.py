"""The whole life of the recursive elastic job as it was lived on the real controller: what was done, and what is seen.

In: a world in which the job was submitted; out: after each of the eleven acts, whether all came to what was recorded.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import yaml

from tests.contract.argo import engine_world, golden
from tests.contract.argo.engine_world import NAMESPACE, EngineWorld
from tests.contract.argo.small_world import SmallWorld
from tests.contract.argo.world import World, is_ready_to_end, is_up
from voda_flows.local.argo import operate
from voda_flows.local.store import LocalStore
from voda_flows.local.up import down
from voda_flows.objects import Object

NAME = "elastic-job"
Shown = dict[str, dict[str, Any]]


def supply(world: World, template: str, **values: str) -> None:
    """What a scheduler does: complete the open gate of that template with values, by one patch."""
    outputs = {"parameters": [{"name": name, "value": value} for name, value in values.items()]}

    def given(workflow: Object) -> Object:
        nodes = workflow["status"]["nodes"]
        (gate,) = [node for node in nodes.values() if _is_open(node) and node["templateName"] == template]
        done = {**gate, "phase": "Succeeded", "finishedAt": "2026-11-29T00:00:00Z", "outputs": outputs}
        return {**workflow, "status": {**workflow["status"], "nodes": {**nodes, gate["id"]: done}}}

    world.operate(given)


def _is_open(node: Object) -> bool:
    return bool(node["type"] == "Suspend" and node["phase"] == "Running")


def workers(*rows: tuple[str, str]) -> str:
    """A grant's list of workers: (id, node), one GPU each."""
    return json.dumps([{"id": worker, "node": node, "gpus": "1"} for worker, node in rows])


def grant(world: World, *rows: tuple[str, str]) -> None:
    """Open the start gate."""
    supply(world, "gate", grant="given", workers=workers(*rows))


def release(world: World) -> None:
    """Open the grow gate with nothing, and no more to come."""
    supply(world, "grow-gate", workers="[]", more="no")


def end_driver(world: World, word: str) -> None:
    """Tell the driver to end, by the annotation that it reads through its downward-API volume."""
    (driver,) = up(world, "driver")
    world.annotate(driver, "voda.dev/allocation", word)
    world.until(lambda: not up(world, "driver"))


def dismiss_workers(world: World) -> None:
    """Ask every running worker to leave; each ends with 0."""
    leaving = up(world, "worker")
    world.until(lambda: all(is_ready_to_end(world, name) for name in leaving))
    for name in leaving:
        world.dismiss(name)


def up(world: World, role: str) -> list[str]:
    """The names of the running pods of a role."""
    return [name for name, pod in world.pods.items() if is_up(pod) and _role(pod) == role]


def _role(pod: Object) -> str:
    return str(pod["metadata"]["labels"].get("voda.dev/role", ""))


def act_submit(world: World) -> None:
    """It has been submitted already."""


def act_resume(world: World) -> None:
    """``argo resume`` without a selector: every open gate is completed with its defaults."""
    world.operate(lambda workflow: operate.resume(workflow, datetime.now(UTC)))


def act_stop_for_resize(world: World) -> None:
    """The driver is told to stop, ends well, the workers leave, the scheduler releases the grow gate."""
    end_driver(world, "stop")
    dismiss_workers(world)
    release(world)


def act_lose_driver(world: World) -> None:
    """The driver's pod is deleted by force; the workers leave."""
    (driver,) = up(world, "driver")
    world.delete_pod(driver, force=True)
    dismiss_workers(world)
    release(world)


def act_grant_and_stop(world: World) -> None:
    """A grant, and ``argo stop`` once its pods run."""
    grant(world, ("w0", "n0"))
    world.until(lambda: _running_pods(world) == 2)
    world.operate(operate.stop)


def act_retry(world: World) -> None:
    """``argo retry``: failed pods are deleted, and come back on the old grant."""

    def retried(workflow: Object) -> Object:
        again = operate.retry(workflow, datetime.now(UTC))
        for name in again.delete:
            if name in world.pods:
                world.delete_pod(name)
        return again.workflow

    world.operate(retried)


def act_done(world: World) -> None:
    """The driver ends well for good; the workers leave."""
    end_driver(world, "done")
    dismiss_workers(world)


def _running_pods(world: World) -> int:
    nodes = world.status["nodes"].values()
    return sum(node["type"] == "Pod" and node["phase"] == "Running" for node in nodes)


ACTS: tuple[Callable[[World], None], ...] = (
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
    names = {node["id"]: node["name"] for node in status.get("nodes", {}).values()}
    fields = ("type", "phase", "displayName", "message")
    found: Shown = {}
    for node in status.get("nodes", {}).values():
        found[node["name"]] = {field: node[field] for field in fields if node.get(field)}
        if node.get("boundaryID"):
            found[node["name"]]["boundary"] = names[node["boundaryID"]]
    return found


@contextmanager
def elastic_world(kind: str, folder: Path) -> Iterator[World]:
    """The job, submitted as a Workflow that refers to its WorkflowTemplate.

    Args:
        kind: ``engine`` for a home with its engine, ``processes`` for the pure engine over plain processes.
        folder: Where the world may be.
    """
    template = yaml.safe_load((golden.FOLDER / f"{NAME}.yaml").read_text())
    workflow = {
        "apiVersion": "argoproj.io/v1alpha1",
        "kind": "Workflow",
        "metadata": {"name": NAME},
        "spec": {"workflowTemplateRef": {"name": NAME}},
    }
    if kind == "engine":
        engine_world.begin(folder)
        LocalStore(folder).create({**template, "metadata": {"name": NAME, "namespace": NAMESPACE}})
        try:
            yield EngineWorld(workflow, folder)
        finally:
            down(folder, drain_s=0.2)
        return
    small = SmallWorld(workflow, folder, {NAME: template})
    try:
        yield small
    finally:
        small.close()


def reaches(world: World, expected: Mapping[str, Any]) -> bool:
    """Whether the Workflow comes to the state in time."""
    try:
        world.until(lambda: state(world.status) == expected, limit_s=60)
    except TimeoutError:
        return False
    return True


def state(status: Object) -> Mapping[str, Any]:
    """What is compared after each act."""
    return {"phase": status.get("phase"), "progress": status.get("progress"), "nodes": shown(status)}


def recorded(step: Object) -> Mapping[str, Any]:
    """The same of a step of the recorded life."""
    fields = ("type", "phase", "displayName", "message", "boundary")
    nodes = {node["name"]: {field: node[field] for field in fields if node.get(field)} for node in step["nodes"]}
    return {"phase": step["phase"], "progress": step["progress"], "nodes": nodes}

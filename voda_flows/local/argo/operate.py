"""What people do to a running or ended Workflow: suspend, resume, stop, terminate, retry, resubmit.

In: a Workflow's document; out: the changed document, and for a retry the pods that must go before it is kept. Pure;
who calls keeps the document guarded by its version. The engine's next ``advance`` does the rest.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from scheduler_core.errors import Conflict
from voda_flows.local.argo.execute import node_pod_name
from voda_flows.local.argo.nodes import is_failed, is_fulfilled
from voda_flows.local.argo.scope import with_defaults
from voda_flows.objects import COMPLETED_LABEL, WORKFLOW_ENDED, Object, format_time, phase_of

RETRIED = frozenset({"Failed", "Error"})
LABELS = "workflows.argoproj.io"
OWN_LABELS = frozenset(
    f"{LABELS}/{name}"
    for name in ("phase", "completed", "workflow-archiving-status", "creator", "creator-email",
                 "creator-preferred-username")
)  # fmt: skip
RESUBMITTED = f"{LABELS}/resubmitted-from-workflow"


def suspend(workflow: Object) -> Object:
    """The Workflow with nothing new to be started; what runs goes on.

    Raises:
        Conflict: It has ended.
    """
    return _with_spec(_running(workflow, "suspend"), suspend=True)


def stop(workflow: Object) -> Object:
    """The Workflow to be stopped: its pods end, then its exit handler runs.

    Raises:
        Conflict: It has ended.
    """
    return _with_spec(_running(workflow, "stop"), shutdown="Stop")


def terminate(workflow: Object) -> Object:
    """The Workflow to be ended at once, without its exit handler.

    Raises:
        Conflict: It has ended.
    """
    return _with_spec(_running(workflow, "terminate"), shutdown="Terminate")


def resume(workflow: Object, now: datetime) -> Object:
    """The Workflow going on: no longer suspended, and every open gate ended with the defaults of its outputs.

    Args:
        workflow: The document.
        now: When the gates end.

    Raises:
        Conflict: The Workflow has ended.
        InvalidValue: A gate has an output without value and default.
    """
    going = _with_spec(_running(workflow, "resume"), suspend=None)
    nodes = (going.get("status") or {}).get("nodes") or {}
    opened = {
        key: _opened(node, now) for key, node in nodes.items() if node["type"] == "Suspend" and not is_fulfilled(node)
    }
    return _with_nodes(going, {**nodes, **opened}) if opened else going


def _opened(node: Object, now: datetime) -> Object:
    opened = {**node, "phase": "Succeeded", "finishedAt": format_time(now)}
    outputs = with_defaults(node.get("outputs"))
    if outputs is not None:
        opened["outputs"] = outputs
    return opened


def resubmit(workflow: Object) -> Object:
    """A new Workflow of the same spec, to be created: with labels, annotations and owners of the old, as Argo does.

    What names a Workflow's uid in an annotation must therefore be ignored where it is another's. One that was suspended
    begins suspended.
    """
    metadata = workflow["metadata"]
    labels = {key: value for key, value in (metadata.get("labels") or {}).items() if key not in OWN_LABELS}
    labels[RESUBMITTED] = metadata["name"]
    kept = {key: metadata[key] for key in ("namespace", "annotations", "ownerReferences") if key in metadata}
    name = metadata.get("generateName") or f"{metadata['name']}-"
    again = {key: value for key, value in workflow.items() if key != "status"}
    fresh = {**again, "metadata": {**kept, "generateName": name, "labels": labels}}
    return _with_spec(fresh, shutdown=None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Retry:
    """A Workflow to be run again where it failed; ``delete`` are the pods that must be gone before it is kept."""

    workflow: Object
    delete: tuple[str, ...]


def retry(workflow: Object, now: datetime) -> Retry:
    """The Workflow going on from what failed: failed pods and all that came after them are forgotten.

    What succeeded stays, and so does the end of a gate, so that pods come back with the gate's old outputs. Only pods
    are made undone: a step that never came to be (its ``when`` makes no sense) fails again.

    Raises:
        Conflict: It did not fail.
    """
    status = workflow.get("status") or {}
    name = workflow["metadata"]["name"]
    if status.get("phase") not in RETRIED:
        raise Conflict(f"Workflow {name}: cannot retry what has not failed, it is {status.get('phase') or 'Pending'}")
    nodes: dict[str, Object] = status.get("nodes") or {}
    failed = [node for node in nodes.values() if is_failed(node) and node["type"] == "Pod"]
    failed = [node for node in failed if not _was_gone_past(nodes, node)]
    gone = _below(nodes, [node["id"] for node in failed])
    gone |= {key for key, node in nodes.items() if node["name"].startswith(f"{name}.onExit")}
    reset = _around(nodes, failed) - gone
    moment = format_time(now)
    kept = {key: _reset(node, moment) if key in reset else node for key, node in nodes.items() if key not in gone}
    kept = {key: _without_children(node, gone) for key, node in kept.items()}
    pods = tuple(node_pod_name(name, nodes[key]) for key in nodes if key in gone and nodes[key]["type"] == "Pod")
    return Retry(workflow=_going_again(workflow, kept, now), delete=pods)


def _was_gone_past(nodes: dict[str, Object], failed: Object) -> bool:
    """Whether the Workflow went on after that failure: something behind it succeeded, so it is no reason to retry."""
    parents = (node for node in nodes.values() if failed["id"] in (node.get("children") or ()))
    tries = [node for node in parents if node["type"] == "Retry"]
    behind = _below(nodes, [child for node in (failed, *tries) for child in node.get("children") or ()])
    return any(nodes[key]["phase"] == "Succeeded" for key in behind)


def _below(nodes: dict[str, Object], start: Iterable[str]) -> set[str]:
    """The nodes themselves and all that follow them."""
    found: set[str] = set()
    stack = list(start)
    while stack:
        key = stack.pop()
        if key in nodes and key not in found:
            found.add(key)
            stack.extend(nodes[key].get("children") or ())
    return found


def _around(nodes: dict[str, Object], failed: Iterable[Object]) -> set[str]:
    """The groups around failed nodes, from the inside to the root: they run again."""
    parents: dict[str, list[str]] = {}
    for key, node in nodes.items():
        for child in node.get("children") or ():
            parents.setdefault(child, []).append(key)
    found: set[str] = set()
    stack = [node["id"] for node in failed]
    while stack:
        key = stack.pop()
        node = nodes[key]
        groups = [each for each in parents.get(key, ()) if nodes[each]["type"] in {"StepGroup", "TaskGroup", "Retry"}
                  and _encloses(nodes[each], node)]  # fmt: skip
        for group in (*groups, node.get("boundaryID", "")):
            if group in nodes and group not in found:
                found.add(group)
                stack.append(group)
    return found


def _encloses(group: Object, node: Object) -> bool:
    """Whether the group is around the node, not merely before it."""
    return bool(node["name"].startswith(group["name"]))


def _reset(node: Object, moment: str) -> Object:
    ended = {"message", "finishedAt", "outboundNodes", "outputs"}
    kept = {field: value for field, value in node.items() if field not in ended}
    return {**kept, "phase": "Running", "startedAt": moment}


def _without_children(node: Object, gone: set[str]) -> Object:
    children = node.get("children") or []
    if not any(child in gone for child in children):
        return node
    left = [child for child in children if child not in gone]
    rest = {field: value for field, value in node.items() if field != "children"}
    return {**rest, "children": left} if left else rest


def _going_again(workflow: Object, nodes: dict[str, Object], now: datetime) -> Object:
    status = {key: value for key, value in workflow["status"].items() if key not in {"message", "finishedAt"}}
    status |= {"phase": "Running", "nodes": nodes, "startedAt": format_time(now)}
    status["conditions"] = [each for each in status.get("conditions") or () if each["type"] != "Completed"]
    metadata = workflow["metadata"]
    labels = {**(metadata.get("labels") or {}), "workflows.argoproj.io/phase": "Running",
              COMPLETED_LABEL: "false"}  # fmt: skip
    again = {**workflow, "metadata": {**metadata, "labels": labels}, "status": status}
    return _with_spec(again, shutdown=None)


def _running(workflow: Object, verb: str) -> Object:
    phase = phase_of(workflow)
    if phase in WORKFLOW_ENDED:
        name = workflow["metadata"]["name"]
        raise Conflict(f"Workflow {name}: cannot {verb} what has ended, it is {phase}")
    return workflow


def _with_spec(workflow: Object, **fields: str | bool | None) -> Object:
    spec = {**workflow["spec"], **fields}
    return {**workflow, "spec": {name: value for name, value in spec.items() if value is not None}}


def _with_nodes(workflow: Object, nodes: dict[str, Object]) -> Object:
    return {**workflow, "status": {**workflow["status"], "nodes": nodes}}

"""``advance``: a Workflow's next state, given its document and what its pods did.

In: the Workflow, its pods by name, a source of WorkflowTemplates, the moment; out: the Workflow with its new status,
the pods to make and to end, and when to look again. Level-triggered like the real controller: it looks at what is,
not at what happened, so it may be called at any time, twice, or after a crash in between.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from scheduler_core.errors import InvalidValue
from voda_flows.local.argo import progress
from voda_flows.local.argo.execute import execute
from voda_flows.local.argo.look import look_at_pods, workflow_deadline
from voda_flows.local.argo.nodes import NodeTree, is_failed, is_fulfilled
from voda_flows.local.argo.run import Call, ExecutionError, Run
from voda_flows.local.argo.scope import described, failures, workflow_variables
from voda_flows.local.argo.substitute import substitute
from voda_flows.local.argo.templates import Templates, TemplateSource, effective_spec
from voda_flows.local.argo.ttl import expiry
from voda_flows.local.argo.validate import validate
from voda_flows.objects import COMPLETED_LABEL, POD_ENDED, WORKFLOW_ENDED, Object, format_time, phase_of

PHASE_LABEL = "workflows.argoproj.io/phase"
MAX_ROUNDS = 1000  # looks until nothing changes any more; a Workflow of that many skipped tasks in a row is no use


@dataclass(frozen=True, slots=True, kw_only=True)
class Advance:
    """What is to be done: keep ``workflow``, make and end pods, look again after ``again_s`` at the latest.

    ``end`` are pods whose processes are to end while their objects stay, with log and exit code; ``delete`` are pods
    that have not begun, and go. ``is_expired`` says that the Workflow itself is to be deleted.
    """

    workflow: Object
    create: tuple[Object, ...] = ()
    end: tuple[str, ...] = ()
    delete: tuple[str, ...] = ()
    again_s: float | None = None
    is_expired: bool = False


def advance(workflow: Object, pods: Mapping[str, Object], templates: TemplateSource, now: datetime) -> Advance:
    """The Workflow's next state.

    Args:
        workflow: The document as it is kept; it is not changed.
        pods: All pods of the Workflow by name, ended and terminating ones included.
        templates: Gives WorkflowTemplates by namespace and name.
        now: The moment, with a time zone.

    Returns:
        The Workflow with its new status (the same object where nothing changed) and what to do about pods. Pods are
        made before the Workflow is kept: a pod that is there is not made again.
    """
    status = workflow.get("status") or {}
    if status.get("phase") in WORKFLOW_ENDED:
        return _left_over(workflow, pods, now)
    try:
        run = _begin(workflow, pods, templates, now)
    except InvalidValue as error:
        return Advance(workflow=_refused(workflow, str(error), now))
    look_at_pods(run)
    end = None
    if run.shutdown or not run.spec.get("suspend"):
        end = _take_on(run)
    return Advance(
        workflow=_kept(run, end),
        create=tuple(run.create.values()),
        end=tuple(run.end),
        delete=tuple(run.delete),
        again_s=None if end else run.again_s,
    )


def _begin(workflow: Object, pods: Mapping[str, Object], source: TemplateSource, now: datetime) -> Run:
    status = workflow.get("status") or {}
    spec = status.get("storedWorkflowTemplateSpec")
    if not status.get("phase"):
        validate(workflow, source)
        spec = effective_spec(workflow, source)
    elif spec is None:
        spec = workflow["spec"]
    if not status.get("phase"):
        workflow = {**workflow, "metadata": described(workflow["metadata"], spec)}
    own = workflow["spec"]
    spec = {**spec, "suspend": own.get("suspend"), "shutdown": own.get("shutdown")}
    arguments = (spec.get("arguments") or {}).get("parameters") or ()
    own_pods = {name: pod for name, pod in pods.items() if _is_own(pod, workflow)}
    return Run(
        workflow=workflow,
        spec=spec,
        tree=NodeTree(workflow["metadata"]["name"], status.get("nodes") or {}, format_time(now)),
        templates=Templates(workflow, spec, source, status.get("storedTemplates") or {}),
        pods=own_pods,
        taken=frozenset(pods) - frozenset(own_pods),
        now=now,
        variables=workflow_variables(workflow, arguments),
        execute=execute,
        shutdown=spec.get("shutdown") or "",
        deadline=workflow_deadline(spec, status.get("startedAt") or format_time(now)),
    )


def _is_own(pod: Object, workflow: Object) -> bool:
    owners = [owner.get("uid", "") for owner in pod["metadata"].get("ownerReferences") or ()]
    return workflow["metadata"].get("uid", "") in owners


def _take_on(run: Run) -> tuple[str, str] | None:
    """Take the Workflow on until nothing changes; its (phase, message) once it has ended."""
    for _ in range(MAX_ROUNDS):
        before = run.tree.changes
        end = _round(run)
        if end is not None or run.tree.changes == before:
            return end
    return ("Error", f"expected the Workflow to settle within {MAX_ROUNDS} looks; it has too many tasks in a row")


def _round(run: Run) -> tuple[str, str] | None:
    """One look from the root on; how the Workflow ended, once it has."""
    entry = {"template": run.spec["entrypoint"], "arguments": run.spec.get("arguments") or {}}
    try:
        node = execute(run, run.name, Call(target=entry, scope=run.templates.scope))
    except ExecutionError as error:
        return ("Error", f"error in entry template execution: {error}")
    if not is_fulfilled(node):
        return None
    hook = _exit_hook(run.spec)
    ended = None
    if hook is not None and run.may_execute(on_exit=True):
        ended = _run_exit(run, hook, node["phase"])
        if not is_fulfilled(ended):
            return None
    if run.shutdown == "Stop" and _has_live_pods(run):
        return None
    return _end(run, node, ended)


def _end(run: Run, node: Object, exit_node: Object | None) -> tuple[str, str]:
    """Phase and message of a Workflow whose root node, and exit handler if it has one, have ended."""
    if is_failed(node):
        stopped = f"Stopped with strategy '{run.shutdown}'"
        return (node["phase"], stopped if run.shutdown else node.get("message", ""))
    if exit_node is not None and is_failed(exit_node):
        return (exit_node["phase"], exit_node.get("message", ""))
    return ("Succeeded", "")


def _has_live_pods(run: Run) -> bool:
    """Whether some pod has not ended yet: a Workflow that is stopped says how each of them ended."""
    return any(phase_of(pod) not in POD_ENDED for pod in run.pods.values())


def _exit_hook(spec: Object) -> Mapping[str, Any] | None:
    if spec.get("onExit"):
        return {"template": spec["onExit"], "arguments": spec.get("arguments") or {}}
    hook: Mapping[str, Any] | None = (spec.get("hooks") or {}).get("exit")
    return hook


def _run_exit(run: Run, hook: Mapping[str, Any], phase: str) -> Object:
    """The exit handler's node, taken on."""
    run.variables |= {"workflow.status": phase, "workflow.failures": failures(run.tree.by_id)}
    name = f"{run.name}.onExit"
    filled = {**hook, "arguments": substitute(hook.get("arguments") or {}, run.variables)}
    with suppress(ExecutionError):  # its node says so
        execute(run, name, Call(target=filled, scope=run.templates.scope, on_exit=True, flag={"hooked": True}))
    return run.tree.at(name)


def _kept(run: Run, end: tuple[str, str] | None) -> Object:
    """The Workflow with its new status; the same object where nothing changed."""
    before = run.workflow.get("status") or {}
    if not run.tree.changes and before.get("phase") and end is None:
        return run.workflow
    status = {**before, "nodes": run.tree.by_id, "progress": progress.update(run.tree)}
    status.setdefault("startedAt", run.tree.now)
    if run.workflow["spec"].get("workflowTemplateRef") and "storedWorkflowTemplateSpec" not in status:
        status["storedWorkflowTemplateSpec"] = {k: v for k, v in run.spec.items() if k not in {"suspend", "shutdown"}}
    if run.templates.stored:
        status["storedTemplates"] = run.templates.stored
    status["phase"] = "Running"
    status.pop("message", None)
    if end is not None:
        status |= {"phase": end[0], "finishedAt": run.tree.now} | ({"message": end[1]} if end[1] else {})
    status["conditions"] = _conditions(run, end is not None)
    return _labelled({**run.workflow, "status": status})


def _conditions(run: Run, ended: bool) -> list[Object]:
    pods = [node for node in run.tree.by_id.values() if node["type"] == "Pod"]
    found = []
    # The controller says so from its second look on, and there is none where no pod could be made.
    if any(node["phase"] != "Error" for node in pods) or phase_of(run.workflow):
        running = any(node["phase"] == "Running" for node in pods)
        found.append({"type": "PodRunning", "status": str(running)})
    return [*found, {"type": "Completed", "status": "True"}] if ended else found


def _labelled(workflow: Object) -> Object:
    phase = workflow["status"]["phase"]
    metadata = workflow["metadata"]
    labels = {**(metadata.get("labels") or {}), PHASE_LABEL: phase,
              COMPLETED_LABEL: "true" if phase in WORKFLOW_ENDED else "false"}  # fmt: skip
    return {**workflow, "metadata": {**metadata, "labels": labels}}


def _refused(workflow: Object, message: str, now: datetime) -> Object:
    said = message if message.startswith("invalid spec: ") else f"invalid spec: {message}"
    moment = format_time(now)
    status = {**(workflow.get("status") or {}), "phase": "Failed", "message": said, "progress": "0/0",
              "startedAt": moment, "finishedAt": moment,
              "conditions": [{"type": "Completed", "status": "True"}]}  # fmt: skip
    return _labelled({**workflow, "status": status})


def _left_over(workflow: Object, pods: Mapping[str, Object], now: datetime) -> Advance:
    """A Workflow that has ended: what of it still runs after a stop ends too, and it goes when its time is over."""
    end = expiry(workflow)
    left_s = None if end is None else (end - now).total_seconds()
    live = {name: phase_of(pod) for name, pod in pods.items() if _is_live(pod)}
    is_stopped = bool(workflow["spec"].get("shutdown"))
    running = tuple(name for name, phase in live.items() if is_stopped and phase == "Running")
    waiting = tuple(name for name in live if is_stopped and name not in running)
    is_expired = left_s is not None and left_s <= 0
    return Advance(workflow=workflow, end=running, delete=waiting, is_expired=is_expired,
                   again_s=None if is_expired else left_s)  # fmt: skip


def _is_live(pod: Object) -> bool:
    return phase_of(pod) not in POD_ENDED and not pod["metadata"].get("deletionTimestamp")

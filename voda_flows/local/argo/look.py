"""The first half of a reconcile: what pods did, and what a stop or a deadline means for what still runs.

In: a run with the nodes and pods as they were found; it brings the nodes up to that, and notes the pods to be ended.
Nothing is started here.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from voda_flows.local.argo.assess import assessed
from voda_flows.local.argo.nodes import is_fulfilled
from voda_flows.local.argo.pods import NODE_NAME, ON_EXIT_LABEL
from voda_flows.local.argo.run import Run
from voda_flows.objects import POD_ENDED, Object, parse_time, phase_of

LATE = "Step exceeded its deadline"


def look_at_pods(run: Run) -> None:
    """Bring the nodes of pods up to what their pods did; end gates and pods after a stop or a deadline."""
    by_node = {(pod["metadata"].get("annotations") or {}).get(NODE_NAME): pod for pod in run.pods.values()}
    late = _is_late(run)
    for node in list(run.tree.by_id.values()):
        if node["type"] == "Pod":
            _look_at_node(run, node, by_node.get(node["name"]))
        elif node["type"] == "Suspend":
            _look_at_gate(run, node, late=late)


def _look_at_gate(run: Run, node: Object, *, late: bool) -> None:
    """Fail an open gate after a stop or a deadline; give one that was opened the time of its end."""
    if is_fulfilled(node):
        run.tree.mark(node["name"], node["phase"])
    elif run.shutdown or late:
        run.tree.mark(node["name"], "Failed", f"Stopped with strategy '{run.shutdown}'" if run.shutdown else LATE)


def _is_late(run: Run) -> bool:
    """Whether the Workflow's own deadline is over; before that, it is to be looked at again by then."""
    if run.deadline is None:
        return False
    left_s = (run.deadline - run.now).total_seconds()
    if left_s > 0:
        run.look_again(left_s)
    return left_s <= 0


def _look_at_node(run: Run, node: Object, pod: Object | None) -> None:
    if pod is None:
        if node["phase"] == "Running":
            run.tree.mark(node["name"], "Error", "pod deleted")
        return
    is_known = is_fulfilled(node) and (node.get("outputs") or {}).get("exitCode") is not None
    if is_known or _is_older(node, pod):
        return
    fields = assessed(node, pod)
    phase = fields.pop("phase", node["phase"])
    run.tree.update(node["name"], **fields)
    run.tree.mark(node["name"], phase)
    if phase_of(pod) not in POD_ENDED:
        _end_after_stop(run, node["name"], pod)


def _is_older(node: Object, pod: Object) -> bool:
    """Whether a pod on its way out belongs to an earlier node of that name, from before a retry."""
    made = pod["metadata"].get("creationTimestamp")
    return bool(pod["metadata"].get("deletionTimestamp") and made) and parse_time(made) < parse_time(node["startedAt"])


def _end_after_stop(run: Run, name: str, pod: Object) -> None:
    """Note a pod to be ended where a stop asks for it; its deadline is kept by whoever runs it."""
    if run.may_execute(ON_EXIT_LABEL in (pod["metadata"].get("labels") or {})):
        return
    if not is_fulfilled(run.tree.at(name)):
        run.tree.mark(name, "Failed", f"workflow shutdown with strategy:  {run.shutdown}")
    if not pod["metadata"].get("deletionTimestamp"):
        wanted = run.end if phase_of(pod) == "Running" else run.delete
        wanted[pod["metadata"]["name"]] = None


def workflow_deadline(spec: Object, started: str) -> datetime | None:
    """When the Workflow must have ended, by its ``activeDeadlineSeconds``."""
    limit_s = spec.get("activeDeadlineSeconds")
    return None if limit_s is None else parse_time(started) + timedelta(seconds=float(limit_s))

"""The pods of a Workflow as its nodes tell of them: an argo-server shows Workflows, not pods."""

from __future__ import annotations

from typing import Final

from voda_flows.local.argo.execute import node_pod_name
from voda_flows.objects import WORKFLOW_LABEL, Object
from voda_flows.workflows.packed import nodes_of
from voda_flows.workflows.tree import parameters

#: Templates of a training job whose pods have a role.
_ROLES: Final = frozenset({"driver", "worker", "checkpoint"})
_PHASES: Final = {"Succeeded": "Succeeded", "Failed": "Failed", "Error": "Failed", "Running": "Running"}


def pods_of(workflow: Object) -> list[Object]:
    """A document for each pod that a Workflow has had: who it is, where it stands, and no more.

    Args:
        workflow: With its status.
    """
    nodes = nodes_of(workflow)
    return [_pod(workflow, node) for _, node in sorted(nodes.items()) if node.get("type") == "Pod"]


def _pod(workflow: Object, node: Object) -> Object:
    meta = workflow["metadata"]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": node_pod_name(meta["name"], node),
            "namespace": meta["namespace"],
            "uid": node["id"],
            "labels": {WORKFLOW_LABEL: meta["name"], **_labels(node)},
            "annotations": {
                "workflows.argoproj.io/node-id": node["id"],
                "workflows.argoproj.io/node-name": node["name"],
            },
            "creationTimestamp": node.get("startedAt"),
        },
        "spec": {},
        "status": {"phase": _PHASES.get(str(node.get("phase")), "Pending")},
    }


def _labels(node: Object) -> dict[str, str]:
    """The labels of a training job's pod, by which it is chosen."""
    role, given = str(node.get("templateName") or ""), parameters(node)
    if role not in _ROLES:
        return {}
    found = {"voda.dev/role": role, "voda.dev/segment": given.get("segment", "0")}
    for label, name in (("voda.dev/job", "job-name"), ("voda.dev/worker", "id")):
        if name in given:
            found[label] = given[name]
    return found

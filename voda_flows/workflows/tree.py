"""A Workflow's nodes as a tree, and where in it the jobs are; reads Argo's documents, decides nothing."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from voda_flows.objects import Object
from voda_flows.workflows.parameters import JOB_ENTRYPOINT, JOB_TEMPLATE


@dataclass(frozen=True, slots=True, kw_only=True)
class Tree:
    """The nodes of one Workflow.

    Attributes:
        workflow: The Workflow they belong to.
        nodes: By id.
        roots: Ids of the nodes that are a job, in order of their start.
    """

    workflow: Object
    nodes: Mapping[str, Object]
    roots: tuple[str, ...]

    def enclosing(self, node_id: str, template: str) -> Object | None:
        """The nearest node of a template that a node lies in, or None."""
        for node in self.boundaries(node_id):
            if node.get("templateName") == template:
                return node
        return None

    def boundaries(self, node_id: str) -> Iterator[Object]:
        """The nodes that a node lies in, from the innermost outwards."""
        node = self.nodes.get(node_id)
        while node is not None:
            node = self.nodes.get(node.get("boundaryID", ""))
            if node is not None:
                yield node

    def within(self, root_id: str) -> list[Object]:
        """Every node below a job's root, in order of start, then of name."""
        inside = [
            node
            for node_id, node in self.nodes.items()
            if any(outer["id"] == root_id for outer in self.boundaries(node_id))
        ]
        return sorted(inside, key=lambda node: (node.get("startedAt") or "", node.get("name", "")))


def tree(workflow: Object) -> Tree:
    """The tree of a Workflow, empty before its engine has looked at it."""
    nodes: dict[str, Object] = {
        node_id: {"id": node_id, **node} for node_id, node in (workflow.get("status", {}).get("nodes") or {}).items()
    }
    whole = (workflow.get("spec", {}).get("workflowTemplateRef") or {}).get("name") == JOB_TEMPLATE
    roots = [
        node
        for node in nodes.values()
        if _calls_job(node) or (whole and node.get("name") == workflow["metadata"]["name"])
    ]
    roots.sort(key=lambda node: (node.get("startedAt") or "", node.get("name", "")))
    return Tree(workflow=workflow, nodes=nodes, roots=tuple(node["id"] for node in roots))


def parameters(node: Object, side: str = "inputs") -> dict[str, str]:
    """The parameters on one side of a node by name; those without a value are left out."""
    found: list[dict[str, Any]] = (node.get(side) or {}).get("parameters") or []
    return {entry["name"]: str(entry["value"]) for entry in found if entry.get("value") is not None}


def _calls_job(node: Object) -> bool:
    """Whether a node calls the job's template; a retried call is one job, whose attempts lie inside it."""
    called = node.get("templateRef") or {}
    return (
        called.get("name") == JOB_TEMPLATE
        and called.get("template") == JOB_ENTRYPOINT
        and node.get("type") != "StepGroup"
    )

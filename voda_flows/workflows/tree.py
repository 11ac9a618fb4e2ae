"""A Workflow's nodes as a tree, and where in it the jobs are; reads Argo's documents, decides nothing."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from voda_flows.objects import Object
from voda_flows.workflows.packed import nodes_of
from voda_flows.workflows.parameters import JOB_ENTRYPOINT, JOB_TEMPLATE

#: Nodes that hold other nodes together, or stand for what was not run.
_NO_STEP = ("Skipped", "StepGroup", "TaskGroup")


@dataclass(frozen=True, slots=True, kw_only=True)
class SegmentNodes:
    """The nodes of one segment; those of the segments that follow lie inside it, but are theirs.

    Attributes:
        number: The segment's, from 0; one that was asked to wait anew has the number of the one before.
        by_template: Nodes that ran, by the template that they came from, in order of start.
    """

    number: int
    by_template: Mapping[str, tuple[Object, ...]]

    def of(self, template: str) -> tuple[Object, ...]:
        """The nodes made from a template."""
        return self.by_template.get(template, ())


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

    def depth(self, node_id: str) -> int:
        """How deep a node lies."""
        return sum(1 for _ in self.boundaries(node_id))

    def segments(self, root_id: str) -> tuple[SegmentNodes, ...]:
        """The segments of the job at a root, the outermost first: each lies inside the one before."""
        nodes = [self.nodes[root_id], *self.within(root_id)]
        ran = [node for node in nodes if node.get("type") not in _NO_STEP]
        found = {node["id"]: node for node in ran if node.get("templateName") == "segment"}
        inside: dict[str, dict[str, list[Object]]] = {node_id: {} for node_id in found}
        for node in ran:
            outer = self.enclosing(node["id"], "segment")
            if outer is not None and outer["id"] in inside:
                inside[outer["id"]].setdefault(node.get("templateName") or "", []).append(node)
        return tuple(
            SegmentNodes(
                number=int(parameters(found[node_id]).get("segment") or 0),
                by_template={template: tuple(nodes) for template, nodes in inside[node_id].items()},
            )
            for node_id in sorted(found, key=self.depth)
        )


def is_grant(gate: Object) -> bool:
    """Whether a gate was answered with GPUs, not with nothing to ask anew."""
    return gate.get("phase") == "Succeeded" and parameters(gate, "outputs").get("grant") == "given"


def tree(workflow: Object) -> Tree:
    """The tree of a Workflow, empty before its engine has looked at it.

    Raises:
        InvalidValue: Its nodes are packed in a way that is not known.
    """
    nodes: dict[str, Object] = {node_id: {"id": node_id, **node} for node_id, node in nodes_of(workflow).items()}
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

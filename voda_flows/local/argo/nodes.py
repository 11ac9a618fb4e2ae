"""The nodes of a Workflow while its next state is worked out.

In: ``status.nodes`` as it was; out: the same with what this reconcile changed. A node is copied when it is first
written to, so what came in stays as it was and a reconcile of a large Workflow copies only what it touches. All
other parts of the engine read and write nodes through this tree.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from voda_flows.local.argo.names import display_name, node_id
from voda_flows.objects import NODE_ENDED, WORKFLOW_ENDED, Object

FAILED = frozenset({"Failed", "Error"})

EXECUTABLE = frozenset({"Pod", "Suspend"})  # node types that have a progress of their own


def is_fulfilled(node: Object) -> bool:
    """Whether nothing more happens to the node: it has ended, or will never run."""
    return node.get("phase") in NODE_ENDED


def is_failed(node: Object) -> bool:
    """Whether the node ended badly."""
    return node.get("phase") in FAILED


def is_completed(node: Object) -> bool:
    """Whether the node ran and has ended."""
    return node.get("phase") in WORKFLOW_ENDED


@dataclass(frozen=True, slots=True, kw_only=True)
class NewNode:
    """What is known of a node when it is made; ``fields`` are further ones, as ``inputs`` or ``templateName``."""

    name: str
    type: str
    phase: str
    boundary_id: str = ""
    message: str = ""
    display: str = ""
    fields: Mapping[str, Any]


class NodeTree:
    """Nodes by id, copied on the first write; ``changes`` counts the writes that made a difference."""

    def __init__(self, workflow: str, nodes: Mapping[str, Object], now: str) -> None:
        self.workflow = workflow
        self.now = now
        self.by_id: dict[str, Object] = dict(nodes)
        self.changes = 0
        self._own: set[str] = set()

    def get(self, name: str) -> Object | None:
        """The node of that name, to read."""
        return self.by_id.get(node_id(self.workflow, name))

    def at(self, name: str) -> Object:
        """The node of that name, which is there."""
        return self.by_id[node_id(self.workflow, name)]

    def update(self, name: str, **fields: Any) -> Object:  # noqa: ANN401 - a node's fields have any type
        """Set fields of a node (None takes one away) and return it; what is already so is no change."""
        key = node_id(self.workflow, name)
        node = self.by_id[key]
        changed = {field: value for field, value in fields.items() if node.get(field) != value}
        if not changed:
            return node
        self.changes += 1
        if key not in self._own:
            self._own.add(key)
            node = self.by_id[key] = dict(node)
        for field, value in changed.items():
            if value is None:
                node.pop(field, None)
            else:
                node[field] = value
        return node

    def mark(self, name: str, phase: str, message: str | None = None) -> Object:
        """Set a node's phase, with the time when it ends; a message of None leaves the one it has."""
        fields: dict[str, Any] = {"phase": phase}
        if message is not None:
            fields["message"] = message or None
        if phase in NODE_ENDED and not self.at(name).get("finishedAt"):
            fields["finishedAt"] = self.now
        return self.update(name, **fields)

    def add(self, new: NewNode) -> Object:
        """Make a node, or bring the one of that name to the phase and message of the new one."""
        key = node_id(self.workflow, new.name)
        if key in self.by_id:
            return self.mark(new.name, new.phase, new.message)
        boundary = self.by_id.get(new.boundary_id)
        node: Object = {
            "id": key,
            "name": new.name,
            "displayName": new.display or display_name(new.name, boundary["name"] if boundary else None),
            "type": new.type,
            "phase": new.phase,
            "startedAt": self.now,
        }
        if new.boundary_id:
            node["boundaryID"] = new.boundary_id
        if new.message:
            node["message"] = new.message
        if new.phase in NODE_ENDED:
            node["finishedAt"] = self.now
        node.update(new.fields)
        self.by_id[key] = node
        self._own.add(key)
        self.changes += 1
        return node

    def connect(self, parent: str, child: str) -> None:
        """Make one node a child of another; both are given by name."""
        key = node_id(self.workflow, child)
        children = self.at(parent).get("children") or []
        if key not in children:
            self.update(parent, children=[*children, key])

    def connect_behind(self, earlier: str, child: str) -> None:
        """Make a node the child of all nodes with which an earlier one ends."""
        for key in self.outbound(self.at(earlier)["id"]):
            self.connect(self.by_id[key]["name"], child)

    def children(self, node: Object) -> list[Object]:
        """The children of a node, in the order in which they were added."""
        return [self.by_id[key] for key in node.get("children") or () if key in self.by_id]

    def outbound(self, key: str) -> list[str]:
        """Ids of the leaves with which a node ends: what follows it is connected to them."""
        node = self.by_id[key]
        kind, children = node["type"], node.get("children") or []
        if kind in {"Steps", "DAG"}:
            return [leaf for end in node.get("outboundNodes") or () for leaf in self.outbound(end)]
        if kind == "TaskGroup" and children:
            return [leaf for child in children for leaf in self.outbound(child)]
        if kind == "Retry":
            return children[-1:]
        return [key]

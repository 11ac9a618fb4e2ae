"""A Workflow's nodes as a tree of lines, as ``argo get`` draws them; pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from voda_flows.objects import Object
from voda_flows.workflows.tree import tree

_ICONS: Final = {
    "Succeeded": "✔",
    "Failed": "✖",
    "Error": "⚠",
    "Running": "●",
    "Pending": "◷",
    "Skipped": "○",
    "Omitted": "○",
}


def drawing(workflow: Object) -> list[str]:
    """The lines, the root first; step groups are left out, what they hold is drawn in their place."""
    nodes = tree(workflow).nodes
    root = next((node for node in nodes.values() if node.get("name") == workflow["metadata"]["name"]), None)
    if root is None:
        return []
    inside: dict[str, list[Object]] = {}
    for node in nodes.values():
        if node.get("boundaryID") and node.get("type") not in ("StepGroup", "TaskGroup"):
            inside.setdefault(node["boundaryID"], []).append(node)
    for found in inside.values():
        found.sort(key=lambda node: (node.get("startedAt") or "", node.get("name", "")))
    return [_line(root), *_below(root, inside, "")]


def _below(node: Object, inside: Mapping[str, list[Object]], indent: str) -> Iterator[str]:
    """The lines below a node."""
    shown = [child for child in inside.get(node["id"], ()) if child.get("type") != "Skipped"]
    for number, child in enumerate(shown):
        last = number == len(shown) - 1
        yield f"{indent}{'└─' if last else '├─'}{_line(child)}"
        yield from _below(child, inside, indent + ("  " if last else "│ "))


def _line(node: Object) -> str:
    """One node."""
    parts = [_ICONS.get(node.get("phase", ""), "?"), node.get("displayName") or node.get("name", "")]
    if node.get("type") == "Suspend" and node.get("phase") == "Running":
        parts.append("(waits)")
    if node.get("message"):
        parts.append(f"  {node['message']}")
    return " ".join(parts)

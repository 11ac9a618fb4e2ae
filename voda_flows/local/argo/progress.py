"""Progress of a Workflow and of its nodes: ``done/total`` over the leaves below, as Argo counts it.

In: the nodes; out: each node's ``progress`` and the sum over all leaves. A leaf that ended well counts as full
whatever it last said; what stands above sums up all leaves that can be reached from it, each once, so steps that
follow one another count in the groups before them too.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from voda_flows.local.argo.nodes import EXECUTABLE, NodeTree
from voda_flows.objects import Object

PROGRESS = re.compile(r"^(\d+)/(\d+)$")
DEFAULT = "0/1"
DONE = frozenset({"Succeeded", "Skipped", "Omitted"})


def parse(text: str | None) -> tuple[int, int] | None:
    """``N/M`` as two numbers, or None where it is no progress.

    >>> parse("45/100"), parse("3/2"), parse("0/0")
    ((45, 100), None, None)
    """
    match = PROGRESS.match(text or "")
    if match is None:
        return None
    done, total = int(match.group(1)), int(match.group(2))
    return (done, total) if 0 < total >= done else None


def leaf_progress(node: Object) -> str:
    """The progress of a node that runs something: as it says, full where it ended well."""
    said = str(node.get("progress") or DEFAULT)
    parsed = parse(said)
    return f"{parsed[1]}/{parsed[1]}" if parsed and node.get("phase") in DONE else said


def update(tree: NodeTree) -> str:
    """Bring every node's progress up to date and return the Workflow's."""
    done = total = 0
    for node in list(tree.by_id.values()):
        if node["type"] in EXECUTABLE:
            node = tree.update(node["name"], progress=leaf_progress(node))  # noqa: PLW2901 - the node as it is now
            part = parse(node["progress"]) or (0, 0)
            done, total = done + part[0], total + part[1]
    reached: dict[str, frozenset[str]] = {}
    for node in list(tree.by_id.values()):
        if node["type"] not in EXECUTABLE:
            counted = _sum(tree.by_id, _leaves(tree.by_id, node["id"], reached))
            if counted:
                tree.update(node["name"], progress=counted)
    return f"{done}/{total}"


def _sum(nodes: Mapping[str, Object], leaves: frozenset[str]) -> str | None:
    parts = [parse(nodes[key].get("progress")) or (0, 0) for key in leaves]
    total = sum(part[1] for part in parts)
    return f"{sum(part[0] for part in parts)}/{total}" if total else None


def _leaves(nodes: Mapping[str, Object], start: str, reached: dict[str, frozenset[str]]) -> frozenset[str]:
    """Ids of the leaves below a node, itself apart; ``reached`` keeps what is known (no recursion: trees are deep)."""
    stack = [start]
    while stack:
        key = stack[-1]
        children = [child for child in nodes[key].get("children") or () if child in nodes]
        missing = [child for child in children if child not in reached]
        if missing and key not in reached:
            stack.extend(missing)
            reached.setdefault(key, frozenset())  # what points back at itself is met once
            continue
        own = {child for child in children if nodes[child]["type"] in EXECUTABLE}
        reached[key] = frozenset(own).union(*(reached[child] for child in children))
        stack.pop()
    return reached[start]

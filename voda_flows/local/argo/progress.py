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
    masks: dict[tuple[int, int], int] = {}
    bits: dict[str, int] = {}
    for node in list(tree.by_id.values()):
        if node["type"] in EXECUTABLE:
            said = tree.update(node["name"], progress=leaf_progress(node))["progress"]
            bits[node["id"]] = 1 << len(bits)
            part = parse(said) or (0, 0)
            masks[part] = masks.get(part, 0) | bits[node["id"]]
    below: dict[str, int] = {}
    for node in list(tree.by_id.values()):
        if node["type"] not in EXECUTABLE:
            done, total = _sum(masks, _leaves_below(tree.by_id, node["id"], bits, below))
            if total:
                tree.update(node["name"], progress=f"{done}/{total}")
    done, total = _sum(masks, (1 << len(bits)) - 1)
    return f"{done}/{total}"


def _sum(masks: Mapping[tuple[int, int], int], leaves: int) -> tuple[int, int]:
    """Done and total over a set of leaves; ``masks`` has the leaves of each different progress."""
    counts = [(part, (leaves & mask).bit_count()) for part, mask in masks.items()]
    return sum(part[0] * count for part, count in counts), sum(part[1] * count for part, count in counts)


def _leaves_below(nodes: Mapping[str, Object], start: str, bits: Mapping[str, int], below: dict[str, int]) -> int:
    """The leaves below a node, itself apart, as a set of bits.

    ``below`` keeps what is known. There is no recursion, since trees are deep, and sets are whole numbers, since in
    a long chain of steps nearly every leaf is below nearly every node.
    """
    stack = [start]
    while stack:
        key = stack[-1]
        children = [child for child in nodes[key].get("children") or () if child in nodes]
        missing = [child for child in children if child not in below]
        if missing and key not in below:
            stack.extend(missing)
            below[key] = 0  # what points back at itself is met once
            continue
        found = 0
        for child in children:
            found |= below[child] | bits.get(child, 0)
        below[key] = found
        stack.pop()
    return below[start]

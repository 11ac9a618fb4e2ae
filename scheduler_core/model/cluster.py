"""The machines: nodes with GPU slots, and the topology tree that says how near two nodes are.

The tree comes from node labels, outermost level first (zone, block, rack, node); a node that lacks a level's label
stands alone on that level. Communication cost reads the tree; the placer weighs it against moves.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from scheduler_core.errors import InvalidValue


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """One machine.

    Attributes:
        name: Its name, unique.
        gpus: Allocatable GPUs (slots).
        gpu_type: Product name of its GPUs, empty when unlabelled.
        labels: Its labels, for topology levels.
        schedulable: False when cordoned, not ready or tainted: keeps what runs there, takes nothing new.
        foreign_gpus: GPUs held by pods that are not ours.
        leaving_gpus: GPUs held by pods on their way out (of ended segments and Workflows): not free yet, but nobody's,
            so a decision may promise them.
    """

    name: str
    gpus: int
    gpu_type: str = ""
    labels: Mapping[str, str] = field(default_factory=dict)
    schedulable: bool = True
    foreign_gpus: int = 0
    leaving_gpus: int = 0

    def __post_init__(self) -> None:
        """Check the counts once, here at the edge."""
        counts = (self.gpus, self.foreign_gpus, self.leaving_gpus)
        if min(counts) < 0:
            raise InvalidValue(f"node {self.name!r}: expected GPU counts >= 0, got {counts}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Cluster:
    """All nodes, by name, and the levels of the topology tree.

    Attributes:
        nodes: Sorted by name, names unique.
        levels: Label keys from the outermost level inwards; the node itself is the innermost level and not listed.
    """

    nodes: tuple[Node, ...]
    levels: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """Bring the nodes into their one order."""
        ordered = tuple(sorted(self.nodes, key=lambda node: node.name))
        if len({node.name for node in ordered}) != len(ordered):
            raise InvalidValue(f"cluster: expected unique node names, got {[node.name for node in ordered]}")
        object.__setattr__(self, "nodes", ordered)

    def path(self, node: Node) -> tuple[str, ...]:
        """Where a node hangs in the tree: its domain on each level, outermost first, ending in its name.

        A level whose label is missing yields the node's own name, so such nodes share nothing on that level.
        """
        return (*(node.labels.get(level) or node.name for level in self.levels), node.name)

    def common_levels(self, one: Node, other: Node) -> int:
        """How many levels two nodes share, from the outermost; ``len(levels) + 1`` for a node and itself."""
        shared = 0
        for mine, theirs in zip(self.path(one), self.path(other), strict=True):
            if mine != theirs:
                break
            shared += 1
        return shared

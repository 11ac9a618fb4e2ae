"""Queues of jobs and priority classes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from scheduler_core.errors import InvalidValue

#: Priority classes that exist without configuration; a number is accepted too.
DEFAULT_PRIORITY_CLASSES: Mapping[str, int] = MappingProxyType({"low": -100, "normal": 0, "high": 100})


@dataclass(frozen=True, slots=True, kw_only=True)
class Queue:
    """A line of jobs with its share of the cluster.

    Attributes:
        name: Its name, unique.
        nominal_gpus: GPUs per type that are its own (``""``: those of nodes without a label); of a type that is not
            named none are. Without any entry it has nothing of its own, and no limit either.
        namespaces: Namespaces that may submit to it; empty for all.
        max_priority: Highest priority value its jobs may have, None for any.
        borrows: Whether it may use GPUs beyond its own while nobody whose own they are wants them.
        borrow_limit: At most so many GPUs per type are borrowed; of a type that is not named there is no limit.
    """

    name: str
    nominal_gpus: Mapping[str, int] = field(default_factory=dict)
    namespaces: tuple[str, ...] = ()
    max_priority: int | None = None
    borrows: bool = True
    borrow_limit: Mapping[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Check the counts once, here at the edge."""
        counts = (*self.nominal_gpus.values(), *self.borrow_limit.values())
        if min(counts, default=0) < 0:
            raise InvalidValue(f"queue {self.name!r}: expected GPUs >= 0 by type, got {counts}")

    def nominal(self, gpu_type: str) -> int:
        """GPUs of a type that are its own."""
        return self.nominal_gpus.get(gpu_type, 0)

    def most(self, gpu_type: str) -> int | None:
        """The most GPUs of a type that its jobs may have together, None for no limit."""
        if not self.nominal_gpus:
            return None
        if not self.borrows:
            return self.nominal(gpu_type)
        limit = self.borrow_limit.get(gpu_type)
        return None if limit is None else self.nominal(gpu_type) + limit

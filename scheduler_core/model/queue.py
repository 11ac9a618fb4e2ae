"""Queues of jobs and priority classes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

#: Priority classes that exist without configuration; a number is accepted too.
DEFAULT_PRIORITY_CLASSES: Mapping[str, int] = MappingProxyType({"low": -100, "normal": 0, "high": 100})


@dataclass(frozen=True, slots=True, kw_only=True)
class Queue:
    """A line of jobs with its share of the cluster.

    Attributes:
        name: Its name, unique.
        nominal_gpus: GPUs per type that are its own; an empty mapping means no limit. Not enforced yet.
        namespaces: Namespaces that may submit to it; empty for all.
        max_priority: Highest priority value its jobs may have, None for any.
    """

    name: str
    nominal_gpus: Mapping[str, int] = field(default_factory=dict)
    namespaces: tuple[str, ...] = ()
    max_priority: int | None = None

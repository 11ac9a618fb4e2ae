"""Policies by name: ours, and those that other packages offer under the entry point group ``voda.policies``."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib.metadata import entry_points
from types import MappingProxyType
from typing import Final

from scheduler_core.allocate.elastic_fifo import elastic_fifo
from scheduler_core.allocate.fifo import fifo
from scheduler_core.errors import InvalidValue
from scheduler_core.model.ports import Policy

#: Entry point group in which a package may offer policies of its own.
GROUP: Final = "voda.policies"

_OURS: Final[Mapping[str, Policy]] = MappingProxyType({"elastic_fifo": elastic_fifo, "fifo": fifo})


def policy_names() -> tuple[str, ...]:
    """Every name that ``policy_named`` answers to, sorted."""
    return tuple(sorted({*_OURS, *(point.name for point in entry_points(group=GROUP))}))


@cache
def policy_named(name: str) -> Policy:
    """The policy of that name; one of ours cannot be replaced from outside.

    Args:
        name: A name of ``policy_names()``.

    Raises:
        InvalidValue: No policy has that name; the message lists those that exist.
    """
    if name in _OURS:
        return _OURS[name]
    for point in entry_points(group=GROUP, name=name):
        found: Policy = point.load()
        return found
    raise InvalidValue(f"policy: expected one of {', '.join(policy_names())}, got {name!r}")

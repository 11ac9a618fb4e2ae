"""Settings of the scheduler: one frozen value, read from the ConfigMap ``voda-config`` and checked here only.

An unknown key or a bad value is refused by name, with the nearest key that exists; nothing is guessed.
"""

from __future__ import annotations

import difflib
import json
import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, fields
from types import MappingProxyType
from typing import Any

from scheduler_core.errors import InvalidValue
from scheduler_core.model.queue import DEFAULT_PRIORITY_CLASSES, Queue

CONFIG_MAP = "voda-config"
#: Where the scheduler's own objects live unless its environment says otherwise.
DEFAULT_NAMESPACE = "voda"
NAMESPACE_VARIABLE = "VODA_SCHEDULER_NAMESPACE"
#: Its cron workflow, whose runs are no jobs.
SCHEDULER_CRON = "voda-scheduler"
#: Every how many minutes its cron ticks: a factor of 60, as ticks are counted from the full hour.
SCHEDULER_TICK_MINUTES = 5

#: A search for the jobs that make a policy fail takes a limit and a half a round, and the Lease runs out after 15 s.
_POLICY_LIMIT_S = 6.0
#: Settings that never had an effect, and the variable of a job's pods that has it. One that stands in a ConfigMap of
#: an older installation is passed over: no scheduler is to end for it.
RETIRED: Mapping[str, str] = MappingProxyType(
    {"agent_timeout_s": "VODA_AGENT_TIMEOUT", "reset_timeout_s": "VODA_RESET_TIMEOUT"}
)
#: Characters of a bad value that a message shows.
_SHOWN = 200
#: Digits of a whole number; far beyond any that makes sense, far below what Python refuses to read.
_DIGITS = 18


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What can be set; defaults suit a small cluster.

    Attributes:
        policy: Name of the allocation policy.
        decide_interval_s: Least time between decisions that disturb running jobs, seconds.
        start_limit_s: A granted worker that is not warm by then is deleted; a job starts with what it has, seconds.
        policy_limit_s: How long a policy may take for one decision before it is ended, seconds (> 0, at most 6: a round
            must end within the Lease's 15).
        segments_limit: Segments of a job after which it is no longer preempted or grown by choice (Argo ends at 100
            nested templates, and a segment nests two).
        namespace: The scheduler's own namespace.
        image: Image of the scheduler's own pods.
        topology_levels: Node labels from the outermost level of the topology tree inwards.
        history_rows: Decisions kept for ``voda watch`` and ``voda explain``.
        records: Decisions kept on disk for replay.
        records_age_s: How long they are kept at most, seconds.
        keep_workflows: Ended Workflows kept in local mode; of more, those that ended first go.
        keep_days: How long after its end a Workflow is kept in local mode, days.
        priority_classes: Value by name of class; higher goes first.
        queues: The queues by name.
    """

    policy: str = "elastic_fifo"
    decide_interval_s: float = 30.0
    start_limit_s: float = 300.0
    policy_limit_s: float = 5.0
    segments_limit: int = 30
    namespace: str = DEFAULT_NAMESPACE
    image: str = "voda:latest"
    topology_levels: tuple[str, ...] = ("topology.kubernetes.io/zone", "topology.kubernetes.io/rack")
    history_rows: int = 200
    records: int = 1000
    records_age_s: float = 7 * 24 * 3600.0
    keep_workflows: int = 1000
    keep_days: float = 30.0
    priority_classes: Mapping[str, int] = field(default_factory=lambda: DEFAULT_PRIORITY_CLASSES)
    queues: Mapping[str, Queue] = field(default_factory=lambda: {"default": Queue(name="default")})

    @classmethod
    def from_strings(cls, values: Mapping[str, str], *, where: str = f"ConfigMap {CONFIG_MAP}") -> Settings:
        """Settings from text.

        Args:
            values: Text by key; keys left out keep their defaults, those of ``RETIRED`` are passed over.
            where: Where the text stands, for messages.

        Returns:
            The settings.

        Raises:
            InvalidValue: An unknown key or a bad value, by name.
        """
        known = [entry.name for entry in fields(cls)]
        named = {key: text for key, text in values.items() if key not in RETIRED}
        for key in named:
            if key not in known:
                raise InvalidValue(f"{where}: expected a known setting, got {key!r}{near_miss(key, known)}")
        parsed: dict[str, Any] = {}
        for key, text in named.items():
            try:
                parsed[key] = _READERS.get(key, _word)(text)
            except ValueError as fault:
                found = text if len(text) <= _SHOWN else text[:_SHOWN] + "..."
                raise InvalidValue(f"{where}: setting {key!r}: expected {fault}, got {found!r}") from fault
        return cls(**parsed)


def scheduler_namespace(environment: Mapping[str, str] = os.environ) -> str:
    """The namespace of the scheduler's own objects: as the environment says, else the usual one."""
    return environment.get(NAMESPACE_VARIABLE) or DEFAULT_NAMESPACE


def near_miss(word: str, known: Iterable[str]) -> str:
    """A suggestion to end a message with: the nearest known word, else all of them.

    Args:
        word: What was found.
        known: What would have been right.

    Returns:
        Text that begins with a semicolon.
    """
    options = sorted(known)
    nearest = difflib.get_close_matches(word, options, n=1)
    return f"; did you mean {nearest[0]!r}?" if nearest else f"; known are {', '.join(options)}"


def _seconds(text: str) -> float:
    return _amount(text, "seconds")


def _days(text: str) -> float:
    return _amount(text, "days")


def _amount(text: str, unit: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 <= value < float("inf"):
        raise ValueError(f"{unit} >= 0")
    return value


def _policy_limit(text: str) -> float:
    value = _seconds(text)
    if not 0 < value <= _POLICY_LIMIT_S:
        raise ValueError(f"seconds > 0 and <= {_POLICY_LIMIT_S:g}")
    return value


def _count(text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) <= _DIGITS and int(text) > 0):
        raise ValueError("a whole number >= 1")
    return int(text)


def _word(text: str) -> str:
    if not text.strip():
        raise ValueError("a name")
    return text.strip()


def _list(text: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in text.split(",") if part.strip())


def _classes(text: str) -> Mapping[str, int]:
    expected = 'a JSON object of whole numbers by name, e.g. {"urgent": 1000}'
    value = _json(text, expected)
    if not isinstance(value, dict) or not all(_is_whole(number) for number in value.values()):
        raise ValueError(expected)
    return MappingProxyType(value)


def _queues(text: str) -> Mapping[str, Queue]:
    expected = 'a JSON object by name, e.g. {"default": {}, "lab": {"namespaces": ["a"], "max_priority": 0}}'
    value = _json(text, expected)
    if not isinstance(value, dict) or not value or not all(isinstance(row, dict) for row in value.values()):
        raise ValueError(expected)
    return {name: _queue(name, row, expected) for name, row in value.items()}


def _queue(name: str, row: Mapping[str, Any], expected: str) -> Queue:
    """One queue; what is of another kind than it should be would break rounds later, or mean something else."""
    gpus, namespaces, most = row.get("nominal_gpus", {}), row.get("namespaces", []), row.get("max_priority")
    if not row.keys() <= {"nominal_gpus", "namespaces", "max_priority"}:
        raise ValueError(f"{expected} (each with nominal_gpus, namespaces, max_priority only)")
    if not isinstance(gpus, dict) or not all(_is_whole(count) and count >= 0 for count in gpus.values()):
        raise ValueError(f"{expected} (nominal_gpus of {name!r} are whole numbers >= 0 by GPU type)")
    if not isinstance(namespaces, list) or not all(isinstance(one, str) for one in namespaces):
        raise ValueError(f"{expected} (namespaces of {name!r} are a list of names)")
    if most is not None and not _is_whole(most):
        raise ValueError(f"{expected} (max_priority of {name!r} is a whole number)")
    return Queue(name=name, nominal_gpus=gpus, namespaces=tuple(namespaces), max_priority=most)


def _is_whole(value: object) -> bool:
    return type(value) is int  # True is an int too


def _json(text: str, expected: str) -> object:
    try:
        found: object = json.loads(text)
    except (ValueError, RecursionError) as fault:  # ValueError: also of numbers with thousands of digits
        raise ValueError(expected) from fault
    return found


_READERS: Mapping[str, Callable[[str], Any]] = {
    "decide_interval_s": _seconds,
    "start_limit_s": _seconds,
    "policy_limit_s": _policy_limit,
    "records_age_s": _seconds,
    "segments_limit": _count,
    "history_rows": _count,
    "records": _count,
    "keep_workflows": _count,
    "keep_days": _days,
    "topology_levels": _list,
    "priority_classes": _classes,
    "queues": _queues,
}

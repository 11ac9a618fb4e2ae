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
from scheduler_core.model.communication import INSIDE_NODE, WHOLE_CLUSTER, Link
from scheduler_core.model.queue import DEFAULT_PRIORITY_CLASSES, Queue
from voda_flows import amounts

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
#: What can be said of a queue.
_QUEUE_FIELDS = frozenset(("nominal_gpus", "borrows", "borrow_limit", "namespaces", "max_priority"))
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
        backfilling: Whether jobs behind one that does not fit may start before it.
        tiresias_limits_gpu_s: GPU seconds of service at which ``tiresias`` and ``elastic_tiresias`` put a job one queue
            down, ascending.
        tiresias_promote_ratio: They put a job back when it has waited so many times as long as it ran, > 0.
        tiresias_compaction_jobs: ``elastic_tiresias`` cuts old jobs to their minima when more jobs than this wait.
        gpu_sizes: Sizes that jobs may have whose own input says nothing, GPUs in ascending order; empty for all.
        topology_levels: Node labels from the outermost level of the topology tree inwards.
        topology_links: Bandwidth and latency by level of that tree: a label of ``topology_levels``, ``node`` for inside
            a node, ``cluster`` for between the outermost domains; levels left out have defaults.
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
    backfilling: bool = True
    tiresias_limits_gpu_s: tuple[float, ...] = (3600.0,)
    tiresias_promote_ratio: float = 8.0
    tiresias_compaction_jobs: int = 10
    gpu_sizes: tuple[int, ...] = ()
    topology_levels: tuple[str, ...] = ("topology.kubernetes.io/zone", "topology.kubernetes.io/rack")
    topology_links: Mapping[str, Link] = field(default_factory=dict)
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
        made = cls(**parsed)
        levels = (INSIDE_NODE, *made.topology_levels, WHOLE_CLUSTER)
        for level in made.topology_links:
            if level not in levels:
                said = f"expected levels of topology_levels, {INSIDE_NODE!r} or {WHOLE_CLUSTER!r}, got {level!r}"
                raise InvalidValue(f"{where}: setting 'topology_links': {said}{near_miss(level, levels)}")
        return made


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
    return _number_of(text, "a whole number >= 1")


def _count_or_none(text: str) -> int:
    return 0 if text == "0" else _number_of(text, "a whole number >= 0")


def _number_of(text: str, expected: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) <= _DIGITS and int(text) > 0):
        raise ValueError(expected)
    return int(text)


def _flag(text: str) -> bool:
    if text not in ("true", "false"):
        raise ValueError("true or false")
    return text == "true"


def _ratio(text: str) -> float:
    value = _amount(text, "a number")
    if value <= 0:
        raise ValueError("a number > 0")
    return value


def _limits(text: str) -> tuple[float, ...]:
    expected = "GPU seconds > 0 in ascending order, joined by commas"
    try:
        found = tuple(_ratio(part.strip()) for part in text.split(","))
    except ValueError as fault:
        raise ValueError(expected) from fault
    if list(found) != sorted(set(found)):
        raise ValueError(expected)
    return found


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
    if not row.keys() <= _QUEUE_FIELDS:
        raise ValueError(f"{expected} (each with {', '.join(sorted(_QUEUE_FIELDS))} only)")
    for key in ("nominal_gpus", "borrow_limit"):
        gpus = row.get(key, {})
        if not isinstance(gpus, dict) or not all(_is_whole(count) and count >= 0 for count in gpus.values()):
            raise ValueError(f"{expected} ({key} of {name!r} are whole numbers >= 0 by GPU type)")
    namespaces, most, borrows = row.get("namespaces", []), row.get("max_priority"), row.get("borrows", True)
    if not isinstance(namespaces, list) or not all(isinstance(one, str) for one in namespaces):
        raise ValueError(f"{expected} (namespaces of {name!r} are a list of names)")
    if most is not None and not _is_whole(most):
        raise ValueError(f"{expected} (max_priority of {name!r} is a whole number)")
    if type(borrows) is not bool:
        raise ValueError(f"{expected} (borrows of {name!r} is true or false)")
    if "borrow_limit" in row and not (borrows and row.get("nominal_gpus")):
        raise ValueError(f"{expected} (borrow_limit of {name!r} needs nominal_gpus, and borrows that is not false)")
    return Queue(
        name=name,
        nominal_gpus=row.get("nominal_gpus", {}),
        namespaces=tuple(namespaces),
        max_priority=most,
        borrows=borrows,
        borrow_limit=row.get("borrow_limit", {}),
    )


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
    "backfilling": _flag,
    "tiresias_limits_gpu_s": _limits,
    "tiresias_promote_ratio": _ratio,
    "tiresias_compaction_jobs": _count_or_none,
    "gpu_sizes": amounts.gpu_sizes,
    "topology_levels": _list,
    "topology_links": amounts.links,
    "priority_classes": _classes,
    "queues": _queues,
}

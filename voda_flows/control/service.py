"""What a job has had, from its Workflow's own nodes: GPU time and waiting since its last start.

In: its gates and its workers' times. Out: ``Service``. A *start* is the first grant, and each later one for which the
job waited: who resizes or moves is granted again at once, who was preempted waits at least until the next decision.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from scheduler_core.model.service import Service
from voda_flows.objects import Object, seconds
from voda_flows.workflows.tree import SegmentNodes, is_grant

#: A grant that a job waited for longer than this is a start, seconds: the default interval between two decisions.
WAITED_S = 30.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Spent:
    """A worker's time on its GPUs, from any segment.

    Attributes:
        gpus: GPUs held.
        start_s: From when.
        end_s: Until when, None while it goes on.
    """

    gpus: int
    start_s: float
    end_s: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Wait:
    """A wait for GPUs.

    Attributes:
        since_s: When its first gate opened, seconds since the epoch.
        granted_s: When it was granted, None while it waits.
    """

    since_s: float
    granted_s: float | None


def waits_of(segments: Iterable[SegmentNodes]) -> tuple[Wait, ...]:
    """A job's waits, oldest first; gates that were answered with nothing are one wait with the next."""
    found: list[Wait] = []
    since_s: float | None = None
    for gate in (gate for segment in segments for gate in segment.of("gate")):
        opened_s = _started_s(gate)
        since_s = opened_s if since_s is None else since_s
        if is_grant(gate):
            found.append(Wait(since_s=since_s, granted_s=seconds(gate.get("finishedAt")) or opened_s))
            since_s = None
    if since_s is not None:
        found.append(Wait(since_s=since_s, granted_s=None))
    return tuple(found)


def service_of(waits: Sequence[Wait], spent: Iterable[Spent], now_s: float) -> Service:
    """What a job has had.

    Args:
        waits: Its waits, oldest first.
        spent: Times of its workers.
        now_s: Seconds since the epoch.
    """
    rows = [(one.gpus, one.start_s, max(one.start_s, now_s if one.end_s is None else one.end_s)) for one in spent]
    granted = [(wait.since_s, wait.granted_s) for wait in waits if wait.granted_s is not None]
    starts = granted[:1] + [(since_s, at_s) for since_s, at_s in granted[1:] if at_s - since_s > WAITED_S]
    waited_s = max(0.0, starts[-1][1] - starts[-1][0]) if starts else 0.0
    if waits and waits[-1].granted_s is None:
        waited_s = max(0.0, now_s - waits[-1].since_s)
    since = [row for row in rows if starts and row[1] >= starts[-1][1]]
    return Service(
        attained_gpu_s=sum((gpus * (end_s - start_s) for gpus, start_s, end_s in rows), 0.0),
        since_start_gpu_s=sum((gpus * (end_s - start_s) for gpus, start_s, end_s in since), 0.0),
        running_s=_covered_s((start_s, end_s) for _, start_s, end_s in since),
        waiting_s=waited_s,
    )


def _covered_s(spans: Iterable[tuple[float, float]]) -> float:
    """Seconds that lie in any of the spans."""
    covered_s, reached_s = 0.0, 0.0
    for start_s, end_s in sorted(spans):
        covered_s += max(0.0, end_s - max(start_s, reached_s))
        reached_s = max(reached_s, end_s)
    return covered_s


def _started_s(node: Object) -> float:
    return seconds(node.get("startedAt")) or 0.0

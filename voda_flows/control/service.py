"""What a job has had, from its Workflow's own nodes: GPU time and waiting since its last start.

In: its gates and its workers' times. Out: ``Service``. A *start* is the first grant, and each later one for which the
job waited: who resizes or moves is granted again at once, who was preempted waits at least until the next decision.
"""

from __future__ import annotations

import math
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Account:
    """What a job has had, but for what still goes on; read once for each version of its Workflow.

    Attributes:
        gpu_s: GPU seconds of workers that have ended.
        since_start_gpu_s: Of these, those since the last start.
        open_gpus: GPUs of the workers that have not ended.
        open_since_s: When each GPU of these was taken, all added up.
        running_s: Seconds since the last start in which it held GPUs, up to the first worker that has not ended.
        runs_since_s: When that worker began, None where all have ended.
        waited_s: How long it waited before its last start.
        waits_since_s: Since when it waits, None where it does not.
    """

    gpu_s: float = 0.0
    since_start_gpu_s: float = 0.0
    open_gpus: int = 0
    open_since_s: float = 0.0
    running_s: float = 0.0
    runs_since_s: float | None = None
    waited_s: float = 0.0
    waits_since_s: float | None = None


def account_of(waits: Sequence[Wait], spent: Sequence[Spent]) -> Account:
    """What a job has had.

    Args:
        waits: Its waits, oldest first.
        spent: Times of its workers; those that have not ended are of its present run.
    """
    granted = [(wait.since_s, wait.granted_s) for wait in waits if wait.granted_s is not None]
    starts = granted[:1] + [(since_s, at_s) for since_s, at_s in granted[1:] if at_s - since_s > WAITED_S]
    since_s, start_s = starts[-1] if starts else (math.inf, math.inf)
    ended = [(one.gpus, one.start_s, max(one.start_s, one.end_s)) for one in spent if one.end_s is not None]
    going = [one for one in spent if one.end_s is None]
    runs_since_s = min((one.start_s for one in going), default=None)
    until_s = math.inf if runs_since_s is None else runs_since_s
    return Account(
        gpu_s=sum((gpus * (to_s - from_s) for gpus, from_s, to_s in ended), 0.0),
        since_start_gpu_s=sum((gpus * (to_s - from_s) for gpus, from_s, to_s in ended if from_s >= start_s), 0.0),
        open_gpus=sum(one.gpus for one in going),
        open_since_s=sum((one.gpus * one.start_s for one in going), 0.0),
        running_s=_covered_s((from_s, min(to_s, until_s)) for _, from_s, to_s in ended if from_s >= start_s),
        runs_since_s=runs_since_s,
        waited_s=max(0.0, start_s - since_s) if starts else 0.0,
        waits_since_s=waits[-1].since_s if waits and waits[-1].granted_s is None else None,
    )


def service_of(account: Account, now_s: float) -> Service:
    """What a job has had up to a moment.

    Args:
        account: What it had when its Workflow was read.
        now_s: Seconds since the epoch.
    """
    going_gpu_s = max(0.0, account.open_gpus * now_s - account.open_since_s)
    runs_s = 0.0 if account.runs_since_s is None else max(0.0, now_s - account.runs_since_s)
    return Service(
        attained_gpu_s=account.gpu_s + going_gpu_s,
        since_start_gpu_s=account.since_start_gpu_s + going_gpu_s,
        running_s=account.running_s + runs_s,
        waiting_s=account.waited_s if account.waits_since_s is None else max(0.0, now_s - account.waits_since_s),
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

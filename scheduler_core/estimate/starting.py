"""When a waiting job may start: a guess from what running jobs have done so far, for people only.

In: the observation and the waiting jobs in order. Out: a moment for each of whom something can be said. A piece of the
first deciding step (estimate); nothing is decided by it. A job's remaining GPU seconds are what it has had, times the
epochs that are left per epoch done; it gives up its GPUs when they are used up at its present size.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections import Counter
from collections.abc import Sequence
from itertools import accumulate

from scheduler_core.model.job import Job, JobSpec
from scheduler_core.model.observation import Observation

_MINUTE_S = 60.0


def expected_starts(observation: Observation, waiting: Sequence[JobSpec]) -> dict[str, float]:
    """Moments at which enough GPUs will have become free for each job and those before it.

    Args:
        observation: The world.
        waiting: Jobs that hold nothing, in the order in which they are served.

    Returns:
        Seconds since the epoch by id; without those for which enough is free already, and those that must wait for a
        job of which nothing is known, or for more than there is.
    """
    ends = sorted(((_ends_s(job, observation.now_s), job) for job in observation.jobs if job.holding), key=_order)
    freed_by_type = {gpu_type: _freed(gpu_type, observation, ends) for gpu_type in {one.gpu_type for one in waiting}}
    before: Counter[str] = Counter()  # minima of those before, by the type that they ask for
    found: dict[str, float] = {}
    for spec in waiting:
        before[spec.gpu_type] += spec.min_gpus
        rivals = before[""] + before[spec.gpu_type] if spec.gpu_type else before.total()
        freed = freed_by_type[spec.gpu_type]
        place = bisect_left(freed, rivals)
        if 0 < place < len(freed) and observation.now_s < ends[place - 1][0] < math.inf:
            found[spec.id] = ends[place - 1][0]
    return found


def _freed(gpu_type: str, observation: Observation, ends: Sequence[tuple[float, Job]]) -> list[int]:
    """GPUs of a type, or of any, that are free now, and after each of the ends."""
    fits = {node.name: not gpu_type or node.gpu_type == gpu_type for node in observation.cluster.nodes}
    free = sum(gpus for node, gpus in observation.free_gpus().items() if fits[node])
    gains = (sum(worker.gpus for worker in job.holding if fits.get(worker.node, False)) for _, job in ends)
    return list(accumulate(gains, initial=free))


def _ends_s(job: Job, now_s: float) -> float:
    """When a job has used up what it needs, infinity before its first epoch is done."""
    done = job.progress.epoch
    if done < 1 or not job.held_gpus:
        return math.inf
    left_gpu_s = job.attained_gpu_s / done * max(0, job.spec.epochs - done)
    return now_s + left_gpu_s / job.held_gpus


def _order(row: tuple[float, Job]) -> tuple[float, str]:
    end_s, job = row
    return end_s, job.id


def told_or_new(told_s: float | None, start_s: float, now_s: float) -> float:
    """A guess that was told before where the new one is not much different, so that it is seldom told anew.

    Args:
        told_s: What was told, None for nothing; seconds since the epoch.
        start_s: The new guess.
        now_s: The moment.

    Returns:
        What was told, where that is not over and off by at most a minute or half of the wait; else the new guess.
    """
    if told_s is None or told_s < now_s or abs(start_s - told_s) > max(_MINUTE_S, (told_s - now_s) / 2):
        return start_s
    return told_s

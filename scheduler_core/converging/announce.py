"""What a waiting job's gate shows: its place in the queue and what it waits for, in words that seldom change."""

from __future__ import annotations

import math
import re

import numpy as np

from scheduler_core.allocate.feasible import Room
from scheduler_core.allocate.order import by_arrival
from scheduler_core.estimate.starting import expected_starts, told_or_new
from scheduler_core.model.job import Job, JobPhase
from scheduler_core.model.observation import Observation
from scheduler_core.model.quarantine import quarantines
from scheduler_core.model.target import Target
from scheduler_core.model.units import in_words

_MINUTE_S = 60.0
_TOLD = re.compile(r"; may start at (\d{4}-\d\d-\d\d) (\d\d:\d\d) UTC")


def queue_messages(observation: Observation, target: Target) -> dict[str, str]:
    """What to show on each waiting job's gate, by id in order.

    The place is a bucket (1, 2, 3-4, 5-8, ...), so a queue that moves on by one rewrites few of them; a start that was
    expected is told anew only when that has changed much.
    """
    waiting = [
        job.spec for job in observation.jobs if job.phase is JobPhase.QUEUED and not target.allocation.gpus(job.id)
    ]
    if not waiting:
        return {}
    left_out, jobs = quarantines(observation, target), observation.jobs_by_id
    in_order = by_arrival(waiting)
    starts = expected_starts(observation, in_order)
    room, messages = Room(observation.cluster), {}
    for place, spec in enumerate(in_order, start=1):
        text = f"queued: place {_bucket(place)}, waits for {in_words(spec.min_gpus)}"
        if spec.gpu_type:
            text += f" of type {spec.gpu_type}"
        never = room.unschedulable(spec)
        if never:
            text += f"; {never}"
        elif spec.id in starts:
            told_s = _told_s(jobs[spec.id].message)
            text += f"; may start at {_minute(told_or_new(told_s, starts[spec.id], observation.now_s))}"
        if why := last_failure(jobs[spec.id]):
            text += f"; {why}"
        if spec.id in left_out:
            text += f"; left out of decisions: {left_out[spec.id].reason}"
        messages[spec.id] = text
    return dict(sorted(messages.items()))


def last_failure(job: Job) -> str:
    """Which worker of a job failed last and why, where that is written down; empty where none did."""
    told = [failure for failure in job.failures if failure.why]
    return f"last failure: {told[-1].worker} on {told[-1].node}: {told[-1].why}" if told else ""


def _bucket(place: int) -> str:
    """The power-of-two bucket of a place from 1: 1, 2, 3-4, 5-8, ..."""
    high = 1 << (place - 1).bit_length()
    low = high // 2 + 1
    return str(high) if low >= high else f"{low}-{high}"


def _minute(moment_s: float) -> str:
    """A moment, to the minute that follows it."""
    day, time = str(np.datetime64(math.ceil(moment_s / _MINUTE_S), "m")).split("T")
    return f"{day} {time} UTC"


def _told_s(message: str) -> float | None:
    """The start that a message tells, seconds since the epoch; None where it tells none."""
    found = _TOLD.search(message)
    try:
        return float(np.datetime64(f"{found[1]}T{found[2]}", "s").astype(int)) if found else None
    except ValueError:  # somebody else wrote on the gate
        return None

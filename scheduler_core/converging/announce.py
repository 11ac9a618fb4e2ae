"""What a waiting job's gate shows: its place in the queue and what it waits for, in words that seldom change."""

from __future__ import annotations

from scheduler_core.allocate.feasible import unschedulable
from scheduler_core.allocate.order import by_arrival
from scheduler_core.model.job import Job, JobPhase
from scheduler_core.model.observation import Observation
from scheduler_core.model.quarantine import quarantines
from scheduler_core.model.target import Target
from scheduler_core.model.units import in_words


def queue_messages(observation: Observation, target: Target) -> dict[str, str]:
    """What to show on each waiting job's gate, by id in order.

    The place is a bucket (1, 2, 3-4, 5-8, ...), so a queue that moves on by one rewrites few of them.
    """
    waiting = [
        job.spec for job in observation.jobs if job.phase is JobPhase.QUEUED and not target.allocation.gpus(job.id)
    ]
    left_out, jobs = quarantines(observation, target), observation.jobs_by_id
    messages = {}
    for place, spec in enumerate(by_arrival(waiting), start=1):
        text = f"queued: place {_bucket(place)}, waits for {in_words(spec.min_gpus)}"
        if spec.gpu_type:
            text += f" of type {spec.gpu_type}"
        never = unschedulable(spec, observation.cluster)
        if never:
            text += f"; {never}"
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

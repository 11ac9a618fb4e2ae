"""How long jobs that were told to stop take to come back to their gate: the first half of what a restart costs."""

from __future__ import annotations

from collections.abc import Container
from dataclasses import dataclass

from scheduler_core.model.job import Job, JobPhase


@dataclass
class _Stop:
    """A stop under way; seconds since the epoch."""

    told_s: float
    queued_s: float | None = None


class Stops:
    """Jobs that were told to stop, as this process sees them; what another one saw the beginning of is left out."""

    def __init__(self) -> None:
        self._stops: dict[str, _Stop] = {}

    def watch(self, job: Job, now_s: float) -> None:
        """Take note of where a job stands."""
        if job.phase is JobPhase.STOPPING and job.stop_written:
            self._stops.setdefault(job.id, _Stop(told_s=now_s))
        elif job.phase is JobPhase.QUEUED and job.id in self._stops:
            stop = self._stops[job.id]
            stop.queued_s = now_s if stop.queued_s is None else stop.queued_s

    def started(self, job_id: str) -> float | None:
        """The job trains again: seconds from being told to stop to its gate, None where that was not seen."""
        stop = self._stops.pop(job_id, None)
        return stop.queued_s - stop.told_s if stop is not None and stop.queued_s is not None else None

    def forget(self, live: Container[str]) -> None:
        """Forget jobs that are gone."""
        for gone in [job_id for job_id in self._stops if job_id not in live]:
            del self._stops[gone]

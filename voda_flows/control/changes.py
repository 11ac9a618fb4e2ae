"""What changes of running jobs cost, as drivers tell it and as this process sees it.

Of a growth and a shrinking the driver says how long training stood still. A start lasts from the grant to the first
step. A restart is a job's way back to its gate after it was told to stop, and the start that follows; how long it
waited at the gate in between is no cost of it.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass

from scheduler_core.estimate.costs import Changes, learned_costs
from scheduler_core.model.job import Job, JobPhase
from scheduler_core.model.resizes import ResizeCosts, ResizeKind
from voda_flows.control.rows import ResizeSaid

#: A start that takes longer was held up by something else, seconds.
_LONGEST_START_S = 3600.0


@dataclass
class _Stop:
    """A stop under way; seconds since the epoch."""

    told_s: float
    queued_s: float | None = None


class ChangesSeen:
    """Changes that were measured; restarts of which another process saw the beginning are left out.

    Attributes:
        by_kind: What was measured.
        costs: What is made of it.
    """

    def __init__(self, by_kind: Mapping[str, Changes] | None = None) -> None:
        self.by_kind = dict(by_kind or {})
        self.costs: ResizeCosts = learned_costs(self.by_kind)
        self._stops: dict[str, _Stop] = {}

    def watch(self, job: Job, now_s: float) -> None:
        """Take note of where a job stands."""
        if job.phase is JobPhase.STOPPING and job.stop_written:
            self._stops.setdefault(job.id, _Stop(told_s=now_s))
        elif job.phase is JobPhase.QUEUED and job.id in self._stops:
            stop = self._stops[job.id]
            stop.queued_s = now_s if stop.queued_s is None else stop.queued_s

    def hear(self, job: Job, resizes: Iterable[ResizeSaid]) -> None:
        """Learn from new records of a job's driver."""
        for resize in resizes:
            if resize.kind == ResizeKind.START:
                self._started(job, resize)
            elif resize.kind in (ResizeKind.GROW, ResizeKind.SHRINK) and resize.still_s is not None:
                self._add(resize.kind, resize.to_size, resize.still_s)
        self.costs = learned_costs(self.by_kind)

    def forget(self, live: Container[str]) -> None:
        """Forget stops of jobs that are gone."""
        for gone in [job_id for job_id in self._stops if job_id not in live]:
            del self._stops[gone]

    def _started(self, job: Job, resize: ResizeSaid) -> None:
        if resize.first_step_s is None or job.granted_s is None:
            return
        seconds = resize.first_step_s - job.granted_s
        stop = self._stops.pop(job.id, None)
        if not 0.0 < seconds < _LONGEST_START_S:
            return
        self._add(ResizeKind.START, resize.to_size, seconds)
        if stop is not None and stop.queued_s is not None:
            self._add(ResizeKind.RESTART, resize.to_size, stop.queued_s - stop.told_s + seconds)

    def _add(self, kind: str, gpus: int, seconds: float) -> None:
        self.by_kind[str(kind)] = self.by_kind.get(kind, Changes()).with_one(gpus, seconds)

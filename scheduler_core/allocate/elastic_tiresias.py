"""Elastic Tiresias: what Tiresias gives, fewer for old jobs when many wait, and the rest where it speeds up most.

In: the jobs, the GPUs to give, what service each has had and what is known of their speed. Out: GPUs by job. Second of
the six steps (allocate). The rule is that of EDL (Elastic Deep Learning, TPDS'21) as Voda has it (IC2E 2023):

1. jobs by queue and first start, each the number it asks for where that fits (as ``tiresias``);
2. when more than ``compaction_jobs`` wait, jobs of the later queues are cut to their minima;
3. while GPUs are left, the greatest gain in speed-up per GPU gets its next step: a minimum for a job that waits.

Ours differs: the original leaves GPUs idle where a running job could take them but no further minimum of it fits, and
breaks ties by input order (ours by the order of step 1). Above the lowest priority class a job whose number does not
fit takes its minimum in step 1, and in step 3 a class takes part once those above have started or do not fit.
"""

from __future__ import annotations

import heapq
from bisect import bisect_right
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby

from scheduler_core.allocate.attained import asked_gpus, by_queue, queue_number
from scheduler_core.allocate.rungs import speedups, useful_rungs
from scheduler_core.allocate.walk import smallest, walk
from scheduler_core.model.allocation import Allocation
from scheduler_core.model.job import JobSpec
from scheduler_core.model.ports import PolicyInput


def elastic_tiresias(asked: PolicyInput) -> Allocation:
    """Give what jobs ask for by queue, compact where many wait, then follow the greatest gain.

    Args:
        asked: Jobs, GPUs, service and first starts, and speed tables (samples/s by GPUs).

    Returns:
        0 or an allowed size for each job; above its best known speed only where its user named that number.
    """
    ordered = by_queue(asked)
    lowest = min((spec.priority for spec in ordered), default=0)

    def wanted(spec: JobSpec, free_gpus: int) -> int:
        gpus = asked_gpus(spec)
        return gpus if gpus <= free_gpus or spec.priority == lowest else smallest(spec)

    gpus_by_job = walk(asked, ordered, wanted)
    waiting = [spec for spec in ordered if spec.id not in gpus_by_job and smallest(spec)]
    if len(waiting) > asked.params.tiresias.compaction_jobs:
        for spec in ordered:
            if spec.id in gpus_by_job and queue_number(asked, spec.id):
                gpus_by_job[spec.id] = smallest(spec)
    free_gpus = asked.capacity_gpus - sum(gpus_by_job.values())
    if free_gpus:
        _follow_gains(asked, ordered, gpus_by_job, free_gpus)
    return Allocation(gpus_by_job=gpus_by_job)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Ladder:
    """A job's useful sizes (GPUs, ascending) and its speed-ups at them."""

    sizes: Sequence[int]
    worth: Sequence[float]

    def gain(self, step: int) -> float:
        """Speed-up per GPU that the step to this size brings, step 0 being the start; 0 beyond the last."""
        if step >= len(self.sizes):
            return 0.0
        return (self.worth[step] - (self.worth[step - 1] if step else 0.0)) / self.cost_gpus(step)

    def cost_gpus(self, step: int) -> int:
        """GPUs that the step takes."""
        return self.sizes[step] - (self.sizes[step - 1] if step else 0)

    def steps_within(self, gpus: int) -> int:
        """Steps that are done at so many GPUs."""
        return bisect_right(self.sizes, gpus)


def _ladder(asked: PolicyInput, spec: JobSpec) -> _Ladder:
    speed = asked.speed_by_job.get(spec.id, ())
    sizes = useful_rungs(spec, speed)
    return _Ladder(sizes=sizes, worth=speedups(sizes, speed))


class _Gates:
    """Who may take part, in order: each priority class once all of the classes above have started or do not fit.

    Without backfilling each waiting job is let in alone, and behind one that does not fit only who holds GPUs now.
    """

    def __init__(self, asked: PolicyInput, ordered: Sequence[JobSpec], served: Mapping[str, int]) -> None:
        self._asked, self._ordered = asked, ordered
        self._is_served = [spec.id in served for spec in ordered]
        self._least_gpus = [smallest(spec) for spec in ordered]
        self._closed: deque[list[int]] = deque()
        for _, places in groupby(range(len(ordered)), key=lambda place: ordered[place].priority):
            self._closed += self._groups([place for place in places if self._least_gpus[place]])

    def open_next(self, free_gpus: int) -> tuple[list[int], int] | None:
        """The places of the next group that have GPUs or whose minima fit, and how many start; None after the last."""
        if not self._closed:
            return None
        group = self._closed.popleft()
        starting = [place for place in group if not self._is_served[place]]
        fitting = [place for place in starting if self._least_gpus[place] <= free_gpus]
        if len(fitting) < len(starting):
            self.does_not_fit()
        return [place for place in group if self._is_served[place]] + fitting, len(fitting)

    def does_not_fit(self) -> None:
        """A job that was let in does not fit: without backfilling nobody starts behind it."""
        if not self._asked.params.backfilling:
            kept = [
                [place for place in group if self._is_served[place] or self._holds(place)] for group in self._closed
            ]
            self._closed = deque(kept)

    def _groups(self, places: list[int]) -> list[list[int]]:
        """The groups of a class."""
        if self._asked.params.backfilling:
            return [places]
        served = [place for place in places if self._is_served[place]]
        return [served, *([place] for place in places if not self._is_served[place])]

    def _holds(self, place: int) -> bool:
        return self._asked.current.gpus(self._ordered[place].id) > 0


def _follow_gains(asked: PolicyInput, ordered: Sequence[JobSpec], gpus_by_job: dict[str, int], free_gpus: int) -> None:
    """Give what is left in steps, the greatest gain first, the earlier job on a tie; changes ``gpus_by_job``."""
    gates = _Gates(asked, ordered, gpus_by_job)
    ladders: dict[int, _Ladder] = {}
    heap: list[tuple[float, int, int]] = []  # (-gain per GPU, place in the order, step)

    def offer(place: int, step: int) -> None:
        gain = ladders[place].gain(step)
        if gain > 0 or not step:
            heapq.heappush(heap, (-gain, place, step))

    num_starting = 0
    while free_gpus:
        while not num_starting and (opened := gates.open_next(free_gpus)) is not None:
            places, num_starting = opened
            for place in places:
                ladders[place] = _ladder(asked, ordered[place])
                offer(place, ladders[place].steps_within(gpus_by_job.get(ordered[place].id, 0)))
        if not heap:
            return
        _, place, step = heapq.heappop(heap)
        num_starting -= not step
        cost_gpus = ladders[place].cost_gpus(step)
        if cost_gpus <= free_gpus:
            gpus_by_job[ordered[place].id] = ladders[place].sizes[step]
            free_gpus -= cost_gpus
            offer(place, step + 1)
        elif not step:
            gates.does_not_fit()

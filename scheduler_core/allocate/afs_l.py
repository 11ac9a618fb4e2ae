"""AFS-L: the next step goes to the job to which it is worth most, short jobs before long ones.

In: the jobs, the GPUs to give, how long each still needs and what is known of its speed. Out: GPUs by job. Second of
the six steps (allocate). The rule is AFS-L of "Elastic Resource Sharing for Distributed Deep Learning" (NSDI'21,
section 4, algorithm 1): a champion is sought by one pass over the jobs in order of arrival, each next job challenging
the champion so far, and gets its next step; then anew, until nothing is left. Of two jobs

* that both wait, the one with less work left wins, the earlier on a tie;
* else let ``a`` be the one that ends first at its own workers (seconds left at one GPU / speed-up; a waiting job never
  ends), the earlier on a tie, and ``b`` the other: ``b`` wins if its gain relative to its *new* speed is greater than
  that of ``a`` relative to its *old* speed, both per GPU of the step. A start is a gain of 1.

The original (Voda, IC2E 2023) takes the length of ``b`` at the workers of ``a``; ours at its own, as the paper. A step
is the job's next allowed size, the first its smallest, and one that no longer fits is out for this decision (the
original gives single GPUs and stops with an error below a minimum). No job grows past its best known speed. Jobs of a
lower priority class take part once each of the higher ones has started or does not fit. A job of which nothing is known
is longer than any known one.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from scheduler_core.allocate.order import by_arrival
from scheduler_core.allocate.rungs import speedups, useful_rungs
from scheduler_core.allocate.walk import smallest
from scheduler_core.model.allocation import Allocation
from scheduler_core.model.job import JobSpec
from scheduler_core.model.ports import PolicyInput

#: Jobs among which the next challenger is sought first; he is near more often than not.
FIRST_LOOK: Final = 64


def afs_l(asked: PolicyInput) -> Allocation:
    """Give one step after the other to the champion of all jobs.

    Args:
        asked: Jobs, GPUs, seconds left at one GPU, and speed tables (samples/s by GPUs).

    Returns:
        0 or an allowed size for each job.
    """
    ordered = [spec for spec in by_arrival(asked.specs) if smallest(spec)]
    contest = _Contest(asked, ordered)
    ends = [place for place in range(1, len(ordered)) if ordered[place].priority != ordered[place - 1].priority]
    for end in [*ends, len(ordered)]:
        is_last = end == len(ordered)
        contest.let_in(end)
        while contest.free_gpus and (is_last or contest.num_waiting) and (place := contest.champion()) is not None:
            contest.serve(place)
    return Allocation(gpus_by_job=contest.gpus_by_job())


class _Contest:
    """Who would win the next step. Arrays have the shape (num_jobs,), in order of arrival.

    A pass is not made anew for each step: ``_stack`` holds its successive champions, and after a step only the places
    from the winner's on are challenged again. What a job brings to a comparison is kept in arrays, so that the next
    challenger that beats a champion is found at once.
    """

    def __init__(self, asked: PolicyInput, ordered: Sequence[JobSpec]) -> None:
        self._asked, self._ordered = asked, ordered
        self.free_gpus = asked.capacity_gpus
        self.num_waiting = 0
        num_jobs = len(ordered)
        left = asked.remaining_s_by_job
        self._left_s = np.array([left.get(spec.id, math.inf) for spec in ordered], dtype=np.float64)
        self._length_s = np.full(num_jobs, math.inf)  # seconds left at its own workers
        self._as_a = np.full(num_jobs, math.inf)  # gain of the next step by old speed; -inf when out
        self._as_b = np.ones(num_jobs)  # gain of the next step by new speed; -inf when out
        #: What a waiting champion is held against: less left than it wins. -inf beats every one, inf none.
        self._to_waiting = self._left_s.copy()
        self._is_waiting = np.ones(num_jobs, dtype=np.bool_)
        self._steps: dict[int, int] = {}
        self._ladders: dict[int, tuple[Sequence[int], list[float]]] = {}
        self._stack: list[int] = []
        self._end = self._seen = 0

    def let_in(self, end: int) -> None:
        """Jobs before this place take part from now on."""
        self.num_waiting += int(np.count_nonzero(self._is_waiting[self._end : end]))
        self._end = end

    def champion(self) -> int | None:
        """The place of the job that wins the next step, None when all are out."""
        while True:
            if not self._stack:
                found = _first(self._as_b[self._seen : self._end] > -math.inf)
            else:
                found = self._challenger(self._stack[-1])
            if found is None:
                self._seen = self._end
                return self._stack[-1] if self._stack else None
            self._stack.append(self._seen + found)
            self._seen += found + 1

    def serve(self, place: int) -> None:
        """Give the champion its next step, or take it out where that does not fit; it is challenged anew after that."""
        self._stack.pop()
        self._seen = place
        step = self._steps.get(place, -1) + 1
        sizes = self._sizes(place)
        cost_gpus = sizes[step] - (sizes[step - 1] if step else 0)
        self.num_waiting -= not step
        self._is_waiting[place] = False
        if cost_gpus > self.free_gpus:
            self._take_out(place)
            if not step and not self._asked.params.backfilling:
                self._nobody_else_starts()
            return
        self.free_gpus -= cost_gpus
        self._steps[place] = step
        if step + 1 == len(sizes):
            self._take_out(place)
        else:
            self._set_running(place, step)

    def gpus_by_job(self) -> dict[str, int]:
        """What was given."""
        return {self._ordered[place].id: self._sizes(place)[step] for place, step in self._steps.items()}

    def _challenger(self, champion: int) -> int | None:
        """How far beyond the places that were seen the first job stands that beats the champion, if any does."""
        begin, size = self._seen, FIRST_LOOK
        while begin < self._end:
            part = slice(begin, min(begin + size, self._end))
            if self._is_waiting[champion]:
                found = _first(self._to_waiting[part] < self._left_s[champion])
            else:
                later = self._length_s[part] >= self._length_s[champion]
                beats_as_b = self._as_b[part] > self._as_a[champion]
                found = _first(np.where(later, beats_as_b, self._as_a[part] >= self._as_b[champion]))
            if found is not None:
                return begin - self._seen + found
            begin, size = part.stop, self._end
        return None

    def _set_running(self, place: int, step: int) -> None:
        """What a job at this step of its ladder brings to a comparison."""
        sizes, worth = self._ladders[place]
        now, then = worth[step], worth[step + 1]
        gain = (then - now) / (sizes[step + 1] - sizes[step])
        self._length_s[place] = self._left_s[place] / now if now > 0 else math.inf
        self._as_a[place] = gain / now if now > 0 else 0.0
        self._as_b[place] = gain / then if then > 0 else 0.0
        beats = self._as_a[place] >= 1.0 and self._length_s[place] < math.inf
        self._to_waiting[place] = -math.inf if beats else math.inf

    def _take_out(self, place: int) -> None:
        self._as_a[place] = self._as_b[place] = -math.inf
        self._length_s[place] = self._to_waiting[place] = math.inf

    def _nobody_else_starts(self) -> None:
        """Without backfilling: take out who waits and holds nothing now, of every class."""
        for place in map(int, np.flatnonzero(self._is_waiting)):
            if not self._asked.current.gpus(self._ordered[place].id):
                self._take_out(place)
                self._is_waiting[place] = False
                self.num_waiting -= place < self._end
        self._stack, self._seen = [], 0

    def _sizes(self, place: int) -> Sequence[int]:
        if place not in self._ladders:
            spec = self._ordered[place]
            speed = self._asked.speed_by_job.get(spec.id, ())
            sizes = useful_rungs(spec, speed)
            self._ladders[place] = sizes, speedups(sizes, speed)
        return self._ladders[place][0]


def _first(is_so: NDArray[np.bool_]) -> int | None:
    """The first place at which it is so, None where it is nowhere."""
    if not is_so.size:
        return None
    place = int(is_so.argmax())
    return place if is_so[place] else None

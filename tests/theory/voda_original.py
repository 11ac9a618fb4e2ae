"""A model of the original's eight algorithms, faults included, to hold ours against; nothing else may use it.

Written from their behaviour (heyfey/vodascheduler at 756e4d0, pkg/algorithm), not from their code. Its answers are
those of the golden file wherever the original answers; where the original stops with an error, this raises ``Stopped``.
Faults that change answers can be mended one by one, to tell which of them an answer is due to.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum


class Stopped(Exception):
    """The original stops with an error."""


class Fault(StrEnum):
    """Faults that change answers, where the original gives one."""

    PAST_BEST = "grows a job past its best speed"
    OTHERS_LENGTH = "takes the length of one job at the workers of another"
    INPUT_ORDER = "breaks ties by the order of input"
    SINGLE_GPUS = "gives a waiting job one GPU where its minimum is more"
    LEFT_OUT = "leaves out a running job because a second minimum of it would not fit"


Mended = Collection[Fault]


@dataclass(frozen=True, slots=True, kw_only=True)
class OriginalJob:
    """A job as the original knows it.

    Attributes:
        name: Its name.
        submitted_s: When it was submitted, which is also when it first started.
        least: Fewest GPUs.
        most: Most GPUs.
        num_proc: GPUs that its user asked for.
        queue: 0 or 1.
        left_s: Seconds left at one GPU.
        speedup: At 0, 1, 2, ... GPUs, beyond ``most``.
    """

    name: str
    submitted_s: float
    least: int
    most: int
    num_proc: int
    queue: int
    left_s: float
    speedup: tuple[float, ...]

    def at(self, gpus: int) -> float:
        """Speed-up at so many GPUs, 0 beyond the table."""
        return self.speedup[gpus] if gpus < len(self.speedup) else 0.0

    @property
    def best(self) -> int:
        """The smallest size of the highest speed."""
        return max(range(self.least, self.most + 1), key=lambda gpus: (self.speedup[gpus], -gpus))

    def gain(self, gpus: int) -> float:
        """What one more GPU brings."""
        return self.at(gpus + 1) - self.at(gpus)


Jobs = Sequence[OriginalJob]
Gpus = dict[str, int]


def _arrival(jobs: Jobs) -> list[OriginalJob]:
    return sorted(jobs, key=lambda job: job.submitted_s)


def _shortest(jobs: Jobs) -> list[OriginalJob]:
    return sorted(jobs, key=lambda job: job.left_s)


def _walked(ordered: Jobs, gpus: int, wanted: Callable[[OriginalJob], int]) -> Gpus:
    given: Gpus = {}
    for job in ordered:
        given[job.name] = wanted(job) if wanted(job) <= gpus else 0
        gpus -= given[job.name]
    return given


def _in_turn(growing: list[OriginalJob], gpus: int, given: Gpus) -> Gpus:
    """Single GPUs in turn, to jobs that got no minimum too, unless nobody has one; none leaves but at its maximum."""
    free = gpus - sum(given.values()) if any(given.values()) else 0
    while free > 0 and growing:
        for job in list(growing):
            if free == 0:
                break
            given[job.name] += 1
            free -= 1
            if given[job.name] == job.most:
                growing.remove(job)
    return given


def fifo(jobs: Jobs, gpus: int, _mended: Mended = ()) -> Gpus:
    """Minima by arrival."""
    return _walked(_arrival(jobs), gpus, lambda job: job.least)


def srjf(jobs: Jobs, gpus: int, _mended: Mended = ()) -> Gpus:
    """Minima by what is left."""
    return _walked(_shortest(jobs), gpus, lambda job: job.least)


def elastic_fifo(jobs: Jobs, gpus: int, _mended: Mended = ()) -> Gpus:
    """Minima, then single GPUs in turn up to the maximum."""
    given = fifo(jobs, gpus)
    return _in_turn([job for job in _arrival(jobs) if given[job.name] < job.most], gpus, given)


def elastic_srjf(jobs: Jobs, gpus: int, mended: Mended = ()) -> Gpus:
    """The same by what is left; a job whose minimum is its maximum is not left out and grows on."""
    given, growing = srjf(jobs, gpus), _shortest(jobs)
    if Fault.PAST_BEST in mended:
        growing = [job for job in growing if given[job.name] < job.most]
    return _in_turn(growing, gpus, given)


def tiresias(jobs: Jobs, gpus: int, _mended: Mended = ()) -> Gpus:
    """NUM_PROC by queue and first start."""
    return _walked(tiresias_order(jobs), gpus, lambda job: job.num_proc)


def tiresias_order(jobs: Jobs) -> list[OriginalJob]:
    """Jobs by queue, then by first start."""
    return sorted(_arrival(jobs), key=lambda job: job.queue)


def elastic_tiresias(jobs: Jobs, gpus: int, mended: Mended = ()) -> Gpus:
    """What Tiresias gives, cut back where more than ten wait, then by gain; ties by queue, then by input order."""
    given = tiresias(jobs, gpus)
    free = gpus - sum(given.values())
    if sum(not count for count in given.values()) > 10:
        for job in jobs:
            if job.queue and given[job.name]:
                free += given[job.name] - job.least
                given[job.name] = job.least
    candidates = [
        job
        for job in (tiresias_order(jobs) if Fault.INPUT_ORDER in mended else jobs)
        if given[job.name] < job.most and (free >= job.least or (Fault.LEFT_OUT in mended and given[job.name]))
    ]

    def gain(job: OriginalJob) -> float:
        count = given[job.name]
        return job.gain(count) if count else job.speedup[job.least] / job.least

    while free > 0 and candidates:
        best = min(candidates, key=lambda job: (-gain(job), job.queue))
        if gain(best) <= 0:
            break
        if not given[best.name] and free < best.least:
            candidates.remove(best)
            continue
        step = 1 if given[best.name] else best.least
        given[best.name] += step
        free -= step
        if given[best.name] >= best.most:
            candidates.remove(best)
    return given


def ffdl(jobs: Jobs, gpus: int, _mended: Mended = ()) -> Gpus:
    """The greatest total speed-up with at least one GPU for each of the first jobs; minima are not looked at."""
    kept = _arrival(jobs)[: min(len(jobs), gpus)]
    total = [[0.0] * (gpus + 1)]
    picks: list[list[int]] = []
    for job in kept:
        row, pick = [-10000.0] * (gpus + 1), [0] * (gpus + 1)
        for budget in range(gpus + 1):
            for count in range(1, min(job.most, budget) + 1):
                value = job.speedup[count] + total[-1][budget - count]
                if value > row[budget]:
                    row[budget], pick[budget] = value, count
        total.append(row)
        picks.append(pick)
    if total[-1][gpus] <= 0:
        raise Stopped("infeasible")
    given, left = {job.name: 0 for job in jobs}, gpus
    for job, pick in zip(reversed(kept), reversed(picks), strict=True):
        given[job.name] = pick[left]
        left -= pick[left]
    return given


def afs_l(jobs: Jobs, gpus: int, mended: Mended = ()) -> Gpus:
    """One GPU after the other to the champion; the length of the challenger is taken at the champion's workers."""
    given, candidates = {job.name: 0 for job in jobs}, _arrival(jobs)
    while candidates:
        champion = candidates[0]
        for other in candidates[1:]:
            champion = _winner(champion, other, given, mended)
        given[champion.name] += 1
        if Fault.SINGLE_GPUS in mended and given[champion.name] < champion.least:
            free = gpus - sum(given.values()) + 1
            given[champion.name] = champion.least if champion.least <= free else 0
        if given[champion.name] in (0, champion.most):
            candidates.remove(champion)
        if sum(given.values()) == gpus:
            break
    return given


def _winner(champion: OriginalJob, other: OriginalJob, given: Mapping[str, int], mended: Mended) -> OriginalJob:
    if not given[champion.name] and not given[other.name]:
        return champion if champion.left_s < other.left_s else other
    count = given[champion.name]
    others = given[other.name] if Fault.OTHERS_LENGTH in mended else count
    a, b = champion, other
    if _length_s(champion, count) >= _length_s(other, others):
        a, b = other, champion
    return b if _relative(b, given[b.name], 1) > _relative(a, given[a.name], 0) else a


def _length_s(job: OriginalJob, count: int) -> float:
    return job.left_s / job.at(count) if job.at(count) else math.inf


def _relative(job: OriginalJob, count: int, more: int) -> float:
    speed = job.at(count + more)
    return job.gain(count) / speed if speed else math.inf


ORIGINALS: Mapping[str, Callable[[Jobs, int, Mended], Gpus]] = {
    "afs_l": afs_l,
    "elastic_fifo": elastic_fifo,
    "elastic_srjf": elastic_srjf,
    "elastic_tiresias": elastic_tiresias,
    "ffdl": ffdl,
    "fifo": fifo,
    "srjf": srjf,
    "tiresias": tiresias,
}


def answer(name: str, jobs: Jobs, gpus: int, mended: Mended = ()) -> Gpus:
    """What the original answers.

    Raises:
        Stopped: It stops with an error, with the words of its check.
    """
    known = [replace(job, most=job.best) for job in jobs] if Fault.PAST_BEST in mended else jobs
    given = ORIGINALS[name](known, gpus, mended)
    for job in jobs:
        if given[job.name] > job.most:
            raise Stopped("Invalid GPU allocations: exceeded job max gpu")
        if 0 < given[job.name] < job.least:
            raise Stopped("Invalid GPU allocations: less than job min gpu")
    return given

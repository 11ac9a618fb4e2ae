"""Fills the observation with what was learned of jobs: speeds, remaining times, step times, costs of changes.

In: the observation and what drivers said. Out: the observation with its tables. Rows come in once each; a table is made
anew only when something new is known of its job or category, or when its evidence has aged by a step, and told anew
only when it says something else. A round without news costs next to nothing.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Container, Mapping
from dataclasses import dataclass, replace
from statistics import median

from scheduler_core.estimate.categories import as_of_category, with_job
from scheduler_core.estimate.remaining import remaining_s
from scheduler_core.estimate.rows import History, taught
from scheduler_core.estimate.seen import SizeSeen
from scheduler_core.estimate.speeds import holds_until_s, is_news, speed_table
from scheduler_core.model.job import Job
from scheduler_core.model.observation import Observation
from voda_flows.control.changes import ChangesSeen
from voda_flows.control.kept import JobLearned, Kept, Learned
from voda_flows.control.reports import DriverStatus

log = logging.getLogger(__name__)

#: What was learned is kept so often, seconds.
_SAVE_S = 60.0
#: A job's speeds are told anew so often at most, seconds: each time may be a decision.
_TELL_S = 10.0
#: Tables that are made in one round; what is left has its turn in the next.
_TABLES_A_ROUND = 30
#: Categories that are remembered, those heard of last: users name them as they like.
_MOST_CATEGORIES = 1_000
#: The largest size that is told, whatever a job asks for: a table is sought through for each decision.
_MOST_GPUS = 1024
#: Rows that are learned from in one round; what is left is read again in the next.
_ROWS_A_ROUND = 2_000


@dataclass(frozen=True, slots=True, kw_only=True)
class _Told:
    """What is told of a job.

    Attributes:
        own: What was known of the job itself.
        category: What was known of its category.
        known: Both.
        step_s: Seconds of one of its steps without communication, 0 where unknown.
        table: Its speeds.
        told_s: When they were told.
        until_s: When it is to be looked at again though nothing new is known: its evidence has aged by a step, or other
            speeds wait to be told.
    """

    own: History
    category: History
    known: History
    step_s: float
    table: tuple[float, ...]
    told_s: float
    until_s: float


class Learning:
    """Learns from what drivers say; used by one thread.

    Args:
        kept: Where what was learned is kept.
    """

    def __init__(self, kept: Kept) -> None:
        self._kept = kept
        self._is_loaded = False
        self._jobs: dict[str, JobLearned] = {}
        self._categories: dict[str, History] = {}
        self._shown: dict[str, History] = {}
        self._changes = ChangesSeen()
        self._told: dict[str, _Told] = {}
        self._is_new = False
        self._rows_left = 0
        self._last_made = ""
        self._saved_s = -math.inf

    def rows_read(self, driver_by_job: Mapping[str, str]) -> dict[str, int]:
        """How many report rows of each driver are known, by its uid.

        Args:
            driver_by_job: Uids of drivers by their jobs' ids.
        """
        self._load()
        known = {uid: self._jobs.get(job_id) for job_id, uid in driver_by_job.items()}
        return {uid: job.rows_read if job and job.driver == uid else 0 for uid, job in known.items()}

    def filled(self, observation: Observation, heard: Mapping[str, DriverStatus]) -> Observation:
        """The observation with what is known of its jobs.

        Args:
            observation: The world.
            heard: What drivers last said, by their jobs' ids.

        Returns:
            The same with speeds, remaining times, step times, gradients' bytes and costs.
        """
        self._load()
        jobs = observation.jobs_by_id
        self._rows_left = _ROWS_A_ROUND
        for job_id, job in jobs.items():
            self._changes.watch(job, observation.now_s)
            if job_id in heard:
                self._hear(job, heard[job_id])
        self._forget(jobs)
        self._tell(jobs, observation.now_s)
        self._save(observation.now_s)
        told = {job_id: (job, self._told[job_id]) for job_id, job in jobs.items() if job_id in self._told}
        left = {
            job_id: remaining_s(job.spec, one.known, one.table, job.progress.epoch)
            for job_id, (job, one) in told.items()
        }
        return replace(
            observation,
            speed_by_job={job_id: one.table for job_id, (_, one) in told.items() if one.table},
            remaining_s_by_job={job_id: left_s for job_id, left_s in left.items() if left_s is not None},
            step_s_by_job={job_id: one.step_s for job_id, (_, one) in told.items() if one.step_s},
            gradient_bytes_by_job={
                job_id: one.known.gradient_bytes for job_id, (_, one) in told.items() if one.known.gradient_bytes
            },
            costs=self._changes.costs,
        )

    def save(self) -> None:
        """Keep what was learned now, where there is anything new."""
        if self._is_new:
            newest = sorted(self._categories, key=lambda key: (-self._categories[key].last_s, key))
            for key in newest[_MOST_CATEGORIES:]:
                del self._categories[key]
                self._shown.pop(key, None)
            self._kept.save(Learned(jobs=self._jobs, categories=self._categories, changes=self._changes.by_kind))
            self._is_new = False

    def _load(self) -> None:
        if not self._is_loaded:
            self._is_loaded = True
            learned = self._kept.load()
            self._jobs, self._categories = dict(learned.jobs), dict(learned.categories)
            self._changes, self._shown = ChangesSeen(learned.changes), dict(learned.categories)

    def _save(self, now_s: float) -> None:
        if not 0 <= now_s - self._saved_s < _SAVE_S:
            self._saved_s = now_s
            self.save()

    def _hear(self, job: Job, status: DriverStatus) -> None:
        """Take what is new of an answer."""
        if not status.driver_uid:
            return
        known = self._jobs.get(job.id) or JobLearned()
        if known.driver != status.driver_uid:
            known = JobLearned(history=known.history, driver=status.driver_uid)
        if len(status.resizes) > known.resizes_read:
            self._changes.hear(job, status.resizes[known.resizes_read :])
            known = replace(known, resizes_read=len(status.resizes))
        if status.rows_to > known.rows_read == status.rows_from and self._rows_left > 0:
            self._rows_left -= len(status.rows)
            before, history = known.history, taught(known.history, status.rows)
            known = replace(known, history=history, rows_read=status.rows_to)
            self._teach_category(job, before, history)
        if known is not self._jobs.get(job.id):
            self._jobs[job.id] = known
            self._is_new = True

    def _teach_category(self, job: Job, before: History, history: History) -> None:
        key = _category(job)
        if key:
            self._categories[key] = with_job(self._categories.get(key, History()), before, history)
            if _is_news(self._shown.get(key, History()), self._categories[key]):
                self._shown[key] = self._categories[key]

    def _tell(self, jobs: Mapping[str, Job], now_s: float) -> None:
        """Make the tables of which something is new, as many as a round may make, in turn."""
        made, begin = 0, self._last_made
        for job_id in (*(one for one in jobs if one > begin), *(one for one in jobs if one <= begin)):
            job, told, learned = jobs[job_id], self._told.get(job_id), self._jobs.get(job_id)
            own = learned.history if learned else _NOTHING
            category = self._shown.get(_category(job), _NOTHING)
            is_known = own is not _NOTHING or category is not _NOTHING
            if not is_known or (told and told.own is own and told.category is category and now_s < told.until_s):
                continue
            if made == _TABLES_A_ROUND:
                return
            made += self._tell_job(job, own, category, now_s)
            self._last_made = job_id

    def _tell_job(self, job: Job, own: History, category: History, now_s: float) -> bool:
        """Tell what is known of a job; whether a table had to be made for it."""
        told, known = self._told.get(job.id), as_of_category(own, category)
        is_same = told is not None and told.known.sizes == known.sizes and now_s < told.until_s
        if told is not None and is_same:
            self._told[job.id] = replace(told, own=own, category=category, known=known, step_s=_step_s(known))
            return False
        table, told_s, until_s = _table(job, known.sizes, now_s), now_s, holds_until_s(known.sizes, now_s)
        if told is not None and told.table:
            waits = is_news(told.table, table) and now_s < told.told_s + _TELL_S
            until_s = min(until_s, told.told_s + _TELL_S) if waits else until_s
            if waits or not is_news(told.table, table):
                table, told_s = told.table, told.told_s
        self._told[job.id] = _Told(
            own=own,
            category=category,
            known=known,
            step_s=_step_s(known),
            table=table,
            told_s=told_s,
            until_s=until_s,
        )
        return True

    def _forget(self, live: Container[str]) -> None:
        for entries in (self._jobs, self._told):
            for gone in [job_id for job_id in entries if job_id not in live]:
                del entries[gone]
        self._changes.forget(live)


_NOTHING = History()


def _step_s(known: History) -> float:
    return median(known.step_s) if known.step_s else 0.0


def _category(job: Job) -> str:
    """Under what jobs learn from each other: speeds of one GPU type say nothing of another's."""
    return f"{job.spec.category}/{job.spec.gpu_type}" if job.spec.category else ""


def _table(job: Job, sizes: tuple[SizeSeen, ...], now_s: float) -> tuple[float, ...]:
    """A job's table, none where the numbers cannot be dealt with: nothing may keep a round from being run."""
    try:
        table = speed_table(sizes, min(job.spec.max_gpus, _MOST_GPUS), now_s)
    except (ArithmeticError, RuntimeError, ValueError) as fault:
        log.warning("job=%s speeds=unknown fault=%r", job.id, str(fault))
        return ()
    return table if all(map(math.isfinite, table)) else ()


def _is_news(shown: History, history: History) -> bool:
    """Whether a category's other jobs would be told something else."""
    if (shown.samples_per_epoch, shown.gradient_bytes) != (history.samples_per_epoch, history.gradient_bytes):
        return True
    if [seen.gpus for seen in shown.sizes] != [seen.gpus for seen in history.sizes]:
        return True
    pairs = zip(shown.sizes, history.sizes, strict=True)
    return any(old.is_enough is not new.is_enough or _differ(old.speed, new.speed) for old, new in pairs)


def _differ(old: float, new: float) -> bool:
    return abs(new - old) > 0.05 * old

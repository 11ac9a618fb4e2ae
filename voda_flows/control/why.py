"""Why jobs got or lost GPUs, in the words that stand on their Workflow's nodes: which decision, and for whom.

In: the targets of decisions, one after the other. Out: a sentence per job. It is remembered by this process only: what
a restarted scheduler has not decided itself it does not explain.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from scheduler_core.model.plan import NewWorker
from scheduler_core.model.target import Target
from voda_flows.report.history import short_name
from voda_flows.report.times import many

#: Other jobs that a sentence names.
_MOST_NAMED = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """A decision that changed a job's number of GPUs.

    Attributes:
        decision: Its number.
        policy: Who made it.
        before: GPUs by job before it.
        after: GPUs by job.
    """

    decision: int
    policy: str
    before: Mapping[str, int]
    after: Mapping[str, int]

    def moved(self, job_id: str) -> int:
        """How many GPUs more it gave to a job."""
        return self.after.get(job_id, 0) - self.before.get(job_id, 0)


class Why:
    """The last change of each job.

    Args:
        name_of: What people call a job of this id, ``<workflow>/<job-name>``; empty where it is not known.
    """

    def __init__(self, name_of: Callable[[str], str]) -> None:
        self._name_of = name_of
        self._changes: dict[str, Change] = {}

    def decided(self, before: Target, after: Target) -> None:
        """A decision was stored in place of another; jobs that are in none of them are forgotten."""
        gpus = (before.allocation.gpus_by_job, after.allocation.gpus_by_job)
        change = Change(decision=after.decision, policy=after.policy, before=dict(gpus[0]), after=dict(gpus[1]))
        known = {*gpus[0], *gpus[1], *after.reasons}
        kept = {job_id: old for job_id, old in self._changes.items() if job_id in known}
        self._changes = kept | {job_id: change for job_id in known if change.moved(job_id)}

    def of(self, job_id: str) -> str:
        """Which decision gave a job its number of GPUs, and whom that took from or gave to; empty where not known."""
        change = self._changes.get(job_id)
        if change is None:
            return ""
        by = f"decision {change.decision}, {change.policy}"
        is_less = change.moved(job_id) < 0
        others = [other for other in sorted({*change.before, *change.after}) if other != job_id]
        moved = [other for other in others if change.moved(other) and (change.moved(other) > 0) == is_less]
        named = [f"{short_name(name)} ({_from_to(change, other)})" for other in moved if (name := self._name_of(other))]
        if not named:
            return by
        most = [*named[:_MOST_NAMED], f"{len(named) - _MOST_NAMED} more"] if len(named) > _MOST_NAMED else named
        return f"{'makes room for' if is_less else 'takes what is left by'} {', '.join(most)}; {by}"


def with_why(text: str, why: str) -> str:
    """A text and why it is so."""
    return f"{text}; {why}" if why else text


def given(workers: Iterable[NewWorker], *, more: bool = False) -> str:
    """Granted workers in words.

    >>> given([NewWorker(id="w0", node="n0", gpus=2), NewWorker(id="w1", node="n1", gpus=2)])
    '4 GPUs: 2 on n0, 2 on n1'
    """
    by_node: dict[str, int] = {}
    for worker in workers:
        by_node[worker.node] = by_node.get(worker.node, 0) + worker.gpus
    where = ", ".join(f"{gpus} on {node}" for node, gpus in sorted(by_node.items()))
    gpus = many(sum(by_node.values()))
    return f"{gpus.replace(' ', ' more ', 1) if more else gpus}: {where}"


def _from_to(change: Change, job_id: str) -> str:
    return f"{change.before.get(job_id, 0)} -> {change.after.get(job_id, 0)}"

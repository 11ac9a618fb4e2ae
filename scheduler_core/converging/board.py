"""The board on which moves are planned: who stands where, what is free, and every step made so far.

In: jobs of which workers may move, GPUs by node. Out: steps. The rules are in ``moves``; here is only what each step
does, so that none can take what is not free.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum


@dataclass(frozen=True, slots=True, kw_only=True)
class Stand:
    """A job of which workers may move.

    Attributes:
        job_id: The job.
        gpus_per_worker: GPUs of each of its workers.
        min_workers: Fewest workers it can train with.
        here: Workers by node that it has.
        want: Workers by node that it is to have; the same for a job that may lend some.
    """

    job_id: str
    gpus_per_worker: int
    min_workers: int
    here: Mapping[str, int]
    want: Mapping[str, int]


class StepKind(StrEnum):
    """Kinds of step: grow there, shrink here, or go through a checkpoint."""

    ADD = "add"
    DROP = "drop"
    RESTART = "restart"


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One step of one job.

    Attributes:
        job_id: The job.
        kind: What it does.
        workers: Workers by node that come or go; for a restart all that it has.
    """

    job_id: str
    kind: StepKind
    workers: Mapping[str, int]


class Board:
    """Jobs, known by their place in the order, on nodes.

    Args:
        stands: The jobs.
        free_gpus: GPUs by node; what becomes free on other nodes is lost.

    Attributes:
        stands: The jobs.
        room: GPUs free by node.
        missing: By job, workers by node that are to come.
        excess: By job, workers by node that are to leave.
        missing_at: By node, jobs that still have to leave some other one and are to come to it.
        excess_at: By node, jobs that are to leave it.
        steps: All steps so far.
        lowest: By node that a step took from, the fewest GPUs that were free there.
        uses: How often each node was stood aside on.
    """

    def __init__(self, stands: Sequence[Stand], free_gpus: Mapping[str, int]) -> None:
        self.stands = stands
        self.room = dict(free_gpus)
        self.missing = [_less(stand.want, stand.here) for stand in stands]
        self.excess = [_less(stand.here, stand.want) for stand in stands]
        self.missing_at: dict[str, set[int]] = {}
        self.excess_at: dict[str, set[int]] = {}
        self.steps: list[Step] = []
        self.lowest: dict[str, int] = {}
        self.uses: Counter[str] = Counter()
        self._here = [Counter(stand.here) for stand in stands]
        self._num_workers = [sum(stand.here.values()) for stand in stands]
        self._num_wanted = [sum(stand.want.values()) for stand in stands]
        self._need: Counter[str] = Counter()
        self._freed: set[str] = set()
        for index in range(len(stands)):
            for node in self.excess[index]:
                self.excess_at.setdefault(node, set()).add(index)
            if self.excess[index]:
                for node, count in self.missing[index].items():
                    self.missing_at.setdefault(node, set()).add(index)
                    self._need[node] += count * stands[index].gpus_per_worker

    def slack(self, node: str) -> int:
        """GPUs free at a node less those missing there, of jobs that have to leave some other node."""
        return self.room.get(node, 0) - self._need[node]

    def spare(self, index: int) -> int:
        """Workers that a job has above its minimum, or above one."""
        return self._num_workers[index] - max(1, self.stands[index].min_workers)

    def surplus(self, index: int) -> int:
        """Workers that a job has above what it is to have."""
        return self._num_workers[index] - self._num_wanted[index]

    def workers(self, index: int) -> Mapping[str, int]:
        """Workers by node that a job has."""
        return self._here[index]

    def takers(self) -> list[int]:
        """Jobs that are to come to a node on which GPUs were freed since the last call, in order."""
        found = {index for node in self._freed for index in self.missing_at.get(node, ())}
        self._freed.clear()
        return sorted(found)

    def add(self, index: int, workers: Mapping[str, int]) -> None:
        """Workers come."""
        self._note(index, StepKind.ADD, workers)
        for node, count in workers.items():
            self.room[node] -= count * self.stands[index].gpus_per_worker
            self.lowest[node] = min(self.lowest.get(node, self.room[node]), self.room[node])
            self._shift(index, node, count)

    def drop(self, index: int, workers: Mapping[str, int]) -> None:
        """Workers leave."""
        self._note(index, StepKind.DROP, workers)
        for node, count in workers.items():
            self._free(node, count * self.stands[index].gpus_per_worker)
            self._shift(index, node, -count)

    def restart(self, index: int) -> None:
        """A job ends its segment: all of it leaves, and comes back when all it wants is free."""
        self._note(index, StepKind.RESTART, {node: count for node, count in self._here[index].items() if count})
        for node in list(self.missing[index]):
            self._set_missing(index, node, 0)
        for node, count in list(self._here[index].items()):
            self._free(node, count * self.stands[index].gpus_per_worker)
            self._set_excess(index, node, 0)
        self._here[index].clear()
        self._num_workers[index] = 0

    def _note(self, index: int, kind: StepKind, workers: Mapping[str, int]) -> None:
        self.steps.append(Step(job_id=self.stands[index].job_id, kind=kind, workers=dict(sorted(workers.items()))))

    def _free(self, node: str, gpus: int) -> None:
        if node in self.room:
            self.room[node] += gpus
            self._freed.add(node)

    def _shift(self, index: int, node: str, change: int) -> None:
        """A job's workers on a node become more or fewer."""
        self._here[index][node] += change
        self._num_workers[index] += change
        beyond = self._here[index][node] - self.stands[index].want.get(node, 0)
        self._set_missing(index, node, max(0, -beyond))
        self._set_excess(index, node, max(0, beyond))

    def _set_missing(self, index: int, node: str, count: int) -> None:
        before, gpus = self.missing[index].get(node, 0), self.stands[index].gpus_per_worker
        _set(self.missing[index], node, count)
        if self.excess[index]:
            self._need[node] += (count - before) * gpus
            self._list(self.missing_at, node, index, is_in=count > 0)

    def _set_excess(self, index: int, node: str, count: int) -> None:
        was_moving = bool(self.excess[index])
        _set(self.excess[index], node, count)
        self._list(self.excess_at, node, index, is_in=count > 0)
        if was_moving and not self.excess[index]:
            self._only_grows(index)

    def _only_grows(self, index: int) -> None:
        """A job has nowhere to leave any more: what it still misses is a growth, for which nobody makes way."""
        for node, count in self.missing[index].items():
            self._need[node] -= count * self.stands[index].gpus_per_worker
            self._list(self.missing_at, node, index, is_in=False)

    @staticmethod
    def _list(jobs_at: dict[str, set[int]], node: str, index: int, *, is_in: bool) -> None:
        if is_in:
            jobs_at.setdefault(node, set()).add(index)
        elif index in jobs_at.get(node, ()):
            jobs_at[node].discard(index)


def _less(more: Mapping[str, int], fewer: Mapping[str, int]) -> dict[str, int]:
    """What the first has above the second, in order of nodes."""
    left = ((node, count - fewer.get(node, 0)) for node, count in sorted(more.items()))
    return {node: count for node, count in left if count > 0}


def _set(counts: dict[str, int], node: str, count: int) -> None:
    if count:
        counts[node] = count
    else:
        counts.pop(node, None)

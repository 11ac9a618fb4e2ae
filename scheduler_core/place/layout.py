"""Who stands where while a placement is made: worker counts, free GPUs, and an index that finds the tightest fit.

An invariant held by one class: every change goes through ``put``, is written into a journal and can be taken back.
"""

from __future__ import annotations

import heapq
from collections.abc import Collection

import numpy as np
import numpy.typing as npt

from scheduler_core.place.problem import Problem, Workers


class Layout:
    """Workers by job and node, and what is free.

    Attributes:
        problem: What is placed.
        at: For each job, its workers by node.
        on: For each node, the jobs that stand there with their workers.
        free: GPUs of each node that nobody holds; on nodes that take nothing new 0, shape (num_nodes,).
    """

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self.at: list[Workers] = [{} for _ in problem.ids]
        self.on: list[Workers] = [{} for _ in problem.names]
        self.free: list[int] = [
            max(0, gpus) if is_open else 0
            for gpus, is_open in zip(problem.capacity, problem.is_open.tolist(), strict=True)
        ]
        self._open: list[bool] = problem.is_open.tolist()
        self._most = max(self.free, default=0)
        self._heaps: list[list[int]] = [[] for _ in range(self._most + 1)]
        for node, gpus in enumerate(self.free):
            self._heaps[gpus].append(node)
        self._journal: list[tuple[int, int, int]] = []

    def put(self, job: int, node: int, count: int) -> None:
        """Add workers of a job to a node (or, with a count < 0, take them away)."""
        self._journal.append((job, node, count))
        for counts, key in ((self.at[job], node), (self.on[node], job)):
            now = counts.get(key, 0) + count
            if now:
                counts[key] = now
            else:
                del counts[key]
        if self._open[node]:
            self.free[node] -= count * self.problem.worker_gpus[job]
            heapq.heappush(self._heaps[self.free[node]], node)

    def mark(self) -> int:
        """The moment to which ``back`` can return."""
        return len(self._journal)

    def back(self, mark: int) -> None:
        """Take back everything since a moment."""
        while len(self._journal) > mark:
            job, node, count = self._journal[-1]
            self.put(job, node, -count)
            del self._journal[-2:]

    def lift(self, job: int) -> None:
        """Take away all workers of a job from nodes that take new ones."""
        for node, count in list(self.at[job].items()):
            if self._open[node]:
                self.put(job, node, -count)

    def tightest(self, gpus: int, barred: Collection[int] = ()) -> int | None:
        """The open node with the fewest free GPUs that are enough; of these the first; None where there is none."""
        for free in range(gpus, self._most + 1):
            node = self._first(free, barred)
            if node is not None:
                return node
        return None

    def _first(self, free: int, barred: Collection[int]) -> int | None:
        """The first open node with exactly so many free GPUs; what the heap still says of others is forgotten."""
        heap, aside, found = self._heaps[free], [], None
        while heap:
            node = heap[0]
            if self.free[node] != free or not self._open[node]:
                heapq.heappop(heap)
            elif node in barred:
                aside.append(heapq.heappop(heap))
            else:
                found = node
                break
        for node in set(aside):
            heapq.heappush(heap, node)
        return found

    def slots(self, worker_gpus: int) -> npt.NDArray[np.int64]:
        """Workers of a size that each node has room for, shape (num_nodes,)."""
        return np.array(self.free, dtype=np.int64) // worker_gpus

    def missing(self, job: int) -> int:
        """Workers of a job that have no place yet."""
        return self.problem.want[job] - sum(self.at[job].values())

    def cost(self, job: int) -> float:
        """GPU-seconds of a job that is placed in full."""
        return self.problem.cost(job, self.at[job])

    def total_cost(self) -> float:
        """GPU-seconds of all jobs that are placed in full."""
        return sum(self.cost(job) for job in range(len(self.at)) if self.at[job] and not self.missing(job))

    def copy(self) -> Layout:
        """A layout of its own that says the same."""
        twin = Layout(self.problem)
        for job, workers in enumerate(self.at):
            for node, count in workers.items():
                twin.put(job, node, count)
        return twin

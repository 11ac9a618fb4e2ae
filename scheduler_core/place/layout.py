"""Who stands where while a placement is made: worker counts, free GPUs, and an index that finds the tightest fit.

An invariant held by one class: every change goes through ``put``, is written into a journal and can be taken back.
"""

from __future__ import annotations

import heapq
from collections.abc import Collection

import numpy as np
import numpy.typing as npt

from scheduler_core.place.problem import Problem, Workers

EPSILON = 1e-6
"""Fewer GPU-seconds than these are rounding."""


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
        self._num_free = [0] * (self._most + 1)
        for node, gpus in enumerate(self.free):
            self._heaps[gpus].append(node)
            self._num_free[gpus] += 1
        self._array = np.array(self.free, dtype=np.int64)
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
            before = self.free[node]
            after = self.free[node] = self._array[node] = before - count * self.problem.worker_gpus[job]
            self._num_free[before] -= 1
            self._num_free[after] += 1
            heapq.heappush(self._heaps[after], node)

    @property
    def most_gpus(self) -> int:
        """GPUs of the largest node that takes new workers."""
        return self._most

    @property
    def total_free(self) -> int:
        """GPUs that nobody holds on nodes that take new workers."""
        return sum(free * count for free, count in enumerate(self._num_free))

    def is_open(self, node: int) -> bool:
        """Whether a node takes new workers."""
        return self._open[node]

    def changed(self, mark: int) -> list[int]:
        """Jobs that were touched since a moment, in order."""
        return sorted({job for job, _, _ in self._journal[mark:]})

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

    def roomiest(self, gpus: int, most: int, barred: Collection[int] = ()) -> list[int]:
        """Open nodes with at most so many GPUs free, but some: for each number of free GPUs, from the most, the first.

        Args:
            gpus: The most free GPUs that are looked for.
            most: How many nodes.
            barred: Nodes that are not meant.
        """
        found = []
        for free in range(min(gpus, self._most), 0, -1):
            node = self._first(free, barred)
            if node is not None:
                found.append(node)
                if len(found) == most:
                    break
        return found

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
        return self._array // worker_gpus

    def nodes_needed(self, num_workers: int, worker_gpus: int) -> int | None:
        """The fewest nodes that have room for so many workers together; None where all have not."""
        nodes = 0
        for free in range(self._most, worker_gpus - 1, -1):
            taken = min(self._num_free[free], -(-num_workers // (free // worker_gpus)))
            nodes += taken
            num_workers -= taken * (free // worker_gpus)
            if num_workers <= 0:
                return nodes
        return None

    def missing(self, job: int) -> int:
        """Workers of a job that have no place yet."""
        return self.problem.want[job] - sum(self.at[job].values())

    def cost(self, job: int) -> float:
        """GPU-seconds of a job that is placed in full."""
        return self.problem.cost(job, self.at[job])

    def total_cost(self) -> float:
        """GPU-seconds of all jobs that are placed in full."""
        return sum(self.cost(job) for job in range(len(self.at)) if self.at[job] and not self.missing(job))

    @property
    def is_cheapest(self) -> bool:
        """Whether no other layout of the same jobs can cost less, as far as that is seen at once."""
        least = sum(self.problem.least_seconds(job) for job, workers in enumerate(self.at) if workers)
        return self.total_cost() <= least + EPSILON

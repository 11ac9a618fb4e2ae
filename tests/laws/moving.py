"""Drawn tasks for the laws of moves: jobs on nodes, where they are to go, and what a search of all ways finds."""

from __future__ import annotations

import random
from collections import Counter, deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from hypothesis import strategies as st

from scheduler_core.converging.board import Stand

#: Standings: for each job, how many workers it has on each node.
Standing = tuple[tuple[int, ...], ...]


@dataclass(frozen=True, kw_only=True)
class Task:
    """Jobs that are to move.

    Attributes:
        gpus: GPUs of the nodes n0, n1, ...
        stands: The jobs j0, j1, ...
    """

    gpus: tuple[int, ...]
    stands: tuple[Stand, ...]

    @property
    def free(self) -> dict[str, int]:
        """GPUs by node that are free at the start."""
        free = {f"n{index}": count for index, count in enumerate(self.gpus)}
        for stand in self.stands:
            for node, count in stand.here.items():
                free[node] -= count * stand.gpus_per_worker
        return free

    @property
    def num_missing(self) -> int:
        """Workers that are to come to some node."""
        return sum(max(0, count - one.here.get(node, 0)) for one in self.stands for node, count in one.want.items())


@st.composite
def tasks(draw: st.DrawFn, sizes: tuple[int, ...] = (1,), most_nodes: int = 3, most_jobs: int = 4) -> Task:
    """Where workers stand and where they are to stand, most nodes full; every job keeps one worker at least."""
    return task_of(random.Random(draw(st.integers(0, 2**32))), sizes, most_nodes, most_jobs)


def task_of(rng: random.Random, sizes: tuple[int, ...], most_nodes: int, most_jobs: int) -> Task:
    """A task by chance; drawn freely, few of them would have jobs that wait for each other."""
    gpus = tuple(rng.randint(max(sizes), 2 + max(sizes)) for _ in range(rng.randint(2, most_nodes)))
    room = {side: dict(enumerate(gpus)) for side in ("here", "want")}
    stands: list[Stand] = []
    for number in range(rng.randint(2, most_jobs)):
        size, count = rng.choice(sizes), rng.randint(1, 3)
        counts = {side: count if rng.random() < 0.9 else rng.randint(1, 3) for side in room}
        placed = {side: _placed(rng, room[side], size, counts[side]) for side in room}
        fewest = min(sum(nodes.values()) for nodes in placed.values())
        if fewest:
            least = rng.choice((1, fewest, fewest))
            stands.append(Stand(job_id=f"j{number}", gpus_per_worker=size, min_workers=least, **placed))
            for side, nodes in placed.items():
                for node, workers in nodes.items():
                    room[side][int(node[1:])] -= workers * size
    return Task(gpus=gpus, stands=tuple(stands))


def _placed(rng: random.Random, room: Mapping[int, int], size: int, most: int) -> dict[str, int]:
    """At most so many workers of this size on nodes with room, by chance."""
    slots = [node for node, gpus in room.items() for _ in range(gpus // size)]
    chosen = Counter(rng.sample(slots, min(most, len(slots))))
    return {f"n{node}": count for node, count in sorted(chosen.items())}


def can_be_done_in_place(task: Task, most_more: int = 1) -> bool:
    """Whether any order of steps leads to the target, with at most so many workers more than needed: by a search."""
    start, end = (_standing(task, [getattr(one, side) for one in task.stands]) for side in ("here", "want"))
    found, queue = {start}, deque([start])
    while queue:
        at = queue.popleft()
        if at == end:
            return True
        for after in _neighbours(task, at, most_more):
            if after not in found:
                found.add(after)
                queue.append(after)
    return False


def _standing(task: Task, placed: list[Mapping[str, int]]) -> Standing:
    return tuple(tuple(one.get(f"n{node}", 0) for node in range(len(task.gpus))) for one in placed)


def _neighbours(task: Task, at: Standing, most_more: int) -> Iterator[Standing]:
    for index, (stand, row) in enumerate(zip(task.stands, at, strict=True)):
        most = max(sum(stand.here.values()), sum(stand.want.values())) + most_more
        for node in range(len(task.gpus)):
            used = sum(one[node] * other.gpus_per_worker for one, other in zip(at, task.stands, strict=True))
            if used + stand.gpus_per_worker <= task.gpus[node] and sum(row) < most:
                yield _with(at, index, node, 1)
            if row[node] and sum(row) > max(1, stand.min_workers):
                yield _with(at, index, node, -1)


def _with(at: Standing, index: int, node: int, change: int) -> Standing:
    row = at[index]
    return (*at[:index], (*row[:node], row[node] + change, *row[node + 1 :]), *at[index + 1 :])

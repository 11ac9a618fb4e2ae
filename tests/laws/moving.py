"""Drawn tasks for the laws of moves: jobs on nodes, where they are to go, and what a search of all ways finds."""

from __future__ import annotations

from collections import deque
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
def tasks(draw: st.DrawFn, sizes: tuple[int, ...] = (1,), most_nodes: int = 4, most_jobs: int = 5) -> Task:
    """Where workers stand and where they are to stand, both within the nodes; every job keeps one at least."""
    gpus = tuple(draw(st.lists(st.integers(max(sizes), 3 + max(sizes)), min_size=2, max_size=most_nodes)))
    stands: list[Stand] = []
    left = {side: dict(enumerate(gpus)) for side in ("here", "want")}
    for number in range(draw(st.integers(1, most_jobs))):
        size = draw(st.sampled_from(sizes))
        placed = {side: _placed(draw, room, size) for side, room in left.items()}
        fewest = min(sum(placed["here"].values()), sum(placed["want"].values()))
        if fewest:
            stands.append(
                Stand(job_id=f"j{number}", gpus_per_worker=size, min_workers=draw(st.integers(1, fewest)), **placed)
            )
        else:
            for side, room in left.items():
                for node, count in placed[side].items():
                    room[int(node[1:])] += count * size
    return Task(gpus=gpus, stands=tuple(stands))


def _placed(draw: st.DrawFn, room: dict[int, int], size: int) -> dict[str, int]:
    """Some workers of this size on nodes with room, which is taken off."""
    placed: dict[str, int] = {}
    for node in draw(st.lists(st.sampled_from(sorted(room)), max_size=4)):
        if room[node] >= size:
            room[node] -= size
            placed[f"n{node}"] = placed.get(f"n{node}", 0) + 1
    return placed


def can_be_done_in_place(task: Task, most_more: int = 1) -> bool:
    """Whether any order of growing and shrinking leads to the target, by looking at all, with few workers more."""
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

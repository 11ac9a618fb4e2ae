"""Which of a job's workers stay: all of them while there is room, and when it shrinks those that are nearest together.

In: a problem. Out: a layout with what stays.
"""

from __future__ import annotations

from collections.abc import Iterable

from scheduler_core.place.layout import Layout
from scheduler_core.place.problem import Problem, Workers


def keep(problem: Problem, jobs: Iterable[int]) -> Layout:
    """Let each of these jobs keep what it may: no more than it is to have, and no more than each node may hold.

    Where a node may hold less than stands there, who came first stays. A job that shrinks keeps its workers in the
    smallest domain that has enough of them, and in it those on the nodes that have most.
    """
    layout = Layout(problem)
    left = list(problem.capacity)
    for job in sorted(jobs, key=lambda one: problem.arrival[one]):
        want, size = problem.want[job], problem.worker_gpus[job]
        room = {node: min(count, left[node] // size) for node, count in problem.standing[job].items()}
        for node, count in _together(problem, {node: count for node, count in room.items() if count > 0}, want):
            layout.put(job, node, count)
            left[node] -= count * size
    return layout


def _together(problem: Problem, room: Workers, want: int) -> list[tuple[int, int]]:
    """Up to so many of these workers, (node, workers), so that losing the others helps most."""
    if sum(room.values()) <= want:
        return sorted(room.items())
    chosen: list[tuple[int, int]] = []
    for node in _by_nearness(problem, room, want):
        stay = min(room[node], want)
        if stay:
            chosen.append((node, stay))
            want -= stay
    return chosen


def _by_nearness(problem: Problem, room: Workers, want: int) -> list[int]:
    """The nodes in the order in which they keep workers."""
    if len(room) == 1:
        return list(room)
    for depth in range(len(problem.starts) - 1, -1, -1):
        domains: dict[tuple[str, ...], Workers] = {}
        for node, count in room.items():
            domains.setdefault(problem.paths[node][:depth], {})[node] = count
        enough = [(len(inside), sum(inside.values()), path) for path, inside in domains.items()]
        enough = [one for one in enough if one[1] >= want]
        if enough:
            inside = domains[min(enough)[2]]
            return _inside(problem, inside, depth)
    return sorted(room)


def _inside(problem: Problem, inside: Workers, depth: int) -> list[int]:
    """Nodes of a domain: those of the domain below with most workers first, and so on inwards."""

    def rank(node: int) -> tuple[tuple[int, tuple[str, ...]], ...]:
        path = problem.paths[node]
        return tuple(
            (-sum(count for one, count in inside.items() if problem.paths[one][:level] == path[:level]), path[:level])
            for level in range(depth + 1, len(path) + 1)
        )

    return sorted(inside, key=rank)

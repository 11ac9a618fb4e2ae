"""Places what is missing around what stays, and decides who goes without where the nodes have not room for all.

In: a problem. Out: a layout in which every job is placed in full or not at all.

Larger workers go first, then larger jobs (best-fit decreasing). Only when that leaves somebody out although there is
room in all (small workers scattered over the nodes where a large one must go whole) are running jobs let go: the
smallest, twice as many each time. Where worker sizes divide one another (1, 2, 4, 8 GPUs) nobody who could be placed is
left out: large first, the free slots left for smaller sizes do not depend on the nodes chosen.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from scheduler_core.place.keep import keep
from scheduler_core.place.layout import Layout
from scheduler_core.place.problem import Problem
from scheduler_core.place.spread import spread


def fill(problem: Problem, kept: Layout) -> Layout:
    """Place every job, moving nobody who can stay.

    Args:
        problem: What is to be placed.
        kept: What stays; it is changed.

    Returns:
        Everybody placed or, where not all have room, as many as can be, the first in order of arrival before the
        others.
    """
    everybody = range(len(problem.ids))
    if not add(kept, everybody):
        return kept
    best, fitting = kept, _fitting(problem)
    for loose in _loosened(problem, fitting):
        if not add(loose, fitting):
            return loose
        best = max(best, loose, key=num_placed)
    return best


def add(layout: Layout, jobs: Iterable[int]) -> list[int]:
    """Place what is missing of these jobs; those that find no room lose all their places and are returned."""
    problem = layout.problem
    missing = {job: layout.missing(job) for job in jobs}
    order = sorted(
        (job for job, count in missing.items() if count),
        key=lambda job: (-problem.worker_gpus[job], -missing[job], problem.arrival[job]),
    )
    left_out = []
    for job in order:
        if not spread(layout, job):
            left_out.append(job)
            for node, count in list(layout.at[job].items()):
                layout.put(job, node, -count)
    return left_out


def num_placed(layout: Layout) -> int:
    """Jobs that have places."""
    return sum(map(bool, layout.at))


def _fitting(problem: Problem) -> list[int]:
    """The jobs that fit together if everything may move, the earliest first; counted, not yet placed."""
    is_open = problem.is_open.tolist()
    rooms = [gpus for gpus, takes in zip(problem.capacity, is_open, strict=True) if takes]
    chosen: list[int] = []
    workers_by_size: dict[int, int] = {}
    for job in sorted(range(len(problem.ids)), key=lambda one: problem.arrival[one]):
        size, want = problem.worker_gpus[job], problem.want[job]
        bound = sum(count for node, count in problem.standing[job].items() if not is_open[node])
        attempt = {**workers_by_size, size: workers_by_size.get(size, 0) + want - min(want, bound)}
        if _fit_together(attempt, rooms):
            chosen.append(job)
            workers_by_size = attempt
    return sorted(chosen)


def _fit_together(workers_by_size: Mapping[int, int], rooms: Iterable[int]) -> bool:
    """Whether nodes with these free GPUs hold so many workers of each size; exact where sizes divide one another."""
    left = list(rooms)
    for size, wanted in sorted(workers_by_size.items(), reverse=True):
        missing = wanted
        for index, room in enumerate(left):
            taken = min(missing, room // size)
            left[index] -= taken * size
            missing -= taken
        if missing:
            return False
    return True


def _loosened(problem: Problem, fitting: list[int]) -> Iterator[Layout]:
    """What the fitting jobs keep, with none and then more and more let go: smallest workers first, then fewest GPUs."""
    size, want = problem.worker_gpus, problem.want
    order = sorted(fitting, key=lambda job: (size[job], want[job] * size[job], job))
    num_loose = 0
    while True:
        layout = keep(problem, fitting)
        for job in order[:num_loose]:
            layout.lift(job)
        yield layout
        if num_loose >= len(order):
            return
        num_loose = max(1, 2 * num_loose)

"""Local search for few jobs: two or three are taken up and placed again in another order.

In: a layout in which everybody who can be has a place. Out: the same layout, no dearer (GPU-seconds, ``problem``).
Best-fit decreasing gives a large job the roomiest nodes although it could do with others, and a smaller one may then
find no node that holds it whole; the other order mends that. Source of the idea: Schrimpf et al., Record breaking
optimization results using the ruin and recreate principle (2000); here every small ruin is tried, none is drawn.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from itertools import permutations

from scheduler_core.place.improve import Search
from scheduler_core.place.layout import Layout
from scheduler_core.place.spread import spread

#: Orders that are tried in a round, at most; with more jobs than this allows they are only placed again in twos.
MOST_ORDERS = 120
#: Jobs taken up at once, at most.
MOST_TAKEN = 5


def recreate(layout: Layout, rounds: int) -> None:
    """Take up a few jobs and place them again, while that pays.

    Args:
        layout: Changed in place.
        rounds: How often at most all orders are tried.
    """
    search = Search(layout)
    has_levels = len(layout.problem.starts) > 2
    jobs = [job for job, workers in enumerate(layout.at) if workers]
    for _ in range(rounds):
        found = [
            search.tried(partial(_again, layout, order, anew=anew, by_seconds=by_seconds))
            for order in _orders(jobs)
            for anew, by_seconds in ((True, False), (True, True), (False, False))
            if (anew or any(map(layout.problem.standing.__getitem__, order))) and (has_levels or not by_seconds)
        ]
        if not any(found):
            return


def _orders(jobs: list[int]) -> Iterator[tuple[int, ...]]:
    """Orders of one, two, three jobs, as long as there are not too many of a kind."""
    orders = 1
    for number in range(1, MOST_TAKEN + 1):
        orders *= max(0, len(jobs) - number + 1)
        if orders <= MOST_ORDERS:
            yield from permutations(jobs, number)


def _again(layout: Layout, order: tuple[int, ...], *, anew: bool, by_seconds: bool) -> bool:
    for job in order:
        layout.lift(job)
    return all(spread(layout, job, anew=anew, by_seconds=by_seconds) for job in order)

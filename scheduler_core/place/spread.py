"""Which nodes a job's missing workers go on: its own, then as few as possible, near each other, where they fit tightest.

In: a layout and a job with workers missing. Out: the layout with them placed, or untouched where there is no room.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import numpy.typing as npt

from scheduler_core.place.layout import Layout
from scheduler_core.place.problem import Workers

Slots = npt.NDArray[np.int64]


def spread(layout: Layout, job: int, *, anew: bool = False) -> bool:
    """Place what is missing of a job.

    Nodes where it already stands are filled first, the roomiest before the others. The rest goes on as few further
    nodes as possible, inside the smallest domain that has room on so few (around its standing workers, if any), of
    these the tightest. Nodes that it should avoid are used only where all the others together have not room enough.

    Args:
        layout: What stands.
        job: Its number.
        anew: Whether it is placed as if it had never stood anywhere.

    Returns:
        Whether all of it has a place now; where not, nothing was changed.
    """
    need = layout.missing(job)
    if need <= 0:
        return True
    problem = layout.problem
    avoided = problem.avoided[job]
    near = layout.at[job] or ({} if anew else problem.standing[job])
    if not near:
        node = layout.tightest(need * problem.worker_gpus[job], avoided)
        if node is not None:
            layout.put(job, node, need)
            return True
    slots = layout.slots(problem.worker_gpus[job])
    total = int(slots.sum())
    if avoided:
        good = slots.copy()
        good[sorted(avoided)] = 0
        if good.sum() >= need:
            slots, total = good, int(good.sum())
    if total < need:
        return False
    _fill(layout, job, slots, near)
    return True


def _fill(layout: Layout, job: int, slots: Slots, near: Workers) -> None:
    """Place what is missing on nodes with these slots, which are enough, the near ones first."""
    own = np.zeros_like(slots)
    for node in near:
        own[node] = slots[node]
        slots[node] = 0
    need = layout.missing(job)
    here = min(need, int(own.sum()))
    _largest_first(layout, job, here, own)
    if need > here:
        anchor = min(near, key=lambda node: (-near[node], node), default=None)
        _largest_first(layout, job, need - here, _nearest(layout, slots, need - here, anchor))


def _largest_first(layout: Layout, job: int, need: int, slots: Slots) -> None:
    """Fill the roomiest nodes, and put what is left at the end where it fits tightest; ties go to the first node."""
    left = slots.copy()
    while need:
        fitting = np.flatnonzero(left >= need)
        if len(fitting):
            layout.put(job, int(fitting[left[fitting].argmin()]), need)
            return
        node = int(left.argmax())
        layout.put(job, node, int(left[node]))
        need -= int(left[node])
        left[node] = 0


def _nearest(layout: Layout, slots: Slots, need: int, anchor: int | None) -> Slots:
    """The slots inside the smallest domain that has room on the fewest nodes; those outside are 0."""
    most = int(slots.max())
    if need <= most and anchor is None:
        return slots
    fewest = int(_nodes_needed(slots, (0,), need, most)[0])
    for starts in reversed(layout.problem.starts[1:-1] if fewest > 1 or anchor is not None else ()):
        rooms = np.add.reduceat(slots, starts)
        fits = (rooms >= need) & (_nodes_needed(slots, starts, need, most) <= fewest)
        if anchor is not None:
            fits &= np.arange(len(starts)) == np.searchsorted(starts, anchor, side="right") - 1
        if fits.any():
            domain = int(np.where(fits, rooms, np.iinfo(np.int64).max).argmin())
            first, end = list(pairwise((*starts, len(slots))))[domain]
            inside = np.zeros_like(slots)
            inside[first:end] = slots[first:end]
            return inside
    return slots


def _nodes_needed(slots: Slots, starts: tuple[int, ...], need: int, most: int) -> Slots:
    """How many nodes each domain needs for so many workers, the roomiest first; shape (num_domains,).

    A domain that has not room enough needs more nodes than there are.
    """
    domain = np.zeros(len(slots), dtype=np.int64)
    domain[list(starts[1:])] = 1
    domain = domain.cumsum()
    counts = np.bincount(domain * (most + 1) + slots, minlength=len(starts) * (most + 1)).reshape(-1, most + 1)
    nodes = np.zeros(len(starts), dtype=np.int64)
    left = np.full(len(starts), need, dtype=np.int64)
    for room in range(most, 0, -1):
        taken = np.minimum(counts[:, room], -(-left // room))
        nodes += taken
        left = np.maximum(0, left - taken * room)
    nodes[left > 0] = len(slots) + 1
    return nodes

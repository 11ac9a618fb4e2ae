"""Which nodes a job's missing workers go on: its own, then as few as possible, near each other, where they fit tight.

In: a layout and a job with workers missing. Out: the layout with them placed, or untouched where there is no room.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Mapping

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
    size = layout.problem.worker_gpus[job]
    near = dict(layout.at[job]) or ({} if anew else layout.problem.standing[job])
    avoided = layout.problem.avoided[job]
    mark = layout.mark()
    for barred in (avoided, frozenset[int]()) if avoided else (avoided,):
        need = _fill_own(layout, job, near, barred)
        if not need or _fill_others(layout, job, need, near, barred):
            return True
        layout.back(mark)
        if layout.nodes_needed(layout.missing(job), size) is None:
            return False
    return False


def _fill_own(layout: Layout, job: int, near: Workers, barred: Iterable[int]) -> int:
    """Fill the nodes where the job stands; workers that find no room there."""
    size, need = layout.problem.worker_gpus[job], layout.missing(job)
    own = {node: layout.free[node] // size for node in near if node not in barred}
    own = {node: slots for node, slots in own.items() if slots}
    if own:
        taken = min(need, sum(own.values()))
        _largest_first(layout, job, taken, own)
        need -= taken
    return need


def _fill_others(layout: Layout, job: int, need: int, near: Workers, barred: frozenset[int]) -> bool:
    """Place workers on nodes where the job does not stand; False, with nothing changed, where there is no room."""
    size = layout.problem.worker_gpus[job]
    if not near:
        node = layout.tightest(need * size, barred)
        if node is not None:
            layout.put(job, node, need)
            return True
    slots = layout.slots(size)
    slots[[*barred, *near]] = 0
    if int(slots.sum()) < need:
        return False
    fewest = layout.nodes_needed(need, size) if not barred else None
    if fewest is None:
        fewest = int(_nodes_needed(slots, (0,), need)[0])
    anchor = min(near, key=lambda node: (-near[node], node), default=None)
    first, end = _nearest(layout, slots, need, fewest, anchor)
    inside = slots[first:end]
    _largest_first(layout, job, need, {first + int(node): int(inside[node]) for node in np.flatnonzero(inside)})
    return True


def _largest_first(layout: Layout, job: int, need: int, slots: Mapping[int, int]) -> None:
    """Fill the roomiest nodes, and put what is left at the end where it fits tightest; ties go to the first node."""
    left = sorted((-room, node) for node, room in slots.items())
    for place, (room, node) in enumerate(left):
        if need > -room:
            layout.put(job, node, -room)
            need += room
            continue
        tightest = min((-other, node) for other, node in left[place:] if -other >= need)
        layout.put(job, tightest[1], need)
        return


def _nearest(layout: Layout, slots: Slots, need: int, fewest: int, anchor: int | None) -> tuple[int, int]:
    """The smallest domain, as a range of nodes, that has room on the fewest nodes; of several the tightest."""
    for starts in reversed(layout.problem.starts[1:]):
        if anchor is not None:
            domain = bisect_right(starts, anchor) - 1
            first, end = _range(starts, domain, len(slots))
            inside = slots[first:end]
            if int(inside.sum()) >= need and int(_nodes_needed(inside, (0,), need)[0]) <= fewest:
                return first, end
        elif len(starts) < len(slots) or fewest == 1:
            rooms = np.add.reduceat(slots, starts)
            fits = rooms >= need
            if fits.any():
                fits &= _nodes_needed(slots, starts, need) <= fewest
            if fits.any():
                domain = int(np.where(fits, rooms, np.iinfo(np.int64).max).argmin())
                return _range(starts, domain, len(slots))
    return 0, len(slots)


def _range(starts: tuple[int, ...], domain: int, num_nodes: int) -> tuple[int, int]:
    return starts[domain], starts[domain + 1] if domain + 1 < len(starts) else num_nodes


def _nodes_needed(slots: Slots, starts: tuple[int, ...], need: int) -> Slots:
    """How many nodes each domain needs for so many workers, the roomiest first; shape (num_domains,).

    A domain that has not room enough needs more nodes than there are.
    """
    most = int(slots.max())
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

"""Which nodes a job's missing workers go on: its own, then as few as possible, near each other, where they fit tight.

In: a layout and a job with workers missing. Out: the layout with them placed, or untouched where there is no room.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping

import numpy as np
import numpy.typing as npt

from scheduler_core.place.layout import Layout
from scheduler_core.place.problem import Workers

Slots = npt.NDArray[np.int64]


def spread(layout: Layout, job: int, *, anew: bool = False, by_seconds: bool = False) -> bool:
    """Place what is missing of a job.

    Nodes where it already stands are filled first, the roomiest before the others. The rest goes on as few further
    nodes as possible, inside the smallest domain that has room on so few (around its standing workers, if any), of
    these the tightest. Nodes that it should avoid are used only where all the others together have not room enough.

    Args:
        layout: What stands.
        job: Its number.
        anew: Whether it is placed as if it had never stood anywhere.
        by_seconds: Whether more nodes are taken where that makes the job's communication cheaper: three in a rack
            rather than two in two racks. What is best for one job leaves less room for others, so it is not the rule.

    Returns:
        Whether all of it has a place now; where not, nothing was changed.
    """
    near = dict(layout.at[job]) or ({} if anew else layout.problem.standing[job])
    avoided = layout.problem.avoided[job]
    mark = layout.mark()
    for barred in (avoided, frozenset[int]()) if avoided else (avoided,):
        need = _fill_own(layout, job, near, barred)
        if not need:
            return True
        found = _others(layout, job, need, near, barred)
        if found:
            new = found[-1] if not by_seconds else min(found, key=lambda one: _communication(layout, job, one))
            for node, count in new.items():
                layout.put(job, node, count)
            return True
        layout.back(mark)
    return False


def _fill_own(layout: Layout, job: int, near: Workers, barred: Iterable[int]) -> int:
    """Fill the nodes where the job stands; workers that find no room there."""
    size, need = layout.problem.worker_gpus[job], layout.missing(job)
    own = {node: layout.free[node] // size for node in near if node not in barred}
    own = {node: slots for node, slots in own.items() if slots}
    if own:
        taken = min(need, sum(own.values()))
        for node, count in _largest_first(taken, own).items():
            layout.put(job, node, count)
        need -= taken
    return need


def _others(layout: Layout, job: int, need: int, near: Workers, barred: frozenset[int]) -> list[Workers]:
    """Ways to place workers on nodes where the job does not stand, the last on the fewest; none where is no room."""
    size = layout.problem.worker_gpus[job]
    if not near:
        node = layout.tightest(need * size, barred)
        if node is not None:
            return [{node: need}]
    slots = layout.slots(size)
    slots[[*barred, *near]] = 0
    if int(slots.sum()) < need:
        return []
    fewest = layout.nodes_needed(need, size) if not barred else _needed(slots.tolist(), need)
    anchor = min(near, key=lambda node: (-near[node], node), default=None)
    domains = _domains(layout, slots, need, anchor)
    found = []
    for domain, nodes in domains:
        found.append(_largest_first(need, _inside(slots, domain)))
        if nodes == fewest:
            break
    return found


def _communication(layout: Layout, job: int, new: Workers) -> float:
    return layout.problem.communication(job, {**layout.at[job], **new})


def _largest_first(need: int, slots: Mapping[int, int]) -> Workers:
    """Fill the roomiest nodes, and put what is left at the end where it fits tightest; ties go to the first node."""
    left = sorted((-room, node) for node, room in slots.items())
    chosen: Workers = {}
    for place, (room, node) in enumerate(left):
        if need <= -room:
            _, tightest = min((-other, node) for other, node in left[place:] if -other >= need)
            return {**chosen, tightest: need}
        chosen[node] = -room
        need += room
    return chosen


def _inside(slots: Slots, domain: tuple[int, int]) -> dict[int, int]:
    first, end = domain
    inside = slots[first:end]
    return {first + node: int(inside[node]) for node in np.flatnonzero(inside).tolist()}


def _domains(
    layout: Layout, slots: Slots, need: int, anchor: int | None
) -> Iterator[tuple[tuple[int, int], int | None]]:
    """Domains that have room, as ranges of nodes with how many of these are needed, from the smallest outwards.

    Of each depth the one around the standing workers, else that with room on the fewest nodes, or the tightest of them.
    """
    for starts in reversed(layout.problem.starts[1:]):
        if anchor is not None:
            domain = _range(starts, bisect_right(starts, anchor) - 1, len(slots))
            inside = slots[slice(*domain)]
            needed = _needed(inside.tolist(), need) if int(inside.sum()) >= need else None
        elif len(starts) == len(slots) and need > int(slots.max()):
            continue
        else:
            domain, needed = _best(slots, starts, need)
        if needed is not None:
            yield domain, needed
    yield (0, len(slots)), None


def _needed(slots: list[int], need: int) -> int:
    """How many of the roomiest nodes hold so many workers; all of them do."""
    slots.sort(reverse=True)
    for nodes, room in enumerate(slots):
        if need <= 0:
            return nodes
        need -= room
    return len(slots)


def _best(slots: Slots, starts: tuple[int, ...], need: int) -> tuple[tuple[int, int], int | None]:
    """Of the domains of one depth that with room on the fewest nodes, of several the tightest; and how many nodes."""
    rooms = np.add.reduceat(slots, starts)
    if not (rooms >= need).any():
        return (0, 0), None
    nodes = _nodes_needed(slots, starts, need)
    domain = int(np.lexsort((rooms, nodes))[0])
    return _range(starts, domain, len(slots)), int(nodes[domain])


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

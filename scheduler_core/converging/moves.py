"""How running jobs come to other nodes in place: every step of all moves together, proved before the first is made.

In: where the moving jobs stand, where they are to stand, and what is free. Out: steps that lead there, in an order that
never takes a GPU that is not free and never leaves a job below its minimum. Part of step five (plan): ``diff`` makes
those steps that can be made now, and plans anew in the next round from what is there then.

What is *missing* at a node is to come there, what is *excess* is to leave it; the node's *slack* is what is free there
less what is missing. A step is the first of these that anybody can make:

1. grow at the new place where that is free, then drop what is too many, first on nodes whose slack is negative;
2. shrink first, on a node whose slack is negative, a job that has more than its minimum;
3. step aside: grow at a node with slack that is not where the job is to go, then leave the node without. So jobs that
   wait for each other in a circle rotate through one free GPU, whoever's it is;
4. borrow the GPU that is in need, or one to stand aside on, from a job that stays and has more than its minimum;
5. restart, through a checkpoint, the last job in order that is in the way. What can be left out again at the end is.

Rule 1 lowers the number of workers missing, 2 and 3 lower the sum of negative slack and raise nothing missing, 4 is
followed by 1 or 3, and 5 ends a move: so the plan ends, and so do rounds that each make the first steps of such a plan.
Where all workers have the same size, one free GPU, or one to borrow, is enough for any rotation: a job is restarted
only where no other way is. With several sizes the planner is a heuristic.
"""

from __future__ import annotations

import heapq
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from scheduler_core.converging.board import Board, Stand, Step

#: Plans that are tried to do with fewer restarts.
_MOST_TRIES = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Moves:
    """Steps that lead to the target.

    Attributes:
        steps: In the order in which each can be made.
        restarts: Jobs that have to go through a checkpoint, in order of the plan.
        lowest_gpus: By node that any step takes from, the fewest GPUs free there at any time of the plan.
        unmoved: Jobs that cannot come to where they are wanted, whoever leaves; in order.
        short: Nodes to which jobs are to come for which others have to leave, before the first step.
    """

    steps: tuple[Step, ...] = ()
    restarts: tuple[str, ...] = ()
    lowest_gpus: Mapping[str, int] = field(default_factory=dict)
    unmoved: tuple[str, ...] = ()
    short: frozenset[str] = frozenset()


def moves(stands: Sequence[Stand], free_gpus: Mapping[str, int], promised: Collection[str] = ()) -> Moves:
    """Plan the moves of running jobs.

    Args:
        stands: Jobs in order: the last are disturbed first. Those that want what they have may lend; what a job only
            grows by is not served here.
        free_gpus: GPUs by node that are free or about to be; nodes that take nothing new are left out.
        promised: Nodes on which others wait to start or to grow: stood aside on only where there is no other.

    Returns:
        The steps.
    """
    best = _planned(stands, free_gpus, promised)
    spared: set[str] = set()
    for _ in range(_MOST_TRIES):
        others = [job_id for job_id in best.restarts if job_id not in spared]
        if len(best.restarts) < 2 or not others:
            break
        kept = {*spared, others[0]}
        attempt = _planned(stands, free_gpus, promised, kept)
        if len(attempt.restarts) > len(best.restarts) or len(attempt.unmoved) > len(best.unmoved):
            break
        best, spared = attempt, kept
    return best


def _planned(
    stands: Sequence[Stand], free_gpus: Mapping[str, int], promised: Collection[str], kept: Collection[str] = ()
) -> Moves:
    """A plan in which these jobs are not restarted."""
    board = Board(stands, free_gpus)
    short = frozenset(node for node in board.missing_at if board.slack(node) < 0)
    open_nodes = sorted(free_gpus, key=lambda node: (node in promised, node))
    restarts: list[str] = []
    for index in range(len(stands)):
        _drop_surplus(board, index)
    board.takers()
    _go_on(board, [index for index in range(len(stands)) if board.missing[index] and board.excess[index]])
    while True:
        while _make_way(board, open_nodes):
            _go_on(board, board.takers())
        last = _last_in_the_way(board, kept)
        if last is None:
            break
        restarts.append(stands[last].job_id)
        board.restart(last)
        _go_on(board, board.takers())
    left = sorted({index for jobs in board.missing_at.values() for index in jobs})
    return Moves(
        steps=tuple(board.steps),
        restarts=tuple(restarts),
        lowest_gpus=dict(sorted(board.lowest.items())),
        unmoved=tuple(stands[index].job_id for index in left),
        short=short,
    )


def _go_on(board: Board, first: Iterable[int]) -> None:
    """Rule 1, for these jobs and those for which they make room; large workers first, which fit in fewer places."""
    queue = [(-board.stands[index].gpus_per_worker, index) for index in first]
    heapq.heapify(queue)
    while queue:
        _, index = heapq.heappop(queue)
        if not board.excess[index]:
            continue
        size = board.stands[index].gpus_per_worker
        free = {node: min(count, board.room.get(node, 0) // size) for node, count in board.missing[index].items()}
        coming = {node: count for node, count in free.items() if count > 0}
        if coming:
            board.add(index, coming)
            _drop_surplus(board, index)
            for other in board.takers():
                heapq.heappush(queue, (-board.stands[other].gpus_per_worker, other))


def _drop_surplus(board: Board, index: int) -> None:
    """Drop what a job has too many, on the nodes first that are most in need."""
    dropped: dict[str, int] = {}
    for _ in range(board.surplus(index)):
        left = [node for node, count in board.excess[index].items() if count > dropped.get(node, 0)]
        if not left:
            break
        size = board.stands[index].gpus_per_worker
        node = min(left, key=lambda name: (board.slack(name) + dropped.get(name, 0) * size >= 0, name))
        dropped[node] = dropped.get(node, 0) + 1
    if dropped:
        board.drop(index, dropped)


def _blocked(board: Board) -> Iterator[tuple[str, int]]:
    """Nodes to which somebody is to come and others could make way for it, with the GPUs that it lacks there."""
    seen = set()
    for index in sorted({index for jobs in board.missing_at.values() for index in jobs}):
        size = board.stands[index].gpus_per_worker
        for node in list(board.missing[index]):
            lacking = size - board.room.get(node, 0)
            if (node, size) not in seen and node in board.room and 0 < lacking <= _excess_gpus(board, node):
                seen.add((node, size))
                yield node, lacking


def _excess_gpus(board: Board, node: str) -> int:
    return sum(
        board.excess[index][node] * board.stands[index].gpus_per_worker for index in board.excess_at.get(node, ())
    )


def _make_way(board: Board, open_nodes: Sequence[str]) -> bool:
    """Rules 2 to 4: one job leaves a node to which another is to come."""
    blocked = list(_blocked(board))
    return (
        any(_shrink_first(board, node, lacking) for node, lacking in blocked)
        or any(_step_aside(board, node, open_nodes) for node, _ in blocked)
        or _borrow(board, blocked)
    )


def _in_the_way(board: Board, node: str) -> list[int]:
    """Jobs that are to leave a node, the last first."""
    return sorted(board.excess_at.get(node, ()), reverse=True)


def _shrink_first(board: Board, node: str, lacking: int) -> bool:
    for index in _in_the_way(board, node):
        wanted = -(-lacking // board.stands[index].gpus_per_worker)
        count = min(wanted, board.excess[index][node], board.spare(index))
        if count > 0:
            board.drop(index, {node: count})
            return True
    return False


def _step_aside(board: Board, node: str, open_nodes: Sequence[str]) -> bool:
    for index in _in_the_way(board, node):
        place = _place_aside(board, node, board.stands[index].gpus_per_worker, open_nodes)
        if place is not None:
            _leave_for(board, index, node, place)
            return True
    return False


def _place_aside(board: Board, node: str, gpus: int, open_nodes: Sequence[str]) -> str | None:
    """The node least stood aside on so far, of those whose slack has room for a worker; the first of these."""
    best = None
    for other in open_nodes:
        if other != node and board.slack(other) >= gpus and (best is None or board.uses[other] < board.uses[best]):
            best = other
            if not board.uses[best]:
                break
    return best


def _leave_for(board: Board, index: int, node: str, place: str) -> None:
    board.add(index, {place: 1})
    board.drop(index, {node: 1})
    board.uses[place] += 1


def _borrow(board: Board, blocked: Sequence[tuple[str, int]]) -> bool:
    lenders = [index for index in range(len(board.stands)) if board.spare(index) > 0 and not board.excess[index]]
    lenders.reverse()
    return any(_lend(board, lenders, node, lacking) for node, lacking in blocked) or any(
        _leave_for_lent(board, lenders, node) for node, _ in blocked
    )


def _lend(board: Board, lenders: Sequence[int], node: str, lacking: int) -> bool:
    """Have the last job that can make so much room on a node; whether there is one."""
    for index in lenders:
        count = -(-lacking // board.stands[index].gpus_per_worker)
        if count <= min(board.workers(index).get(node, 0), board.spare(index)):
            board.drop(index, {node: count})
            return True
    return False


def _leave_for_lent(board: Board, lenders: Sequence[int], node: str) -> bool:
    """Step aside to room that somebody lends for it."""
    places = sorted({place for index in lenders for place in board.workers(index) if place in board.room} - {node})
    for index in _in_the_way(board, node):
        for place in places:
            lacking = board.stands[index].gpus_per_worker - board.slack(place)
            if lacking > 0 and _lend(board, lenders, place, lacking):
                _leave_for(board, index, node, place)
                return True
    return False


def _last_in_the_way(board: Board, kept: Collection[str]) -> int | None:
    """Rule 5: the last job in order that is to leave a node to which another is to come."""
    found = {
        index
        for node, _ in _blocked(board)
        for index in board.excess_at.get(node, ())
        if board.stands[index].job_id not in kept
    }
    return max(found, default=None)

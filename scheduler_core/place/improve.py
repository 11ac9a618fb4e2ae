"""Local search: jobs on more nodes than they need are gathered, and who is in their way goes elsewhere.

In: a layout in which everybody who can be has a place. Out: the same layout, no dearer (GPU-seconds, ``problem``).

A *part* is what a job has on one node. Two parts of a job are merged on the node of one of them or on a third; parts of
other jobs that are in the way go to the nodes where they fit tightest, and where none is free enough they push a
smaller part on (an ejection chain). In a full cluster the two parts change places with two others of their sizes that
share a node. A step is kept when the whole of it pays: communication saved by its jobs before they end, less what its
moves cost.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from itertools import combinations

from scheduler_core.place.layout import EPSILON, Layout
from scheduler_core.place.problem import Workers
from scheduler_core.place.spread import spread

#: Parts in the way that one step pushes off a node, at most: more rarely pay.
MOST_PUSHED = 2
#: Alternatives for whom to push that a step tries, and nodes beside a job's own that it looks at.
CHOICES = 3
#: How many parts an ejection chain pushes one after the other.
CHAIN = 2

Step = Callable[[], bool]


class Search:
    """A layout, what each job costs in it, and where parts of certain sizes share a node.

    Attributes:
        layout: Searched.
        costs: GPU-seconds by job.
        pairs: Nodes by the GPUs of two parts on them, the smaller first; as they were when the round began.
    """

    def __init__(self, layout: Layout) -> None:
        self.layout = layout
        self.costs = [layout.cost(job) if workers else 0.0 for job, workers in enumerate(layout.at)]
        self.pairs: dict[tuple[int, int], list[int]] = {}

    def look(self) -> list[int]:
        """Begin a round: the jobs on several nodes, the dearest first."""
        layout, size = self.layout, self.layout.problem.worker_gpus
        self.pairs = {}
        for node, on in enumerate(layout.on):
            if len(on) > 1 and layout.is_open(node):
                gpus = sorted(count * size[job] for job, count in on.items())
                for pair in sorted(set(combinations(gpus, 2))):
                    self.pairs.setdefault(pair, []).append(node)
        scattered = [job for job, workers in enumerate(layout.at) if len(workers) > 1]
        return sorted(scattered, key=lambda job: (-self.costs[job], job))

    def tried(self, step: Step) -> bool:
        """Do a step, and take it back unless it could be done and makes things cheaper."""
        layout, mark = self.layout, self.layout.mark()
        if step():
            costs = {job: layout.cost(job) for job in layout.changed(mark)}
            if sum(costs.values()) < sum(self.costs[job] for job in costs) - EPSILON:
                for job, cost in costs.items():
                    self.costs[job] = cost
                return True
        layout.back(mark)
        return False


def improve(layout: Layout, rounds: int) -> None:
    """Gather what is scattered, while that pays.

    Args:
        layout: Changed in place.
        rounds: How often at most all scattered jobs are looked at.
    """
    search = Search(layout)
    for _ in range(rounds):
        if not sum([_gathered(search, job) for job in search.look()]):
            return


def _gathered(search: Search, job: int) -> bool:
    """Merge parts of a job while that pays."""
    found = False
    while any(search.tried(step) for step in _merges(search, job)):
        found = True
    return found


def _merges(search: Search, job: int) -> Iterator[Step]:
    """Ways to have a job on one node less, the smallest parts first."""
    layout = search.layout
    size = layout.problem.worker_gpus[job]
    parts = sorted((count, node) for node, count in layout.at[job].items() if layout.is_open(node))
    for (one, here), (other, there) in combinations(parts[:CHOICES], 2):
        if (one + other) * size > layout.most_gpus:
            continue
        both = {here: one, there: other}
        yield partial(_merge, layout, job, {here: one}, there)
        yield partial(_merge, layout, job, {there: other}, here)
        for node in _roomiest(layout, job, one + other):
            yield partial(_merge, layout, job, both, node)
        for node, pushed in _swappable(search, job, (one * size, other * size)):
            yield partial(_swap, layout, job, both, node, pushed)
    if layout.total_free:
        yield partial(_placed_anew, layout, job)
        yield partial(_balanced, layout, job)


def _roomiest(layout: Layout, job: int, count: int) -> list[int]:
    """Nodes beside a job's own where so many workers might go: the tightest that has room, and some with nearly."""
    barred = {*layout.at[job], *layout.problem.avoided[job]}
    gpus = count * layout.problem.worker_gpus[job]
    fitting = layout.tightest(gpus, barred)
    return [*([] if fitting is None else [fitting]), *layout.roomiest(gpus - 1, CHOICES, barred)]


def _swappable(search: Search, job: int, gpus: tuple[int, int]) -> Iterator[tuple[int, tuple[int, int]]]:
    """Nodes beside a job's own, with two jobs there whose parts have exactly so many GPUs."""
    layout, size = search.layout, search.layout.problem.worker_gpus
    barred = {*layout.at[job], *layout.problem.avoided[job]}
    found = 0
    for node in search.pairs.get((min(gpus), max(gpus)), ()):
        if node in barred:
            continue
        for one, other in combinations(sorted(layout.on[node]), 2):
            parts = (layout.on[node][one] * size[one], layout.on[node][other] * size[other])
            if parts in (gpus, gpus[::-1]):
                yield node, (one, other) if parts == gpus else (other, one)
                found += 1
                break
        if found == CHOICES:
            return


def _placed_anew(layout: Layout, job: int) -> bool:
    layout.lift(job)
    return spread(layout, job, anew=True)


def _balanced(layout: Layout, job: int) -> bool:
    """Bring a worker from the node where the job has most to another of its nodes that has room."""
    size, parts = layout.problem.worker_gpus[job], layout.at[job]
    most = min((node for node in parts if layout.is_open(node)), key=lambda node: (-parts[node], node), default=None)
    rooms = [(count, node) for node, count in parts.items() if node != most and layout.free[node] >= size]
    if most is None or not rooms:
        return False
    _, node = min(rooms)
    layout.put(job, most, -1)
    layout.put(job, node, 1)
    return True


def _swap(layout: Layout, job: int, parts: Workers, node: int, others: tuple[int, int]) -> bool:
    """Two parts of a job change places with two other jobs' parts on one node."""
    for other, source in zip(others, parts, strict=True):
        layout.put(job, source, -parts[source])
        count = layout.on[node][other]
        layout.put(other, node, -count)
        layout.put(other, source, count)
    layout.put(job, node, sum(parts.values()))
    return True


def _merge(layout: Layout, job: int, parts: Mapping[int, int], node: int) -> bool:
    """Bring parts of a job to a node, pushing others off it if need be."""
    for source, count in parts.items():
        layout.put(job, source, -count)
    count = sum(parts.values())
    short = count * layout.problem.worker_gpus[job] - layout.free[node]
    if short <= 0:
        layout.put(job, node, count)
        return True
    mark = layout.mark()
    for pushed in _in_the_way(layout, job, node, short):
        workers = [(other, layout.on[node][other]) for other in pushed]
        for other, others in workers:
            layout.put(other, node, -others)
        layout.put(job, node, count)
        if all(_insert(layout, other, others, {node}, CHAIN) for other, others in workers):
            return True
        layout.back(mark)
    return False


def _in_the_way(layout: Layout, job: int, node: int, short: int) -> list[tuple[int, ...]]:
    """Whose parts to push off a node so that so many GPUs come free: few GPUs first, then few jobs."""
    size = layout.problem.worker_gpus
    gpus = {other: count * size[other] for other, count in layout.on[node].items() if other != job}
    found = [
        (sum(gpus[other] for other in pushed), len(pushed), pushed)
        for number in range(1, MOST_PUSHED + 1)
        for pushed in combinations(sorted(gpus), number)
        if sum(gpus[other] for other in pushed) >= short
    ]
    return [pushed for _, _, pushed in sorted(found)[:CHOICES]]


def _insert(layout: Layout, job: int, count: int, barred: set[int], chain: int) -> bool:
    """Find one node for a part that was pushed away: beside another part of its job, where it fits, or by pushing."""
    gpus = count * layout.problem.worker_gpus[job]
    own = [node for node in sorted(layout.at[job]) if layout.free[node] >= gpus and node not in barred]
    node = own[0] if own else layout.tightest(gpus, barred | layout.problem.avoided[job])
    if node is not None:
        layout.put(job, node, count)
        return True
    if not chain:
        return False
    mark = layout.mark()
    for target in layout.roomiest(gpus - 1, CHOICES, barred | layout.problem.avoided[job]):
        for other in _single(_in_the_way(layout, job, target, gpus - layout.free[target])):
            others = layout.on[target][other]
            if others * layout.problem.worker_gpus[other] >= gpus:
                continue
            layout.put(other, target, -others)
            layout.put(job, target, count)
            if _insert(layout, other, others, {*barred, target}, chain - 1):
                return True
            layout.back(mark)
    return False


def _single(choices: list[tuple[int, ...]]) -> list[int]:
    """The best choice, where that is one job."""
    return [choice[0] for choice in choices[:1] if len(choice) == 1]

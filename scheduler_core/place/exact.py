"""Small placements to the optimum: a mixed-integer programme over the sets of nodes that each job may have.

In: a layout that the heuristic made. Out: the cheapest one with the same jobs placed, or nothing where the problem is
too large or the solver's limit was reached without a better one.

One binary for each job, set of nodes S and most workers on one of them g (communication depends on both), whole numbers
of workers by job and node, and how many of these stood there before. Minimised is what ``problem`` calls cost::

    minimise    sum x[j,S,g] communication(j,S,g) + sum move_s[j] (standing[j] - sum stay[j,n]) + sum restart_s[j] r[j]
    subject to  sum over S,g of x[j,S,g] = 1                 each job has one set
                sum over n of w[j,n] = want[j]               all its workers
                w[j,n] <= sum over S with n of g x[j,S,g]    on nodes of the set, at most g on each
                sum over j of gpus[j] w[j,n] <= capacity[n]  no node over capacity
                stay[j,n] <= w[j,n],  stay[j,n] <= standing[j,n]
                standing[j] - sum over n of stay[j,n] <= standing[j] r[j]

Sets that cost a job more above its best than the heuristic's layout costs all jobs above theirs cannot be part of a
better one, and are left out; that is what keeps it small. The solver is HiGHS (scipy), limited by nodes of its search
and not by time, so that the same observation gives the same placement.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import combinations

import numpy as np
import numpy.typing as npt
from scipy.optimize import Bounds, LinearConstraint, milp
from scipy.sparse import coo_array

from scheduler_core.model.communication import Shape
from scheduler_core.place.layout import EPSILON, Layout
from scheduler_core.place.problem import Problem, Workers

#: Larger problems are left to the heuristic: sets of nodes double with each node.
MOST_NODES = 8
MOST_JOBS = 16
MOST_COLUMNS = 800
#: Nodes of HiGHS's search tree.
MOST_SEARCHED = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """One way for a job to stand.

    Attributes:
        job: Its number.
        room: Most workers on each node of the set.
        communication: GPU-seconds of communication, moves left out.
        least: GPU-seconds with the fewest moves there can be.
    """

    job: int
    room: Workers
    communication: float
    least: float


def exact(layout: Layout) -> Layout | None:
    """The cheapest layout.

    Args:
        layout: One in which the jobs that can be placed are.

    Returns:
        A cheaper one, None where there is none, or none was found within the limits.
    """
    problem = layout.problem
    jobs = [job for job, workers in enumerate(layout.at) if workers]
    if len(problem.names) > MOST_NODES or not 0 < len(jobs) <= MOST_JOBS or layout.is_cheapest:
        return None
    by_job = {job: list(_columns(layout, job)) for job in jobs}
    best = {job: min(column.least for column in columns) for job, columns in by_job.items()}
    slack = layout.total_cost() - sum(best.values())
    if slack <= EPSILON:
        return None
    columns = [column for job in jobs for column in by_job[job] if column.least - best[job] <= slack + EPSILON]
    if len(columns) > MOST_COLUMNS:
        return None
    found = _solved(layout, jobs, columns, best)
    return found if found is not None and found.total_cost() < layout.total_cost() - EPSILON else None


def _limits(layout: Layout, job: int) -> Workers:
    """The most workers a job may have on each node: none that are new where it stands on a closed or avoided one."""
    problem = layout.problem
    size, avoided = problem.worker_gpus[job], problem.avoided[job]
    limits = {}
    for node, capacity in enumerate(problem.capacity):
        here = layout.at[job].get(node, 0)
        most = capacity // size if layout.is_open(node) and node not in avoided else here
        if most > 0:
            limits[node] = min(most, problem.want[job])
    return limits


def _columns(layout: Layout, job: int) -> Iterator[Column]:
    """Every set of nodes that holds the job, with every possible most on one of them."""
    want, limits = layout.problem.want[job], _limits(layout, job)
    bound = [node for node in layout.at[job] if not layout.is_open(node)]
    others = [node for node in limits if layout.is_open(node)]
    for number in range(min(len(others), want - len(bound)) + 1):
        for chosen in combinations(others, number):
            room = {node: limits[node] for node in (*bound, *chosen)}
            if sum(room.values()) >= want:
                yield from _mosts(layout.problem, job, room)


def _mosts(problem: Problem, job: int, room: Workers) -> Iterator[Column]:
    """The columns of one set, by the most workers on one of its nodes."""
    want = problem.want[job]
    shape = problem.shape(job, room, 1)
    for most in range(-(-want // len(room)), min(max(room.values()), want - len(room) + 1) + 1):
        capped = {node: min(count, most) for node, count in room.items()}
        if sum(capped.values()) >= want:
            yield _column(problem, job, capped, shape)


def _column(problem: Problem, job: int, room: Workers, shape: Shape) -> Column:
    most = max(room.values()) * problem.worker_gpus[job]
    communication = problem.seconds(job, Shape(ranks=shape.ranks, fanouts=(most, *shape.fanouts[1:])))
    standing = problem.standing[job]
    stays = sum(min(count, room.get(node, 0)) for node, count in standing.items())
    moved = max(0, min(sum(standing.values()), problem.want[job]) - stays)
    least = communication + moved * problem.move_s[job] + bool(moved) * problem.restart_s[job]
    return Column(job=job, room=room, communication=communication, least=least)


class Programme:
    """Rows and columns of the programme, collected one coefficient at a time.

    Attributes:
        costs: Objective, by variable.
        upper: Upper bound, by variable; the lower one is 0.
    """

    def __init__(self) -> None:
        self.costs: list[float] = []
        self.upper: list[float] = []
        self._entries: list[tuple[int, int, float]] = []
        self._low: list[float] = []
        self._high: list[float] = []

    def variable(self, cost: float, upper: float) -> int:
        """A new whole variable from 0 to a bound."""
        self.costs.append(cost)
        self.upper.append(upper)
        return len(self.costs) - 1

    def row(self, low: float, entries: Mapping[int, float], high: float) -> None:
        """A new constraint ``low <= sum of coefficient times variable <= high``."""
        self._entries += [(len(self._low), variable, value) for variable, value in entries.items()]
        self._low.append(low)
        self._high.append(high)

    def solved(self) -> npt.NDArray[np.float64] | None:
        """The best values found, None where none were."""
        rows, columns, values = zip(*self._entries, strict=True)
        matrix = coo_array((values, (rows, columns)), shape=(len(self._low), len(self.costs))).tocsr()
        found = milp(
            self.costs,
            integrality=np.ones(len(self.costs), dtype=np.int64),
            bounds=Bounds(0, np.array(self.upper)),
            constraints=LinearConstraint(matrix, np.array(self._low), np.array(self._high)),
            options={"disp": False, "node_limit": MOST_SEARCHED, "mip_rel_gap": 0.0},
        )
        return None if found.x is None else np.asarray(found.x)


def _solved(layout: Layout, jobs: list[int], columns: list[Column], best: Mapping[int, float]) -> Layout | None:
    """Set the programme up, solve it and read the layout."""
    problem, programme = layout.problem, Programme()
    workers = {
        (job, node): programme.variable(0.0, most) for job in jobs for node, most in _limits(layout, job).items()
    }
    allowed: dict[tuple[int, int], dict[int, float]] = {pair: {} for pair in workers}
    chosen: dict[int, dict[int, float]] = {job: {} for job in jobs}
    for column in columns:
        variable = programme.variable(column.communication - best[column.job], 1)
        chosen[column.job][variable] = 1.0
        for node, most in column.room.items():
            allowed[column.job, node][variable] = -float(most)
    for job in jobs:
        own = {variable: 1.0 for (other, _), variable in workers.items() if other == job}
        programme.row(1, chosen[job], 1)
        programme.row(problem.want[job], own, problem.want[job])
        _count_moves(programme, layout, job, workers)
    for (job, node), variable in workers.items():
        programme.row(-np.inf, {variable: 1.0, **allowed[job, node]}, 0)
        if not layout.is_open(node):
            programme.row(layout.at[job][node], {variable: 1.0}, np.inf)
    for node, capacity in enumerate(problem.capacity):
        there = {
            variable: float(problem.worker_gpus[job]) for (job, other), variable in workers.items() if other == node
        }
        programme.row(-np.inf, there, max(0, capacity))
    values = programme.solved()
    return None if values is None else _read(problem, {pair: round(values[at]) for pair, at in workers.items()})


def _count_moves(programme: Programme, layout: Layout, job: int, workers: Mapping[tuple[int, int], int]) -> None:
    """Reward every worker that stays, and charge a restart where one does not."""
    problem = layout.problem
    stays = {}
    for node, count in problem.standing[job].items():
        if (job, node) in workers:
            stay = programme.variable(-problem.move_s[job], count)
            programme.row(-np.inf, {stay: 1.0, workers[job, node]: -1.0}, 0)
            stays[stay] = 1.0
    could_stay = min(sum(problem.standing[job].values()), problem.want[job])
    if problem.restart_s[job] and could_stay:
        restart = programme.variable(problem.restart_s[job], 1)
        programme.row(could_stay, {**stays, restart: float(could_stay)}, np.inf)


def _read(problem: Problem, workers: Mapping[tuple[int, int], int]) -> Layout:
    layout = Layout(problem)
    for (job, node), count in workers.items():
        if count:
            layout.put(job, node, count)
    return layout

"""A placement packed from nothing, put on the real nodes so that most workers stay where they are.

In: a problem. Out: a layout, or nothing where not everybody finds room so. A second start for the local search: it may
be far better packed than what runs, and is taken only when it pays.

What was packed on one node is a *group*. Groups get nodes by an assignment (Hungarian method, scipy's
``linear_sum_assignment``) over those pairs only where the node holds the group.
"""

from __future__ import annotations

import numpy as np
from scipy.optimize import linear_sum_assignment

from scheduler_core.place.fill import add
from scheduler_core.place.keep import keep
from scheduler_core.place.layout import Layout
from scheduler_core.place.problem import Problem, Workers

IMPOSSIBLE = 1e9
"""Workers that a pair which does not fit loses: more than there are anywhere."""


def repacked(problem: Problem, jobs: list[int]) -> Layout | None:
    """Pack these jobs from nothing and bind what was packed to the nodes.

    Args:
        problem: What is placed.
        jobs: Those that are to have places.

    Returns:
        The layout, None where not all of them found room. Nodes that take nothing new keep what they have.
    """
    packed = keep(problem, jobs)
    for job in jobs:
        packed.lift(job)
    if add(packed, jobs):
        return None
    opened = [node for node in range(len(problem.names)) if packed.is_open(node)]
    groups = [packed.on[node] for node in opened]
    bound = keep(problem, jobs)
    for job in jobs:
        bound.lift(job)
    for group, node in zip(groups, _nodes(problem, groups, opened), strict=True):
        for job, count in group.items():
            bound.put(job, node, count)
    return bound


def _nodes(problem: Problem, groups: list[Workers], opened: list[int]) -> list[int]:
    """A node for each group, so that most workers stay and every node holds its group."""
    stays = np.zeros((len(groups), len(opened)))  # workers (num_groups, num_nodes)
    for row, group in enumerate(groups):
        gpus = sum(count * problem.worker_gpus[job] for job, count in group.items())
        for column, node in enumerate(opened):
            stays[row, column] = sum(min(count, problem.standing[job].get(node, 0)) for job, count in group.items())
            barred = gpus > problem.capacity[node] or any(node in problem.avoided[job] for job in group)
            # Where it was packed a group always fits, so an assignment without impossible pairs exists.
            stays[row, column] -= IMPOSSIBLE * (barred and row != column)
    _, columns = linear_sum_assignment(stays, maximize=True)
    return [opened[column] for column in columns.tolist()]

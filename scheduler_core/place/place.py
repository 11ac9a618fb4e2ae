"""The placer: which nodes each job's workers go on, for least communication with the fewest moves.

In: GPUs by job, nodes and their topology, where workers stand, what is known of the jobs. Out: workers by node. Third
of the six steps (place).

The aims in order: everybody who can be has a place; the least communication; the fewest moves. Communication and moves
are weighed in one currency, GPU-seconds (``problem``), so a running worker moves only where that gains more before its
job's expected end than it costs.

1. ``keep``: a job's workers stay; one that shrinks drops those whose loss helps most.
2. ``fill``: the missing workers, larger ones first; running jobs are let go only where somebody has no room otherwise.
3. ``improve``: where somebody got new workers, jobs on more nodes than they need are gathered, a few others making way.
4. Where there are few jobs: ``recreate`` takes some up and places them in other orders, also from a placement packed
   from nothing that ``bind`` puts on the nodes where most stay; ``exact`` solves small problems to the optimum.

A request that nobody's new workers are part of moves nothing, so an identical one changes nothing.
"""

from __future__ import annotations

from collections.abc import Mapping

from scheduler_core.model.placement import Placement
from scheduler_core.model.ports import PlacerInput
from scheduler_core.place.bind import repacked
from scheduler_core.place.exact import exact
from scheduler_core.place.fill import fill
from scheduler_core.place.improve import improve
from scheduler_core.place.keep import keep
from scheduler_core.place.layout import Layout
from scheduler_core.place.problem import problem_of
from scheduler_core.place.recreate import recreate

ROUNDS = 3
"""How often the local search looks at all scattered jobs; a fourth time found nothing at 4,000 jobs."""

MOST_RECREATED = 24
"""With more jobs than these, and larger problems than ``exact`` takes, only ``improve`` searches."""


def place(asked: PlacerInput) -> Placement:
    """Place every allocated worker.

    Args:
        asked: What to place, on what, and what stands where. Nodes that are not schedulable keep the workers they
            have (``current``) and take no new one. Of a job whose remaining time is not known an hour at one GPU is
            assumed; of its step and gradient those of ``model.communication``; of its speed that it grows with its
            GPUs.

    Returns:
        Workers by node; jobs that fit nowhere in ``unplaced``, with the reason.
    """
    problem = problem_of(asked)
    layout = keep(problem, range(len(problem.ids)))
    if any(layout.missing(job) for job in range(len(problem.ids))):
        layout = heuristic(layout)
        layout = exact(layout) or layout
    return _placement(layout)


def heuristic(kept: Layout) -> Layout:
    """The placement that is found without solving to the optimum; all there is where a problem is large.

    Args:
        kept: What stays; it is changed.
    """
    problem = kept.problem
    layout = fill(problem, kept)
    improve(layout, ROUNDS)
    if len(problem.ids) > MOST_RECREATED or layout.is_cheapest:
        return layout
    starts = [layout, repacked(problem, [job for job, workers in enumerate(layout.at) if workers])]
    return min((_searched(start) for start in starts if start is not None), key=Layout.total_cost)


def _searched(layout: Layout) -> Layout:
    improve(layout, ROUNDS)
    recreate(layout, ROUNDS - 1)
    improve(layout, ROUNDS)
    return layout


def _placement(layout: Layout) -> Placement:
    """The layout in names, with a reason for every job that has no place in it."""
    problem = layout.problem
    names = problem.names
    unplaced = {
        job_id: _reason(problem.worker_gpus[job], problem.want[job], int(layout.slots(problem.worker_gpus[job]).sum()))
        for job, job_id in enumerate(problem.ids)
        if not layout.at[job]
    }
    workers_by_job: Mapping[str, Mapping[str, int]] = {
        job_id: {names[node]: count for node, count in layout.at[job].items()} for job, job_id in enumerate(problem.ids)
    }
    return Placement(workers_by_job=workers_by_job, unplaced=unplaced)


def _reason(worker_gpus: int, num_workers: int, room: int) -> str:
    return (
        f"{num_workers} workers with {worker_gpus} GPUs each need a node for each of them, "
        f"and the nodes have room for {room}"
    )

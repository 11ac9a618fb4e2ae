"""Moves of running jobs between plan and world: what is planned from what is seen, and which steps are made now.

In: the observation, and the wishes of all jobs that are not as they should be. Out: ``Moves``, then actions. Part of
step five (plan). What is about to become free counts as free for the plan, so nobody is restarted for whom room is
coming, but a step is made only when its GPUs are seen to be free and no step before it waits for them.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from scheduler_core.allocate.order import by_arrival
from scheduler_core.converging.board import Stand, Step, StepKind
from scheduler_core.converging.moves import Moves, moves
from scheduler_core.converging.workers import Wish, claim, shrink, stop_to_move, wish
from scheduler_core.model.job import Job, WorkerPhase
from scheduler_core.model.observation import Observation
from scheduler_core.model.plan import Action
from scheduler_core.model.target import Target


def planned_moves(
    observation: Observation, target: Target, wishes: Mapping[str, Wish], left_out: Collection[str] = ()
) -> Moves:
    """Plan the moves of running jobs; those that stay lend GPUs only where somebody would have to restart without.

    Args:
        observation: The world.
        target: What should be.
        wishes: Of all jobs that are not as they should be, but for those left out.
        left_out: Jobs to which nothing may be done.
    """
    jobs = observation.jobs_by_id
    moving = [jobs[job_id] for job_id, wanted in wishes.items() if wanted.excess and wanted.want]
    moving = [job for job in moving if job.is_active]
    if not any(wishes[job.id].missing for job in moving):
        return Moves()
    room = _room(observation, wishes, left_out)
    promised = {node for wanted in wishes.values() if not wanted.excess for node in wanted.missing}
    alone = moves(_stands(moving, wishes), room, promised)
    if not alone.restarts:
        return alone
    lenders = {
        job.id: wishes.get(job.id) or wish(job, target)
        for job in observation.jobs
        if job.is_active and not (job.pinned or job.held or job.id in left_out)
    }
    known = {**lenders, **{job.id: wishes[job.id] for job in moving}}
    return moves(_stands([jobs[job_id] for job_id in known if known[job_id].want], known), room, promised)


def _stands(jobs: Sequence[Job], wishes: Mapping[str, Wish]) -> list[Stand]:
    """Jobs on the board, in order of arrival."""
    return [
        Stand(
            job_id=spec.id,
            gpus_per_worker=spec.gpus_per_worker,
            min_workers=spec.min_gpus // spec.gpus_per_worker,
            here=wishes[spec.id].live,
            want=wishes[spec.id].want,
        )
        for spec in by_arrival(job.spec for job in jobs)
    ]


def _room(observation: Observation, wishes: Mapping[str, Wish], left_out: Collection[str]) -> dict[str, int]:
    """GPUs by open node that nobody holds who goes on holding them."""
    held, ours, jobs = observation.held_gpus(), observation.ours_gpus(), observation.jobs_by_id
    room = {node.name: ours[node.name] - held[node.name] for node in observation.cluster.nodes if node.schedulable}
    for job in (*(jobs[job_id] for job_id in wishes), *(jobs[job_id] for job_id in left_out if job_id in jobs)):
        goes = job.id in wishes and not (job.is_active and wishes[job.id].want)
        for worker in job.holding:
            if worker.node in room and (goes or worker.phase is WorkerPhase.LEAVING):
                room[worker.node] += worker.gpus
    return room


def made_now(
    planned: Moves,
    observation: Observation,
    wishes: Mapping[str, Wish],
    busy: Collection[str],
    growing: Collection[str],
) -> tuple[list[Action], dict[str, int]]:
    """The first steps of jobs that can make them now.

    Args:
        planned: All moves.
        observation: The world.
        wishes: Of all moving jobs.
        busy: Jobs to which something else is done in this round, or that have not acknowledged their document.
        growing: Of the others, those that may be given new workers.

    Returns:
        The actions, and the GPUs by node that others may claim now: free, and not needed by any step of the plan.
    """
    jobs = observation.jobs_by_id
    actions: list[Action] = []
    free = observation.free_gpus()
    unreserved = dict(free)
    acted = set(busy)
    for step in planned.steps:
        job, is_first = jobs[step.job_id], step.job_id not in acted
        acted.add(job.id)
        if step.kind is StepKind.ADD:
            now = _part(step, unreserved, job.spec.gpus_per_worker) if is_first and job.id in growing else {}
            for node, count in step.workers.items():
                unreserved[node] -= count * job.spec.gpus_per_worker
                free[node] -= now.get(node, 0) * job.spec.gpus_per_worker
            if now:
                actions.append(claim(job, now, observation.cluster))
        elif is_first:
            drops = step.kind is StepKind.DROP
            actions.append(shrink(job, step.workers) if drops else stop_to_move(job, wishes[job.id]))
    left = {node: min(gpus, planned.lowest_gpus.get(node, gpus)) for node, gpus in free.items()}
    return actions, left


def _part(step: Step, free: Mapping[str, int], size: int) -> dict[str, int]:
    """The part of a step's workers for which there are free GPUs."""
    part = {node: min(count, free[node] // size) for node, count in step.workers.items()}
    return {node: count for node, count in part.items() if count > 0}

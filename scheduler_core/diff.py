"""What to do about the difference between world and target: pure, level-triggered, releases before claims.

In: the observation and the target. Out: a ``Plan``, empty when the world is as it should be. Fifth of the six steps.
Each round moves every job at most one step, and only from what is seen: GPUs that an action of this round will free
are claimed by a later round, when they are seen to be free. A job that is as it should be is passed over quickly.

A running job changes by one allocation document at a time. How those that go to other nodes do so, and in which order,
is planned as a whole by ``converging.moves``; nothing of that plan is kept, the next round plans again.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from scheduler_core.allocate.order import by_arrival
from scheduler_core.converging.announce import queue_messages
from scheduler_core.converging.carry import made_now, planned_moves
from scheduler_core.converging.document import Around, document_step
from scheduler_core.converging.workers import Wish, claim, unsettled, wish
from scheduler_core.estimate.failing import grows_from_s
from scheduler_core.model.cluster import Cluster
from scheduler_core.model.job import Job, JobPhase
from scheduler_core.model.observation import Observation
from scheduler_core.model.params import Params
from scheduler_core.model.plan import (
    Abandon,
    Action,
    Announce,
    Evict,
    Grant,
    Grow,
    Plan,
    Publish,
    Refuse,
    Release,
    Stop,
)
from scheduler_core.model.target import Target

#: Order of enforcement: what frees GPUs, then documents, then what takes GPUs, then words.
_RANK = {Stop: 0, Evict: 1, Abandon: 2, Release: 3, Publish: 4, Grant: 5, Grow: 6, Refuse: 7, Announce: 8}


def diff(observation: Observation, target: Target, params: Params, left_out: Collection[str] = ()) -> Plan:
    """The next steps from the world towards the target.

    Args:
        observation: What is there.
        target: What should be. A job that no decision has seen yet (not in ``target.reasons``) keeps what it has.
        params: ``start_limit_s`` is how long a granted worker may take to become ready.
        left_out: Jobs to which nothing is done; they keep what they hold.

    Returns:
        Actions in order of enforcement.
    """
    moved = [job for job in unsettled(observation.jobs, target) if job.id not in left_out]
    actions = _changes(moved, observation, target, params, left_out) if moved else []
    actions += _words(observation, target, left_out)
    return Plan(actions=tuple(sorted(actions, key=lambda action: _RANK[type(action)])))


def _changes(
    moved: list[Job], observation: Observation, target: Target, params: Params, left_out: Collection[str]
) -> list[Action]:
    """What is done to jobs that are not as they should be."""
    jobs_by_id = observation.jobs_by_id
    jobs = [jobs_by_id[spec.id] for spec in by_arrival(job.spec for job in moved)]
    wishes = {job.id: wish(job, target) for job in jobs}
    planned = planned_moves(observation, target, wishes, left_out)
    around = Around(now_s=observation.now_s, start_limit_s=params.start_limit_s, short=planned.short)
    steps = {job.id: _without_claims(job, wishes[job.id], around) for job in jobs}
    growing = {job.id for job in jobs if not steps[job.id] and _may_grow(job, wishes[job.id], around)}
    busy = {job.id for job in jobs if steps[job.id] or not _may_change(job, wishes[job.id])}
    moves, free = made_now(planned, observation, wishes, busy, growing)
    waiting = [job for job in jobs if not steps[job.id] and (job.phase is JobPhase.QUEUED or job.id in growing)]
    claims = _claims(waiting, wishes, free, observation.cluster)
    return [*(action for job in jobs for action in steps[job.id]), *moves, *claims]


def _without_claims(job: Job, wanted: Wish, around: Around) -> list[Action]:
    """What a job does that needs no free GPU."""
    if job.phase is JobPhase.BETWEEN and job.grow_gate_open:
        return [Release(job_id=job.id, segment=job.segment)]
    if job.phase in (JobPhase.QUEUED, JobPhase.ENDED):
        return []
    return document_step(job, wanted, around)


def _may_change(job: Job, wanted: Wish) -> bool:
    """Whether a job trains by what it was last told."""
    return job.phase is JobPhase.RUNNING and wanted.can_claim


def _may_grow(job: Job, wanted: Wish, around: Around) -> bool:
    """Whether somebody waits to be told of new workers, and the last ones did not fail a moment ago."""
    is_open = _may_change(job, wanted) and job.grow_gate_open
    return is_open and around.now_s >= grows_from_s(job, around.now_s, around.start_limit_s)


def _claims(jobs: Iterable[Job], wishes: Mapping[str, Wish], free: dict[str, int], cluster: Cluster) -> list[Action]:
    """Grants and growths of jobs that leave no node, where these fit into what is free."""
    actions: list[Action] = []
    for job in jobs:
        wanted, size = wishes[job.id], job.spec.gpus_per_worker
        if job.phase is JobPhase.QUEUED:
            counts = wanted.want if _is_free(wanted.want, free, size) else {}
        else:
            counts = {} if wanted.excess else _part_that_is_free(wanted.missing, free, size)
        if counts:
            actions.append(claim(job, counts, cluster))
            for node, count in counts.items():
                free[node] -= count * size
    return actions


def _is_free(counts: Mapping[str, int], free: Mapping[str, int], gpus_per_worker: int) -> bool:
    return all(count * gpus_per_worker <= free.get(node, 0) for node, count in counts.items())


def _part_that_is_free(counts: Mapping[str, int], free: Mapping[str, int], gpus_per_worker: int) -> dict[str, int]:
    part = {node: min(count, free.get(node, 0) // gpus_per_worker) for node, count in counts.items()}
    return {node: count for node, count in part.items() if count > 0}


def _words(observation: Observation, target: Target, left_out: Collection[str]) -> list[Action]:
    """What is shown to people: refusals, and the place in the queue where that changed enough."""
    messages = queue_messages(observation, target)
    jobs = observation.jobs_by_id if messages else {}
    refusals = [Refuse(job_id=job_id, reason=reason) for job_id, reason in sorted(observation.refused.items())]
    announcements = [
        Announce(job_id=job_id, message=message)
        for job_id, message in messages.items()
        if jobs[job_id].message != message and job_id not in left_out
    ]
    return [*refusals, *announcements]

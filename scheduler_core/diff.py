"""What to do about the difference between world and target: pure, level-triggered, releases before claims.

In: the observation and the target. Out: a ``Plan``, empty when the world is as it should be. Fifth of the six steps.
Each round moves every job at most one step, and only from what is seen: GPUs that an action of this round will free
are claimed by a later round, when they are seen to be free.

A running job changes by one allocation document at a time. Going to other nodes it grows there first where slots are
free, else it shrinks first while it stays at or above its minimum; when neither can be and nobody else is about to
make room, it is stopped at a checkpoint and granted anew.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from scheduler_core.allocate.order import by_arrival
from scheduler_core.converging.announce import queue_messages
from scheduler_core.converging.document import document_step
from scheduler_core.converging.workers import Wish, make_room, wish
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
    NewWorker,
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
    wishes = {job.id: wish(job, target) for job in observation.jobs}
    jobs_by_id = observation.jobs_by_id
    jobs = [jobs_by_id[spec.id] for spec in by_arrival(job.spec for job in observation.jobs if job.id not in left_out)]
    steps = {job.id: _without_claims(job, wishes[job.id], observation.now_s, params.start_limit_s) for job in jobs}
    settled = [job for job in jobs if not steps[job.id]]
    claims, blocked = _claims(settled, wishes, observation, params)
    stuck = _unblock(blocked, wishes, observation)
    actions: list[Action] = [action for job in jobs for action in steps[job.id]]
    actions += [*claims, *stuck, *_words(observation, target, left_out)]
    return Plan(actions=tuple(sorted(actions, key=lambda action: _RANK[type(action)])))


def _without_claims(job: Job, wanted: Wish, now_s: float, start_limit_s: float) -> list[Action]:
    """What a job does that needs no free GPU."""
    if job.phase is JobPhase.BETWEEN and job.grow_gate_open:
        return [Release(job_id=job.id, segment=job.segment)]
    if job.phase in (JobPhase.QUEUED, JobPhase.ENDED):
        return []
    return document_step(job, wanted, now_s, start_limit_s)


def _claims(
    jobs: Iterable[Job], wishes: Mapping[str, Wish], observation: Observation, params: Params
) -> tuple[list[Action], list[Job]]:
    """Grants and growths that fit into what is free now, and the jobs that are moving but found nothing free."""
    free = observation.free_gpus()
    actions: list[Action] = []
    blocked: list[Job] = []
    for job in jobs:
        wanted = wishes[job.id]
        if job.phase is JobPhase.QUEUED:
            counts = wanted.want if _is_free(wanted.want, free, job.spec.gpus_per_worker) else {}
        elif job.phase is JobPhase.RUNNING and _may_grow(job, wanted, observation.now_s, params):
            counts = _part_that_is_free(wanted.missing, free, job.spec.gpus_per_worker)
            if wanted.missing and wanted.excess and not counts:
                blocked.append(job)
        else:
            counts = {}
        if counts:
            actions.append(_claim(job, counts, observation.cluster))
            for node, count in counts.items():
                free[node] -= count * job.spec.gpus_per_worker
    return actions, blocked


def _may_grow(job: Job, wanted: Wish, now_s: float, params: Params) -> bool:
    """Whether somebody waits to be told of new workers, and the last ones did not fail a moment ago."""
    return job.grow_gate_open and wanted.can_claim and now_s >= grows_from_s(job, now_s, params.start_limit_s)


def _is_free(counts: Mapping[str, int], free: Mapping[str, int], gpus_per_worker: int) -> bool:
    return all(count * gpus_per_worker <= free.get(node, 0) for node, count in counts.items())


def _part_that_is_free(counts: Mapping[str, int], free: Mapping[str, int], gpus_per_worker: int) -> dict[str, int]:
    part = {node: min(count, free.get(node, 0) // gpus_per_worker) for node, count in counts.items()}
    return {node: count for node, count in part.items() if count}


def _claim(job: Job, counts: Mapping[str, int], cluster: Cluster) -> Grant | Grow:
    """New workers on these nodes, near ones next to each other, numbered on from the last of this segment."""
    path_by_node = {node.name: cluster.path(node) for node in cluster.nodes}
    nodes = [node for node in sorted(counts, key=lambda name: path_by_node[name]) for _ in range(counts[node])]
    waiting = job.phase is JobPhase.QUEUED
    first = 0 if waiting else max((worker.number for worker in job.workers), default=-1) + 1
    workers = tuple(
        NewWorker(id=f"w{number}", node=node, gpus=job.spec.gpus_per_worker)
        for number, node in enumerate(nodes, start=first)
    )
    kind = Grant if waiting else Grow
    return kind(job_id=job.id, segment=job.segment, workers=workers)


def _unblock(blocked: list[Job], wishes: Mapping[str, Wish], observation: Observation) -> list[Action]:
    """Jobs that cannot grow at their new place first: the last in order gives way, unless room is coming anyway."""
    waiting = {job.id for job in blocked}
    actions: list[Action] = []
    for job in reversed(blocked):
        if not _room_is_coming(job, wishes, observation, waiting):
            actions.append(make_room(job, wishes[job.id]))
            waiting.discard(job.id)
    return actions


def _room_is_coming(job: Job, wishes: Mapping[str, Wish], observation: Observation, waiting: set[str]) -> bool:
    """Whether a GPU that the job wants is held by somebody who is about to let it go."""
    for other in observation.jobs:
        if other.id == job.id or other.id in waiting:
            continue
        going = wishes[other.id].going
        if any(going.get(node, 0) for node in wishes[job.id].missing):
            return True
    return False


def _words(observation: Observation, target: Target, left_out: Collection[str]) -> list[Action]:
    """What is shown to people: refusals, and the place in the queue where that changed enough."""
    jobs = observation.jobs_by_id
    refusals = [Refuse(job_id=job_id, reason=reason) for job_id, reason in sorted(observation.refused.items())]
    announcements = [
        Announce(job_id=job_id, message=message)
        for job_id, message in queue_messages(observation, target).items()
        if jobs[job_id].message != message and job_id not in left_out
    ]
    return [*refusals, *announcements]

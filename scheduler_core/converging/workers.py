"""A job's workers against its target: which are too many, which are missing, which are on their way.

In: a job and the target. Out: a ``Wish``, from which ``document`` and ``diff`` decide the next step.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from scheduler_core.model.cluster import Cluster
from scheduler_core.model.job import Job, JobPhase, Worker, WorkerPhase
from scheduler_core.model.memo import OncePerObject
from scheduler_core.model.plan import Grant, Grow, NewWorker, Publish, Stop
from scheduler_core.model.target import Target

#: Phases of a worker that trains or will.
_LIVE = frozenset({WorkerPhase.GRANTED, WorkerPhase.PENDING, WorkerPhase.RUNNING, WorkerPhase.READY})


_NOWHERE: Mapping[str, int] = {}


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """A job's workers against its target.

    Attributes:
        live: Workers by node that it has, those that are still coming too.
        want: Workers by node that it should have.
        missing: Workers by node still to be granted.
        excess: Workers by node that should go.
        can_claim: Whether the last document is acknowledged, its workers are there and nothing granted is outstanding.
    """

    live: Mapping[str, int]
    want: Mapping[str, int]
    missing: Mapping[str, int]
    excess: Mapping[str, int]
    can_claim: bool


def live_workers(job: Job) -> list[Worker]:
    """Workers that train or will, by number."""
    return sorted((worker for worker in job.workers if worker.phase in _LIVE), key=lambda worker: worker.number)


def published_workers(job: Job) -> list[Worker]:
    """Live workers of the newest document, by number."""
    return [worker for worker in live_workers(job) if worker.id in job.published]


def unsettled(jobs: Sequence[Job], target: Target) -> list[Job]:
    """Jobs to which something is to be done, or with which something is waited for; told quickly, as most are neither.

    The others train by an acknowledged document with all their workers, each ready and where the target has it; or they
    wait, and are to go on waiting.
    """
    meant = target.placement.workers_by_job
    return [
        job
        for job, rests_at in zip(jobs, _rests_at.of_all(jobs), strict=True)
        if rests_at is None or rests_at != meant.get(job.spec.id, _NOWHERE)
    ]


@OncePerObject
def _rests_at(job: Job) -> Mapping[str, int] | None:
    """Workers by node of a job with which all is well; None where something is to be done or waited for."""
    if job.phase is JobPhase.QUEUED:
        return None if job.workers else _NOWHERE
    rests = (
        job.phase is JobPhase.RUNNING
        and job.driver_ready
        and job.driver_ended_s is None
        and not job.checkpoint_s
        and job.acknowledged == job.generation
        and len(job.published) == len(job.workers)
        and all(worker.phase is WorkerPhase.READY for worker in job.workers)
    )
    return dict(Counter(worker.node for worker in job.workers)) if rests else None


def wish(job: Job, target: Target) -> Wish:
    """Compare a job with its target; one that no decision has seen yet wants what it has."""
    live = Counter(worker.node for worker in live_workers(job))
    decided = job.id in target.reasons or not job.is_active
    want = Counter(dict(target.placement.workers(job.id))) if decided else live
    training = published_workers(job)
    num_pending = sum(live.values()) - len(training)
    acknowledged = job.driver_ready and job.acknowledged == job.generation > 0
    return Wish(
        live=dict(sorted(live.items())),
        want=dict(sorted(want.items())),
        missing=dict(sorted((want - live).items())),
        excess=dict(sorted((live - want).items())),
        can_claim=acknowledged and not num_pending and len(training) == len(job.published),
    )


def claim(job: Job, counts: Mapping[str, int], cluster: Cluster) -> Grant | Grow:
    """New workers on these nodes, near ones next to each other, numbered on from the last of this segment."""
    nodes = sorted(counts, key=lambda name: _path(name, cluster))
    waiting = job.phase is JobPhase.QUEUED
    first = 0 if waiting else max((worker.number for worker in job.workers), default=-1) + 1
    workers = tuple(
        NewWorker(id=f"w{number}", node=node, gpus=job.spec.gpus_per_worker)
        for number, node in enumerate((node for node in nodes for _ in range(counts[node])), start=first)
    )
    kind = Grant if waiting else Grow
    return kind(job_id=job.id, segment=job.segment, workers=workers)


def _path(name: str, cluster: Cluster) -> tuple[str, ...]:
    """Where a node hangs in the tree; the nodes are in order of their names."""
    return cluster.path(cluster.nodes[bisect_left(cluster.nodes, name, key=lambda node: node.name)])


def chosen_to_go(
    workers: Iterable[Worker], excess: Mapping[str, int], most: int, short: Collection[str] = ()
) -> list[Worker]:
    """Of these workers, up to ``most`` on nodes that have too many.

    Args:
        workers: The job's.
        excess: Workers by node that should go.
        most: How many.
        short: Nodes where others wait for room: those first, else the highest numbers first.
    """
    left = dict(excess)
    chosen: list[Worker] = []
    for worker in sorted(workers, key=lambda one: (one.node not in short, -one.number)):
        if len(chosen) < most and left.get(worker.node, 0):
            left[worker.node] -= 1
            chosen.append(worker)
    return chosen


def publish(job: Job, workers: Iterable[Worker]) -> Publish:
    """The next document, with exactly these workers."""
    ids = tuple(worker.id for worker in sorted(workers, key=lambda worker: worker.number))
    return Publish(job_id=job.id, segment=job.segment, generation=job.generation + 1, worker_ids=ids)


def stop(job: Job, reason: str) -> Stop:
    """The document that ends the segment at a checkpoint."""
    return Stop(job_id=job.id, segment=job.segment, generation=job.generation + 1, reason=reason)


def shrink(job: Job, dropped: Mapping[str, int]) -> Publish:
    """The next document, without so many workers of these nodes."""
    published = published_workers(job)
    going = chosen_to_go(published, dropped, sum(dropped.values()))
    return publish(job, [worker for worker in published if worker not in going])


def stop_to_move(job: Job, wanted: Wish) -> Stop:
    """End the segment because the job cannot come to its new place in any other way."""
    nodes = ", ".join(wanted.missing)
    return stop(job, f"moves to {nodes} through a checkpoint: no room there for it to grow first, and none to spare")

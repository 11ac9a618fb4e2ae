"""A job's workers against its target: which are too many, which are missing, which are on their way.

In: a job and the target. Out: a ``Wish``, from which ``document`` and ``diff`` decide the next step.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from scheduler_core.model.job import Job, JobPhase, Worker, WorkerPhase
from scheduler_core.model.plan import Publish, Stop
from scheduler_core.model.target import Target

#: Phases of a worker that trains or will.
_LIVE = frozenset({WorkerPhase.GRANTED, WorkerPhase.PENDING, WorkerPhase.RUNNING, WorkerPhase.READY})


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """A job's workers against its target.

    Attributes:
        want: Workers by node that it should have.
        missing: Workers by node still to be granted.
        excess: Workers by node that should go.
        going: Workers by node that go, or hold GPUs and will not hold them for long.
        num_pending: Live workers that are in no allocation document yet.
        can_claim: Whether the last document is acknowledged, its workers are there and nothing granted is outstanding.
    """

    want: Mapping[str, int]
    missing: Mapping[str, int]
    excess: Mapping[str, int]
    going: Mapping[str, int]
    num_pending: int
    can_claim: bool


def live_workers(job: Job) -> list[Worker]:
    """Workers that train or will, by number."""
    return sorted((worker for worker in job.workers if worker.phase in _LIVE), key=lambda worker: worker.number)


def published_workers(job: Job) -> list[Worker]:
    """Live workers of the newest document, by number."""
    return [worker for worker in live_workers(job) if worker.id in job.published]


def wish(job: Job, target: Target) -> Wish:
    """Compare a job with its target; one that no decision has seen yet wants what it has."""
    live = Counter(worker.node for worker in live_workers(job))
    decided = job.id in target.reasons or not job.is_active
    want = Counter(dict(target.placement.workers(job.id))) if decided else live
    training = published_workers(job)
    num_pending = sum(live.values()) - len(training)
    acknowledged = job.driver_ready and job.acknowledged == job.generation > 0
    stays = job.phase in (JobPhase.STARTING, JobPhase.RUNNING)
    leaving = Counter(worker.node for worker in job.holding if not stays or worker.phase is WorkerPhase.LEAVING)
    excess = live - want
    return Wish(
        want=dict(sorted(want.items())),
        missing=dict(sorted((want - live).items())),
        excess=dict(sorted(excess.items())),
        going=dict(sorted((leaving + (excess if stays else Counter())).items())),
        num_pending=num_pending,
        can_claim=acknowledged and not num_pending and len(training) == len(job.published),
    )


def chosen_to_go(workers: Iterable[Worker], excess: Mapping[str, int], most: int) -> list[Worker]:
    """Of these workers, up to ``most`` on nodes that have too many: the highest numbers first."""
    left = dict(excess)
    chosen: list[Worker] = []
    for worker in sorted(workers, key=lambda one: -one.number):
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


def make_room(job: Job, wanted: Wish) -> Publish | Stop:
    """One step of a move for which there is no room yet: shrink first as far as the minimum allows, else stop."""
    published = published_workers(job)
    spare = len(published) - job.spec.min_gpus // job.spec.gpus_per_worker
    dropped = chosen_to_go(published, wanted.excess, spare)
    if dropped:
        return publish(job, [worker for worker in published if worker not in dropped])
    nodes = ", ".join(wanted.missing)
    return stop(job, f"moves to {nodes} through a checkpoint: no room there for it to grow first, and none to spare")

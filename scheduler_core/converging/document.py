"""The next step of a granted job that needs no free GPU: its allocation documents, its evictions, its stop.

In: a job and its ``Wish``. Out: actions, none when it is as it should be or must wait. Part of step five (plan).
A document is written only when the last one is acknowledged, with one exception: a worker of the document that is gone
is dropped at once, because a generation with a dead worker might never be acknowledged.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass

from scheduler_core.converging.workers import Wish, chosen_to_go, live_workers, publish, published_workers, stop
from scheduler_core.model.job import Job, JobPhase, Worker, WorkerPhase
from scheduler_core.model.plan import Abandon, Action, Evict
from scheduler_core.model.units import in_words

#: A driver whose agents have said goodbye is seen to have ended within seconds.
_GOODBYE_S = 10.0

#: Agents leave by themselves when their driver has: at once after its goodbye, else when they have missed it for long.
LEAVE_LIMIT_S = 30.0

#: A pod for a node that was closed or lost meanwhile waits for it; after so long it is no matter of who was first.
PLACE_LIMIT_S = 10.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Around:
    """What a job's next step depends on beside the job.

    Attributes:
        now_s: The moment of the observation.
        start_limit_s: How long a granted worker may take to become ready.
        short: Nodes where jobs wait for others to leave.
    """

    now_s: float
    start_limit_s: float
    short: Collection[str] = ()


def document_step(job: Job, wanted: Wish, around: Around) -> list[Action]:
    """The next step of a job whose gate was answered.

    Args:
        job: Starting, running, stopping or between two segments.
        wanted: Its workers against its target.
        around: What else it depends on.
    """
    now_s = around.now_s
    # A frozen agent hears no goodbye, and would keep its GPUs for as long as its job goes on without it.
    stuck = [worker for worker in job.workers if worker.left_s and now_s - worker.left_s >= LEAVE_LIMIT_S]
    evictions = _evictions(job, stuck, f"done with by its driver {LEAVE_LIMIT_S:.0f} s ago, and still there")
    homeless = _homeless(job, now_s)
    if homeless:
        return evictions + _evictions(job, homeless, "its node was closed or lost before it took the pod")
    return evictions + _live_step(job, wanted, around)


def _homeless(job: Job, now_s: float) -> list[Worker]:
    """Workers whose pods wait for a node that takes none."""
    return [worker for worker in live_workers(job) if worker.unplaced_s and now_s - worker.unplaced_s >= PLACE_LIMIT_S]


def _live_step(job: Job, wanted: Wish, around: Around) -> list[Action]:
    """The next step of a job with the workers that train or will."""
    now_s, start_limit_s = around.now_s, around.start_limit_s
    late = [worker for worker in live_workers(job) if _is_late(worker, job, now_s, start_limit_s)]
    if job.phase is JobPhase.STARTING and not job.driver_ready and now_s - (job.granted_s or now_s) >= start_limit_s:
        return _without_driver(job, f"its driver did not come up within {start_limit_s:.0f} s")
    if job.checkpoint_s and now_s - job.checkpoint_s >= start_limit_s:
        reason = f"the checkpoint step did not come up within {start_limit_s:.0f} s"
        return [Abandon(job_id=job.id, segment=job.segment, role="checkpoint", reason=reason)]
    if job.driver_ended_s is not None and now_s - job.driver_ended_s >= LEAVE_LIMIT_S:
        # A driver that was killed before it spoke to its agents leaves them waiting for one, warm, for ever.
        return _evictions(job, live_workers(job), f"its driver ended {LEAVE_LIMIT_S:.0f} s ago")
    if not job.is_active:
        return _evictions(job, late, f"not ready {start_limit_s:.0f} s after its grant")
    if not job.published:
        return _first_document(job, wanted, late, around)
    late = [worker for worker in late if worker.id not in job.published]
    evictions = _evictions(job, late, f"not ready {start_limit_s:.0f} s after its grant")
    return evictions + (_next_document(job, wanted, late, around) if job.driver_ready else [])


def _is_late(worker: Worker, job: Job, now_s: float, start_limit_s: float) -> bool:
    granted_s = worker.since_s or job.granted_s or now_s
    return worker.phase is not WorkerPhase.READY and now_s - granted_s >= start_limit_s


def _evictions(job: Job, workers: Iterable[Worker], reason: str) -> list[Action]:
    """Delete these workers' pods; a worker that is only granted has none yet, and is left to come up too late."""
    return [
        Evict(job_id=job.id, segment=job.segment, worker_id=worker.id, reason=reason)
        for worker in workers
        if worker.phase is not WorkerPhase.GRANTED
    ]


def _without_driver(job: Job, reason: str) -> list[Action]:
    """First the workers, so that they count as failed on their nodes; then the driver, so that the segment ends."""
    evictions = _evictions(job, live_workers(job), reason)
    if evictions or not job.driver_waits:
        return evictions
    return [Abandon(job_id=job.id, segment=job.segment, role="driver", reason=reason)]


def _gpus(workers: Iterable[Worker]) -> int:
    return sum(worker.gpus for worker in workers)


def _first_document(job: Job, wanted: Wish, late: list[Worker], around: Around) -> list[Action]:
    """Start when all granted workers are ready, or after the limit with at least the minimum; below it, give up."""
    if not wanted.want and job.driver_ready:
        return [stop(job, "not to run now: its GPUs went to others, and none are free")]
    live = live_workers(job)
    too_many = len(live) - sum(wanted.want.values())
    surplus = chosen_to_go(live, wanted.excess, too_many, around.short) if wanted.want else []
    evictions = _evictions(job, surplus, "no longer wanted: the job's target became smaller")
    given_up = [worker for worker in late if worker not in surplus]
    evictions += _evictions(job, given_up, f"not ready {around.start_limit_s:.0f} s after its grant")
    staying = [worker for worker in live if worker not in surplus and worker not in given_up]
    if not job.driver_ready or any(worker.phase is not WorkerPhase.READY for worker in staying):
        return evictions
    if _gpus(staying) >= job.spec.min_gpus:
        return [*evictions, publish(job, staying)]
    return [
        *evictions,
        stop(job, f"{in_words(_gpus(staying))} became ready, fewer than its minimum of {job.spec.min_gpus}"),
    ]


def _next_document(job: Job, wanted: Wish, late: list[Worker], around: Around) -> list[Action]:
    """One change of a training job, the most urgent one."""
    published = published_workers(job)
    if len(published) < len(job.published):
        return _after_loss(job, published, around.now_s)
    if job.acknowledged != job.generation:
        return []
    if not wanted.want:
        return [stop(job, "preempted: its GPUs are given to jobs before it")]
    fresh = [worker for worker in live_workers(job) if worker.id not in job.published and worker not in late]
    surplus = _unwanted(fresh, published, wanted, around.short)
    evictions = _evictions(job, surplus, "no longer wanted: the job's target became smaller")
    ready = [worker for worker in fresh if worker not in surplus and worker.phase is WorkerPhase.READY]
    if ready:
        return [*evictions, publish(job, [*published, *ready])]
    return evictions + _shrink(job, wanted, published, around.short)


def _after_loss(job: Job, left: list[Worker], now_s: float) -> list[Action]:
    """Some worker of the document is gone: go on without it where the minimum allows.

    Agents end well when their driver says goodbye, or after a drain that the driver carries out by itself: while all
    who are gone did, the driver's own end is waited for, so nobody calls a success a loss.
    """
    gone = [worker for worker in job.workers if worker.id in job.published and worker not in left]
    done_s = min((worker.done_s for worker in gone), default=0.0)
    if done_s and now_s - done_s < _GOODBYE_S:
        return []
    if _gpus(left) >= job.spec.min_gpus:
        return [publish(job, left)]
    why = f"{in_words(_gpus(left))} left, fewer than its minimum of {job.spec.min_gpus}"
    return [stop(job, f"workers {'ended' if done_s else 'were lost'}: {why}")]


def _unwanted(fresh: list[Worker], published: list[Worker], wanted: Wish, short: Collection[str]) -> list[Worker]:
    """New workers where the job is not to be, but for those by which it steps aside from nodes where others wait."""
    crowding = [worker for worker in published if worker.node in short]
    num_aside = len(chosen_to_go(crowding, wanted.excess, len(crowding)))
    unwanted = chosen_to_go(fresh, wanted.excess, len(fresh))
    aside = [worker for worker in reversed(unwanted) if worker.node not in short][:num_aside]
    return [worker for worker in unwanted if worker not in aside]


def _shrink(job: Job, wanted: Wish, published: list[Worker], short: Collection[str]) -> list[Action]:
    """Drop the workers that nothing is going to replace; those that make way for others stay until these are here."""
    dropped = chosen_to_go(published, wanted.excess, len(published) - sum(wanted.want.values()), short)
    return [publish(job, [worker for worker in published if worker not in dropped])] if dropped else []

"""Queues as a cap around every policy: each has its own GPUs first, and what nobody wants is lent until it is wanted.

In: a policy, what it is asked about one pool, and the queues' shares of that pool. Out: an allocation that keeps every
queue within what it may have. The policy knows nothing of it: it is only ever asked about some of the jobs, some of the
GPUs, or bounds that are narrower than a job's own. Stands around the third of the six steps (allocate).

1. *Own.* The policy is asked about the jobs of each queue alone, with the queue's nominal GPUs. Where the nominal GPUs
   that are wanted are more than there are (a node went), it is asked once more about all that was granted.
2. *Lent.* It is asked about all jobs and all GPUs. A job with GPUs of step 1 has these as its minimum and stands before
   all others, so it keeps them. A queue that would have more than it may is asked about alone, with as many as it may
   have; its jobs are fixed at that, and the others are asked about again.

So what a queue borrows is only what is left when every queue had its own: when one wants its own back, less is left,
and the borrowing jobs that are last in the policy's order go without at the next decision. The two steps are those of
nominal quota and borrowing in Kueue; there a borrower is found and preempted, here every decision lends anew.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import TypeVar

from scheduler_core.model.allocation import Allocation
from scheduler_core.model.job import JobSpec
from scheduler_core.model.ports import Policy, PolicyInput

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Share:
    """What one queue may have of a pool, less what its jobs hold that are not asked about.

    Attributes:
        own_gpus: GPUs that are its own, >= 0.
        most_gpus: The most it may have, None for no limit.
    """

    own_gpus: int
    most_gpus: int | None = None


def capped(policy: Policy, asked: PolicyInput, share_by_queue: Mapping[str, Share]) -> Allocation:
    """Allocate so that each queue has its own GPUs first, and none more than it may.

    Args:
        policy: Any policy.
        asked: What it is to be asked.
        share_by_queue: Shares by queue; a queue that is not named owns nothing and has no limit. Without any entry the
            result is the policy's own.

    Returns:
        GPUs by job. For every queue of which the GPUs suffice for all nominal ones: each job has at least what the
        policy gives it among the queue's jobs alone on the queue's own GPUs.
    """
    if not share_by_queue:
        return policy(asked)
    specs_by_queue: dict[str, list[JobSpec]] = {}
    for spec in asked.specs:
        specs_by_queue.setdefault(spec.queue, []).append(spec)
    own = _own(policy, asked, specs_by_queue, share_by_queue)
    fixed: dict[str, int] = {}
    bound: dict[str, int] = {}
    for queue in sorted(specs_by_queue):
        most = share_by_queue[queue].most_gpus if queue in share_by_queue else None
        if most is not None and most <= share_by_queue[queue].own_gpus:
            fixed |= {spec.id: own.gpus(spec.id) for spec in specs_by_queue[queue]}
        elif most is not None:
            bound[queue] = most
    while True:
        lent = _lent(policy, asked, own, fixed)
        over = [queue for queue, most in bound.items() if _sum(lent, specs_by_queue[queue]) > most]
        if not over:
            return lent
        for queue in over:
            specs = specs_by_queue[queue]
            alone = _kept(policy, _about(asked, specs, bound.pop(queue)), own)
            fixed |= {spec.id: alone.gpus(spec.id) for spec in specs}


def _own(
    policy: Policy,
    asked: PolicyInput,
    specs_by_queue: Mapping[str, list[JobSpec]],
    share_by_queue: Mapping[str, Share],
) -> Allocation:
    """What the jobs of each queue get of its own GPUs."""
    gpus_by_job: dict[str, int] = {}
    for queue in sorted(specs_by_queue.keys() & share_by_queue.keys()):
        own_gpus = min(share_by_queue[queue].own_gpus, asked.capacity_gpus)
        if own_gpus:
            gpus_by_job |= policy(_about(asked, specs_by_queue[queue], own_gpus)).gpus_by_job
    if sum(gpus_by_job.values()) <= asked.capacity_gpus:
        return Allocation(gpus_by_job=gpus_by_job)
    granted = [
        replace(spec, max_gpus=gpus, num_gpus=min(spec.num_gpus, gpus))
        for spec in asked.specs
        if (gpus := gpus_by_job.get(spec.id, 0))
    ]
    return policy(_about(asked, granted, asked.capacity_gpus))


def _lent(policy: Policy, asked: PolicyInput, own: Allocation, fixed: Mapping[str, int]) -> Allocation:
    """All GPUs to all jobs, those that are fixed as they are."""
    if not fixed:
        return _kept(policy, asked, own)
    specs = [spec for spec in asked.specs if spec.id not in fixed]
    free = _kept(policy, _about(asked, specs, asked.capacity_gpus - sum(fixed.values())), own)
    return Allocation(gpus_by_job={**free.gpus_by_job, **fixed})


def _kept(policy: Policy, asked: PolicyInput, own: Allocation) -> Allocation:
    """The policy's answer in which every job has at least its own GPUs.

    One that does not serve a higher priority class first, as a policy must, is asked about the others only.
    """
    if not asked.capacity_gpus:
        return Allocation()
    lift = (
        1 + max((spec.priority for spec in asked.specs), default=0) - min((s.priority for s in asked.specs), default=0)
    )
    specs = [_raised(spec, gpus, lift) if (gpus := own.gpus(spec.id)) else spec for spec in asked.specs]
    found = policy(replace(asked, specs=tuple(specs)))
    if all(found.gpus(spec.id) >= own.gpus(spec.id) for spec in asked.specs):
        return found
    kept = {spec.id: own.gpus(spec.id) for spec in asked.specs if own.gpus(spec.id)}
    others = [spec for spec in asked.specs if spec.id not in kept]
    rest = policy(_about(asked, others, asked.capacity_gpus - sum(kept.values())))
    return Allocation(gpus_by_job={**rest.gpus_by_job, **kept})


def _raised(spec: JobSpec, gpus: int, lift: int) -> JobSpec:
    """The job with so many GPUs for certain: its least, what it asks for, and before every job that has none."""
    return replace(spec, min_gpus=gpus, num_gpus=gpus, priority=spec.priority + lift)


def _about(asked: PolicyInput, specs: Iterable[JobSpec], capacity_gpus: int) -> PolicyInput:
    """The same question about some of the jobs, or of narrower bounds, and some of the GPUs."""
    chosen = tuple(specs)
    ids = [spec.id for spec in chosen]
    return replace(
        asked,
        specs=chosen,
        capacity_gpus=capacity_gpus,
        current=Allocation(gpus_by_job=_of(asked.current.gpus_by_job, ids)),
        speed_by_job=_of(asked.speed_by_job, ids),
        attained_gpu_s_by_job=_of(asked.attained_gpu_s_by_job, ids),
        remaining_s_by_job=_of(asked.remaining_s_by_job, ids),
        service_by_job=_of(asked.service_by_job, ids),
        started_s_by_job=_of(asked.started_s_by_job, ids),
    )


def _of(by_job: Mapping[str, T], ids: Collection[str]) -> dict[str, T]:
    return {job_id: by_job[job_id] for job_id in ids if job_id in by_job}


def _sum(allocation: Allocation, specs: Iterable[JobSpec]) -> int:
    return sum(allocation.gpus(spec.id) for spec in specs)

"""Allocate and place the GPUs of one pool, and check both results before anybody relies on them.

In: a pool, a policy, a placer and what they may know. Out: an allocation of which every worker has a node. Steps three
and four of the six; ``cycle.decide`` calls it for each pool.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import TypeVar

from scheduler_core.allocate.pools import Pool
from scheduler_core.deciding.hysteresis import steadied
from scheduler_core.deciding.queues import queue_reasons, shares
from scheduler_core.deciding.quota import capped
from scheduler_core.model.allocation import Allocation
from scheduler_core.model.job import JobSpec
from scheduler_core.model.observation import Observation
from scheduler_core.model.params import Params
from scheduler_core.model.placement import Placement
from scheduler_core.model.ports import Placer, PlacerInput, Policy, PolicyInput
from scheduler_core.model.reason import Code, Reason
from scheduler_core.model.units import in_words

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Stages:
    """The two exchangeable stages of a decision.

    Attributes:
        policy_name: What messages call the policy.
        policy: Allocates.
        placer: Places.
    """

    policy_name: str
    policy: Policy
    placer: Placer


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """What the stages may know beside the jobs themselves.

    Attributes:
        observation: The world.
        current: Where workers stand.
        speed_by_job: Samples/s at 0, 1, 2, ... GPUs, those that are usable.
        params: The settings.
        avoid_by_job: Nodes that single jobs had better not be put on now.
    """

    observation: Observation
    current: Placement
    speed_by_job: Mapping[str, tuple[float, ...]]
    params: Params
    avoid_by_job: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Served:
    """What a pool's jobs get.

    Attributes:
        allocation: GPUs by job.
        placement: Nodes for all of them.
        notes: What else is to be said of single jobs: of their queue, of a size that was kept, of nodes not found.
    """

    allocation: Allocation = Allocation()
    placement: Placement = Placement()
    notes: Mapping[str, tuple[Reason, ...]] = field(default_factory=dict)


def serve(pool: Pool, stages: Stages, known: Known) -> Served:
    """Allocate, place, and where a job's workers find no nodes, allocate again with that job at its next smaller size.

    Every repetition lowers at least one job, so it ends; what an unplaced job would have had goes to the others.

    Raises:
        LawBroken: A stage's result breaks its post-condition.
    """
    specs, queues = pool.specs, shares(pool, known.observation, known.current)
    unplaced: dict[str, Reason] = {}
    while True:
        asked = _policy_input(pool, specs, known)
        wanted = capped(stages.policy, asked, queues.by_queue)
        allocation = steadied(wanted, asked)
        allocation.check(specs, pool.capacity_gpus, by=stages.policy_name)
        placement = stages.placer(_placer_input(pool, specs, known, allocation))
        placement.check(allocation, specs, pool.gpus_by_node)
        if not placement.unplaced:
            notes = joined(unplaced, queue_reasons(pool, allocation, queues), _kept(wanted, allocation))
            return Served(allocation=allocation, placement=placement, notes=notes)
        unplaced |= {job_id: Reason(code=Code.NO_NODES, text=why) for job_id, why in placement.unplaced.items()}
        specs = tuple(_lowered(specs, allocation, placement))


def joined(*told: Mapping[str, Reason]) -> dict[str, tuple[Reason, ...]]:
    """All that is said of each job, in this order."""
    ids = sorted({job_id for reasons in told for job_id in reasons})
    return {job_id: tuple(reasons[job_id] for reasons in told if job_id in reasons) for job_id in ids}


def _kept(wanted: Allocation, allocation: Allocation) -> dict[str, Reason]:
    """Jobs that keep a size although the policy would give them another."""
    return {
        job_id: Reason(code=Code.SIZE_KEPT, text=f"a change to {in_words(gpus)} would cost more than it brings")
        for job_id, gpus in wanted.gpus_by_job.items()
        if gpus != allocation.gpus(job_id)
    }


def _lowered(specs: Iterable[JobSpec], allocation: Allocation, placement: Placement) -> Iterable[JobSpec]:
    """The jobs, those that found no nodes asking for one worker less, or left out when at their minimum already."""
    for spec in specs:
        if spec.id not in placement.unplaced:
            yield spec
            continue
        lower = allocation.gpus(spec.id) - spec.gpus_per_worker
        if lower >= spec.min_gpus:
            yield replace(spec, max_gpus=lower)


def _policy_input(pool: Pool, specs: tuple[JobSpec, ...], known: Known) -> PolicyInput:
    observation, ids = known.observation, {spec.id for spec in specs}
    jobs = [job for job in observation.jobs if job.id in ids]
    return PolicyInput(
        specs=specs,
        capacity_gpus=pool.capacity_gpus,
        current=Allocation(
            gpus_by_job={spec.id: sum(known.current.workers(spec.id).values()) * spec.gpus_per_worker for spec in specs}
        ),
        speed_by_job=_of(known.speed_by_job, ids),
        attained_gpu_s_by_job={job.id: job.attained_gpu_s for job in jobs},
        now_s=observation.now_s,
        remaining_s_by_job=_of(observation.remaining_s_by_job, ids),
        service_by_job={job.id: job.service for job in jobs},
        started_s_by_job={job.id: job.started_s for job in jobs if job.started_s is not None},
        costs=observation.costs,
        params=known.params,
    )


def _placer_input(pool: Pool, specs: tuple[JobSpec, ...], known: Known, allocation: Allocation) -> PlacerInput:
    observation, ids = known.observation, {spec.id for spec in specs}
    return PlacerInput(
        allocation=allocation,
        specs=specs,
        cluster=pool.cluster,
        capacity_gpus=pool.gpus_by_node,
        current=known.current,
        avoid_by_job=known.avoid_by_job,
        remaining_s_by_job=_of(observation.remaining_s_by_job, ids),
        step_s_by_job=_of(observation.step_s_by_job, ids),
        gradient_bytes_by_job=_of(observation.gradient_bytes_by_job, ids),
        speed_by_job=_of(known.speed_by_job, ids),
        costs=observation.costs,
        params=known.params,
    )


def _of(by_job: Mapping[str, T], ids: Collection[str]) -> dict[str, T]:
    return {job_id: value for job_id, value in by_job.items() if job_id in ids}

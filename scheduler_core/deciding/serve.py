"""Allocate and place the GPUs of one pool, and check both results before anybody relies on them.

In: a pool, a policy, a placer and what they may know. Out: an allocation of which every worker has a node. Steps three
and four of the six; ``cycle.decide`` calls it for each pool.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from scheduler_core.allocate.pools import Pool
from scheduler_core.model.allocation import Allocation
from scheduler_core.model.job import JobSpec
from scheduler_core.model.placement import Placement
from scheduler_core.model.ports import Placer, PlacerInput, Policy, PolicyInput


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
        current: Where workers stand.
        speed_by_job: Samples/s at 0, 1, 2, ... GPUs.
        attained_gpu_s_by_job: GPU seconds held so far.
        now_s: The moment of the observation.
        avoid_by_job: Nodes that single jobs had better not be put on now.
    """

    current: Placement
    speed_by_job: Mapping[str, tuple[float, ...]]
    attained_gpu_s_by_job: Mapping[str, float]
    now_s: float
    avoid_by_job: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Served:
    """What a pool's jobs get.

    Attributes:
        allocation: GPUs by job.
        placement: Nodes for all of them.
        notes: Jobs that got less than the policy wanted because workers of their size found no nodes, with the reason.
    """

    allocation: Allocation = Allocation()
    placement: Placement = Placement()
    notes: Mapping[str, str] = field(default_factory=dict)


def serve(pool: Pool, stages: Stages, known: Known) -> Served:
    """Allocate, place, and where a job's workers find no nodes, allocate again with that job at its next smaller size.

    Every repetition lowers at least one job, so it ends; what an unplaced job would have had goes to the others.

    Raises:
        LawBroken: A stage's result breaks its post-condition.
    """
    specs = pool.specs
    notes: dict[str, str] = {}
    while True:
        allocation = stages.policy(_policy_input(pool, specs, known))
        allocation.check(specs, pool.capacity_gpus, by=stages.policy_name)
        placement = stages.placer(
            PlacerInput(
                allocation=allocation,
                specs=specs,
                cluster=pool.cluster,
                capacity_gpus=pool.gpus_by_node,
                current=known.current,
                avoid_by_job=known.avoid_by_job,
            )
        ).check(allocation, specs, pool.gpus_by_node)
        if not placement.unplaced:
            return Served(allocation=allocation, placement=placement, notes=notes)
        notes |= placement.unplaced
        specs = tuple(_lowered(specs, allocation, placement))


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
    ids = {spec.id for spec in specs}
    return PolicyInput(
        specs=specs,
        capacity_gpus=pool.capacity_gpus,
        current=Allocation(
            gpus_by_job={spec.id: sum(known.current.workers(spec.id).values()) * spec.gpus_per_worker for spec in specs}
        ),
        speed_by_job={job_id: speeds for job_id, speeds in known.speed_by_job.items() if job_id in ids},
        attained_gpu_s_by_job={job_id: held for job_id, held in known.attained_gpu_s_by_job.items() if job_id in ids},
        now_s=known.now_s,
    )

"""From what the stages gave to the next target: fixed jobs added, disturbance counted, every job's reason written down.

In: the observation, the stored target, where the decision started and what each pool got. Out: the ``Decision``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from scheduler_core.deciding.reasons import reasons
from scheduler_core.deciding.serve import Served, joined
from scheduler_core.deciding.standing import Start, input_digest, marked, usable_gpus
from scheduler_core.errors import LawBroken
from scheduler_core.model.allocation import Allocation
from scheduler_core.model.decision import Decision, DecisionKind
from scheduler_core.model.job import Job, JobPhase
from scheduler_core.model.observation import Observation
from scheduler_core.model.placement import Placement
from scheduler_core.model.quarantine import quarantines
from scheduler_core.model.reason import Code, Reason
from scheduler_core.model.target import Target


def conclude(observation: Observation, target: Target, begin: Start, served: Sequence[Served]) -> Decision:
    """Put the pools' results and the fixed jobs together into the next target.

    Args:
        observation: The world.
        target: The stored target.
        begin: Where the decision started.
        served: What each pool's jobs get.

    Raises:
        LawBroken: A node would be promised more GPUs than it has.
    """
    workers_by_job: dict[str, Mapping[str, int]] = {job_id: begin.current.workers(job_id) for job_id in begin.fixed}
    for pool in served:
        workers_by_job |= pool.placement.workers_by_job
    placement = Placement(workers_by_job=workers_by_job)
    allocation = Allocation(
        gpus_by_job={
            job.id: sum(placement.workers(job.id).values()) * job.spec.gpus_per_worker for job in observation.jobs
        }
    )
    _check_nodes(observation, placement)
    disturbed = tuple(
        job.id
        for job in observation.jobs
        if job.is_active and placement.workers(job.id) != begin.current.workers(job.id)
    )
    left_out, notes = quarantines(observation, target), _notes(observation, target, begin, served)
    told = reasons(observation, allocation, placement, notes)
    made = Target(
        decision=target.decision + 1,
        decided_s=observation.now_s,
        disturbed_s=observation.now_s if disturbed else target.disturbed_s,
        policy=begin.params.policy,
        allocation=allocation,
        placement=placement,
        quarantined=left_out,
        reasons={job_id: reason.text for job_id, reason in told.items()},
        codes={
            job_id: tuple(one.code.value for one in (told[job_id], *others))
            for job_id, others in sorted(notes.items())
            if job_id in told
        },
    )
    digest = input_digest(observation, made, begin.params)
    return Decision(
        target=replace(made, digest=marked(digest, within_limit=begin.within_limit)),
        kind=DecisionKind.WAITING if begin.within_limit else DecisionKind.FULL,
        disturbed=disturbed,
    )


def _notes(
    observation: Observation, target: Target, begin: Start, served: Sequence[Served]
) -> dict[str, tuple[Reason, ...]]:
    """What else is to be said of single jobs: why they stay as they are, found no nodes, or are not served yet."""
    jobs, left_out = observation.jobs_by_id, quarantines(observation, target)
    fixed = {
        job_id: Reason(code=Code.LEFT_OUT if job_id in left_out else _code(jobs[job_id]), text=why)
        for job_id, why in begin.fixed.items()
        if why
    }
    notes = joined(fixed)
    for pool in served:
        notes |= pool.notes
    if begin.within_limit:
        given = {job_id for pool in served for job_id in pool.placement.workers_by_job}
        said = f"running jobs are disturbed at most once in {begin.params.decide_interval_s:.0f} s"
        limited = (Reason(code=Code.RATE_LIMIT, text=said),)
        for job in observation.jobs:
            if job.phase is JobPhase.QUEUED and job.id not in begin.fixed and job.id not in given:
                notes.setdefault(job.id, limited)
    return notes


def _code(job: Job) -> Code:
    """Why a job stays as it stands, in the order in which ``fixed_jobs`` asks."""
    if job.held:
        return Code.SUSPENDED
    return Code.STALLED if job.stalled else Code.PINNED


def _check_nodes(observation: Observation, placement: Placement) -> None:
    """The law of all pools and fixed jobs together: no node promised more than it has."""
    left = usable_gpus(observation)
    for job in observation.jobs:
        for node, count in placement.workers(job.id).items():
            left[node] = left.get(node, 0) - count * job.spec.gpus_per_worker
    over = {node: -gpus for node, gpus in sorted(left.items()) if gpus < 0}
    if over:
        raise LawBroken(f"expected no node over its GPUs, got so many too many: {over}")

"""Who is left out and for how long: until the job's inputs change, or a time has passed that doubles with each failure.

In: the observation and the stored target. Out: the quarantines that hold, and new ones.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import replace

from scheduler_core.model.job import Job, JobPhase
from scheduler_core.model.observation import Observation
from scheduler_core.model.target import Fence, Quarantine, Target

#: Names of the stages that leave jobs out.
DECIDE = "decide"
PLAN = "plan"
#: A job is tried again after a minute, then two, four, ..., at most an hour: each trial may cost a time limit.
_FIRST_S = 60.0
_LONGEST_S = 3_600.0
#: Decisions that fail whoever is left out are tried again after ten seconds, twenty, ..., at most ten minutes.
_FENCE_FIRST_S = 10.0
_FENCE_LONGEST_S = 600.0
#: Digits of a speed that count as news: reports vary by some per cent from epoch to epoch.
SPEED_DIGITS = 2


def backoff_s(tries: int, first_s: float, longest_s: float) -> float:
    """Seconds to wait after so many failures in a row: doubled each time.

    >>> [backoff_s(tries, 10.0, 60.0) for tries in (1, 2, 3, 4, 5000)]
    [10.0, 20.0, 40.0, 60.0, 60.0]
    """
    return min(first_s * 2.0 ** min(tries - 1, 60), longest_s)


def quarantines(observation: Observation, target: Target, stage: str = "") -> dict[str, Quarantine]:
    """The quarantines that hold now, by id in order.

    Args:
        observation: The world. A clock that was set back ends them.
        target: The stored target.
        stage: Those of one stage only.
    """
    if not target.quarantined:
        return {}
    return {
        job.id: held
        for job in observation.jobs
        if (held := target.quarantined.get(job.id)) is not None
        if stage in ("", held.stage) and job.phase is not JobPhase.ENDED
        if held.tried_s <= observation.now_s < held.until_s and held.inputs == job_inputs(job, observation)
    }


def with_quarantine(
    observation: Observation, target: Target, reason_by_job: Mapping[str, str], stage: str
) -> dict[str, Quarantine]:
    """The target's quarantines and those of these jobs, which fail now, by id in order.

    Args:
        observation: The world in which they fail.
        target: The stored target, with the quarantines so far.
        reason_by_job: What the stage did wrong with each of them.
        stage: The stage that fails.

    Returns:
        The quarantines; one that fails again in the same way is left out for longer each time.
    """
    made = dict(target.quarantined)
    jobs = observation.jobs_by_id
    for job_id, reason in reason_by_job.items():
        inputs = job_inputs(jobs[job_id], observation)
        before = target.quarantined.get(job_id)
        if before is not None and (before.inputs, before.stage) != (inputs, stage):
            before = None  # the job or what fails is another now: its time begins anew
        tries = before.tries + 1 if before is not None else 1
        made[job_id] = Quarantine(
            stage=stage,
            reason=reason,
            since_s=before.since_s if before is not None else observation.now_s,
            tried_s=observation.now_s,
            until_s=observation.now_s + backoff_s(tries, _FIRST_S, _LONGEST_S),
            tries=tries,
            inputs=inputs,
        )
    return dict(sorted(made.items()))


def job_inputs(job: Job, observation: Observation) -> str:
    """A digest of what the stages know of a job itself: its request, its segment, its speeds."""
    spec = job.spec
    known = (
        (spec.min_gpus, spec.max_gpus, spec.gpus_per_worker, spec.priority, spec.queue, spec.gpu_type),
        job.segment,
        rounded(observation.speed_by_job.get(job.id, ())),
    )
    return hashlib.sha256(json.dumps(known).encode()).hexdigest()[:16]


def rounded(speeds: tuple[float, ...]) -> list[str]:
    """Speeds as they count as news."""
    return [f"{speed:.{SPEED_DIGITS}g}" for speed in speeds]


def for_policy(target: Target, policy: str) -> Target:
    """The target without what was found out about another policy."""
    return replace(
        target,
        quarantined=target.quarantined if target.policy == policy else {},
        fence=target.fence if target.fence and target.fence.policy == policy else None,
        search=target.search if target.search and target.search.policy == policy else None,
    )


def next_fence(target: Target, policy: str, digest: str, fault: str, now_s: float) -> Fence:
    """The fence after one more decision that failed.

    Args:
        target: The stored target, with the fence so far if there is one.
        policy: The policy that failed.
        digest: Of the input with which it failed.
        fault: What it did wrong.
        now_s: The moment, seconds since the epoch.
    """
    before = target.fence
    tries = before.tries + 1 if before else 1
    return Fence(
        policy=policy,
        digest=digest,
        fault=fault,
        since_s=before.since_s if before else now_s,
        tried_s=now_s,
        until_s=now_s + backoff_s(tries, _FENCE_FIRST_S, _FENCE_LONGEST_S),
        tries=tries,
    )


def is_fenced(target: Target, digest: str, now_s: float) -> bool:
    """Whether to wait before another decision: another input is tried sooner than the same one, but not at once."""
    fence = target.fence
    if fence is None or now_s < fence.tried_s:
        return False
    return now_s < (fence.until_s if digest == fence.digest else min(fence.until_s, fence.tried_s + _FENCE_FIRST_S))

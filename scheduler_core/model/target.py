"""The stored target: what the last decision wants, written by compare-and-swap so that a restart goes on from it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from scheduler_core.model.allocation import Allocation
from scheduler_core.model.placement import Placement


@dataclass(frozen=True, slots=True, kw_only=True)
class Quarantine:
    """Why a job is left out: with it a stage fails, without it the others are served.

    Attributes:
        stage: Which stage leaves it out: ``decide`` (it keeps what it has) or ``plan`` (nothing is done to it either).
        reason: What the stage did wrong with it.
        since_s: When it was first left out, seconds since the epoch.
        tried_s: When it was last tried.
        until_s: When it is tried again.
        tries: How often in a row it made the stage fail.
        inputs: Digest of what the stage knows of this job; other inputs end the quarantine.
    """

    stage: str
    reason: str
    since_s: float
    tried_s: float
    until_s: float
    tries: int
    inputs: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Fence:
    """Decisions fail whichever single jobs are left out: the target stays as it is.

    Attributes:
        policy: Name of the policy with which they failed.
        digest: Digest of the input with which they failed.
        fault: What a stage did wrong.
        since_s: When they first failed, seconds since the epoch.
        tried_s: When they were last tried.
        until_s: When the same input is tried again.
        tries: How often in a row they failed.
    """

    policy: str
    digest: str
    fault: str
    since_s: float
    tried_s: float
    until_s: float
    tries: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Search:
    """How far the search for the jobs that make a stage fail has come.

    Attributes:
        policy: Name of the policy that is tried.
        fault: What the stage did wrong with all jobs.
        began_s: When, seconds since the epoch.
        works_alone: Whether the stage was seen to work with no job at all: jobs are to blame.
        cleared: Jobs with which it works.
        suspects: Jobs of which one at least makes it fail beside the cleared ones; empty when that is not known yet.
        guilty: Jobs with which it failed beside the cleared ones only, with what it did wrong.
    """

    policy: str
    fault: str
    began_s: float
    works_alone: bool = False
    cleared: tuple[str, ...] = ()
    suspects: tuple[str, ...] = ()
    guilty: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """What the world should become.

    Attributes:
        decision: Number of the decision that made it, 0 before the first.
        decided_s: When, seconds since the epoch.
        disturbed_s: When a decision last disturbed a running job (the rate limit counts from it).
        digest: Digest of the input it was made from; an equal input needs no new decision.
        policy: Name of the policy that made it.
        allocation: GPUs by job.
        placement: Workers by node, by job.
        quarantined: Jobs that are left out, and those that were until a moment ago and are on trial.
        fence: Why there is no newer decision, None while decisions succeed.
        search: The search for the jobs that make decisions fail, None while there is none.
        reasons: Why each job has what it has, one sentence each (what ``voda explain`` prints).
        codes: What these sentences say, in codes for programs (``model.reason.Code``), the cause first; only of jobs of
            which more is said than that they have GPUs or wait for some.
    """

    decision: int = 0
    decided_s: float = 0.0
    disturbed_s: float = 0.0
    digest: str = ""
    policy: str = ""
    allocation: Allocation = Allocation()
    placement: Placement = Placement()
    quarantined: Mapping[str, Quarantine] = field(default_factory=dict)
    fence: Fence | None = None
    search: Search | None = None
    reasons: Mapping[str, str] = field(default_factory=dict)
    codes: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

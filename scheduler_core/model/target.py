"""The stored target: what the last decision wants, written by compare-and-swap so that a restart goes on from it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from scheduler_core.model.allocation import Allocation
from scheduler_core.model.placement import Placement


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
        quarantined: Jobs left out of decisions, with the reason.
        reasons: Why each job has what it has, one sentence each (what ``voda explain`` prints).
    """

    decision: int = 0
    decided_s: float = 0.0
    disturbed_s: float = 0.0
    digest: str = ""
    policy: str = ""
    allocation: Allocation = Allocation()
    placement: Placement = Placement()
    quarantined: Mapping[str, str] = field(default_factory=dict)
    reasons: Mapping[str, str] = field(default_factory=dict)

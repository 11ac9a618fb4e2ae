"""What one round decided and did, as values: written down so that any round can be replayed and explained."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from scheduler_core.model.observation import Observation
from scheduler_core.model.plan import Action, Plan
from scheduler_core.model.target import Target


class DecisionKind(StrEnum):
    """How much a decision was free to change.

    KEPT: the input is the one of the last decision. WAITING: within the rate limit, so only waiting jobs were served,
    from GPUs that nobody was promised. FULL: every job. FENCED: a stage failed, the previous target stays.
    """

    KEPT = "Kept"
    WAITING = "Waiting"
    FULL = "Full"
    FENCED = "Fenced"


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """The outcome of the decide loop.

    Attributes:
        target: What the world should become; the previous target when kept or fenced.
        kind: How much could change.
        disturbed: Running jobs whose workers change by this decision, sorted.
        fault: What a stage did wrong: why it was fenced, or why a job was quarantined; empty otherwise.
    """

    target: Target
    kind: DecisionKind
    disturbed: tuple[str, ...] = ()
    fault: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class CycleResult:
    """One whole round.

    Attributes:
        observation: What was seen.
        decision: What was decided.
        plan: What was to be done about it.
        done: Actions that the world took.
        conflicts: Jobs whose actions ended early because the world had moved, with the reason.
        fault: Why the plan was fenced (nothing was done then), empty otherwise.
    """

    observation: Observation
    decision: Decision
    plan: Plan
    done: tuple[Action, ...] = ()
    conflicts: Mapping[str, str] = field(default_factory=dict)
    fault: str = ""

"""The settings that the core reads; the shells make it from their own settings, the simulator by hand."""

from __future__ import annotations

from dataclasses import dataclass

from scheduler_core.errors import InvalidValue


@dataclass(frozen=True, slots=True, kw_only=True)
class Params:
    """How to decide and converge.

    Attributes:
        policy: Name of the allocation policy in the registry.
        decide_interval_s: Seconds between two decisions that disturb running jobs.
        start_limit_s: Seconds a granted worker may take to become ready.
    """

    policy: str = "elastic_fifo"
    decide_interval_s: float = 30.0
    start_limit_s: float = 300.0

    def __post_init__(self) -> None:
        """Check the ranges once, here at the edge."""
        if self.decide_interval_s < 0:
            raise InvalidValue(f"decide_interval_s: expected >= 0 seconds, got {self.decide_interval_s}")
        if self.start_limit_s <= 0:
            raise InvalidValue(f"start_limit_s: expected > 0 seconds, got {self.start_limit_s}")

"""The settings that the core reads; the shells make it from their own settings, the simulator by hand."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from scheduler_core.errors import InvalidValue
from scheduler_core.model.communication import Link


@dataclass(frozen=True, slots=True, kw_only=True)
class Tiresias:
    """Settings of the policies ``tiresias`` and ``elastic_tiresias``.

    Attributes:
        limits_gpu_s: GPU seconds of service at which a job goes down one queue, ascending; one more queue than limits.
        promote_ratio: A job goes back to the first queue when it has waited so many times as long as it ran.
        compaction_jobs: ``elastic_tiresias`` cuts jobs of later queues to their minima when more jobs than this wait.
    """

    limits_gpu_s: tuple[float, ...] = (3600.0,)
    promote_ratio: float = 8.0
    compaction_jobs: int = 10

    def __post_init__(self) -> None:
        """Check the ranges once, here at the edge."""
        if list(self.limits_gpu_s) != sorted(set(self.limits_gpu_s)) or min(self.limits_gpu_s, default=1.0) <= 0:
            raise InvalidValue(f"tiresias limits: expected ascending GPU seconds > 0, got {self.limits_gpu_s}")
        if self.promote_ratio <= 0 or self.compaction_jobs < 0:
            raise InvalidValue(
                "tiresias: expected a promote ratio > 0 and compaction jobs >= 0, "
                f"got {self.promote_ratio} and {self.compaction_jobs}"
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class Params:
    """How to decide and converge.

    Attributes:
        policy: Name of the allocation policy in the registry.
        decide_interval_s: Seconds between two decisions that disturb running jobs.
        start_limit_s: Seconds a granted worker may take to become ready.
        backfilling: Whether jobs behind one that does not fit may start before it.
        tiresias: Settings of two policies.
        links: Links by level of the topology tree: by label key, ``node`` for those inside a node; levels left out have
            the defaults of ``model.communication``.
    """

    policy: str = "elastic_fifo"
    decide_interval_s: float = 30.0
    start_limit_s: float = 300.0
    backfilling: bool = True
    tiresias: Tiresias = Tiresias()
    links: Mapping[str, Link] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Check the ranges once, here at the edge."""
        if self.decide_interval_s < 0:
            raise InvalidValue(f"decide_interval_s: expected >= 0 seconds, got {self.decide_interval_s}")
        if self.start_limit_s <= 0:
            raise InvalidValue(f"start_limit_s: expected > 0 seconds, got {self.start_limit_s}")

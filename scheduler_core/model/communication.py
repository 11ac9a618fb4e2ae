"""What it costs a job to communicate over the links of the topology tree."""

from __future__ import annotations

from dataclasses import dataclass

from scheduler_core.errors import InvalidValue


@dataclass(frozen=True, slots=True, kw_only=True)
class Link:
    """How fast one level of the topology tree is for one job.

    Attributes:
        bytes_per_s: Bandwidth of each participant's link on that level, bytes/s.
        latency_s: Time of one message whatever its size, seconds.
    """

    bytes_per_s: float
    latency_s: float = 0.0

    def __post_init__(self) -> None:
        """Check the ranges once, here at the edge."""
        if not (0 < self.bytes_per_s < float("inf") and 0 <= self.latency_s < float("inf")):
            raise InvalidValue(
                f"link: expected bytes/s > 0 and a latency >= 0 s, got {self.bytes_per_s} and {self.latency_s}"
            )

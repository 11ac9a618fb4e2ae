"""What a change of a running job costs: seconds in which its training stands still, by kind of change and size.

The observation carries them as they were learned (``estimate``); allocation and placement weigh a change against them.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from scheduler_core.errors import InvalidValue


class ResizeKind(StrEnum):
    """Kinds of change.

    START: from the grant to the first step. GROW and SHRINK: in place. MOVE: a worker is added at its new place, then
    one dropped at the old (or the other way round). RESTART: checkpoint, all workers gone, granted anew, resumed.
    """

    START = "start"
    GROW = "grow"
    SHRINK = "shrink"
    MOVE = "move"
    RESTART = "restart"


@dataclass(frozen=True, slots=True, kw_only=True)
class ResizeCost:
    """Standing still as a line over the job's size.

    Attributes:
        base_s: Seconds whatever the size.
        per_gpu_s: Further seconds for each GPU that the job has after it.
    """

    base_s: float
    per_gpu_s: float = 0.0

    def __post_init__(self) -> None:
        """Check the ranges once, here at the edge."""
        if not (0 <= self.base_s < float("inf") and 0 <= self.per_gpu_s < float("inf")):
            raise InvalidValue(f"resize cost: expected seconds >= 0, got {self.base_s} and {self.per_gpu_s}")


@dataclass(frozen=True, slots=True, kw_only=True)
class ResizeCosts:
    """Costs of every kind; the defaults were measured in local mode and on the test cluster (docs/benchmarks.md)."""

    start: ResizeCost = ResizeCost(base_s=3.0)
    grow: ResizeCost = ResizeCost(base_s=0.5)
    shrink: ResizeCost = ResizeCost(base_s=0.5)
    move: ResizeCost = ResizeCost(base_s=1.0)
    restart: ResizeCost = ResizeCost(base_s=20.0)

    def seconds(self, kind: ResizeKind, gpus: int) -> float:
        """Seconds of standing still.

        Args:
            kind: What is done.
            gpus: GPUs that the job has after it.
        """
        cost: ResizeCost = getattr(self, kind.value)
        return cost.base_s + cost.per_gpu_s * gpus

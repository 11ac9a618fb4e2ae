"""How often the session commits, checkpoints and reports, and how it scales the learning rate."""

from __future__ import annotations

import math
import os
from dataclasses import dataclass

SCALES = ("linear", "sqrt", "none")


def _checkpoint_steps_of_job() -> int:
    return int(os.environ.get("VODA_CHECKPOINT_STEPS") or 0)


@dataclass(frozen=True)
class Options:
    """Settings of a session; the same in every rank.

    Attributes:
        commit_every: steps between copies of the state in memory, at least 1. When a rank crashes the others go on
            from the last copy; a resize or a stop makes one first, at any step, and loses none.
        checkpoint_every: steps between checkpoints, 0 for none by steps. Default: the job's `checkpoint-steps`.
        checkpoint_epochs: whether the end of an epoch is checkpointed too ...
        checkpoint_min_s: ... unless the last checkpoint is younger than this, in seconds.
        report_every: steps between report rows, 0 for one row per epoch only.
        scale_lr: learning rate times world size (`linear`), its root (`sqrt`), or as it is (`none`).
        measure_gradient: whether rows carry the gradient's square and variance (needs two ranks or more).
        seed: from which ranks that come later draw their random numbers.
    """

    commit_every: int = 1
    checkpoint_every: int = -1
    checkpoint_epochs: bool = True
    checkpoint_min_s: float = 30.0
    report_every: int = 0
    scale_lr: str = "linear"
    measure_gradient: bool = False
    seed: int = 0

    def __post_init__(self) -> None:
        """Fill in the job's own setting and check ranges."""
        if self.checkpoint_every < 0:
            object.__setattr__(self, "checkpoint_every", _checkpoint_steps_of_job())
        if self.commit_every < 1 or self.report_every < 0 or self.scale_lr not in SCALES:
            message = (
                "session options: expected commit_every >= 1, report_every >= 0 and scale_lr one of"
                f" {', '.join(SCALES)}, got {self.commit_every}, {self.report_every}, {self.scale_lr!r}"
            )
            raise ValueError(message)

    def lr_factor(self, world_size: int) -> float:
        """What the learning rate of one rank is multiplied with in a world of `world_size`."""
        if self.scale_lr == "linear":
            return float(world_size)
        return math.sqrt(world_size) if self.scale_lr == "sqrt" else 1.0

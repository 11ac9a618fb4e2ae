"""Times steps, and how long training stands still when the world changes.

Standing still is what lies between the end of the last step in the old world and the end of the first one in the
new, less one step's own time. The script's own work between two epochs (validation) is not standing still.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

SMOOTHING = 0.1  # weight of the newest step in the mean step time: about the last 20 steps count


@dataclass(frozen=True)
class Leaving:
    """The old world, when it was left.

    Attributes:
        size: its ranks.
        step: steps begun in it; those after the one that the new world starts from were lost.
        last_step_s: when its last step ended, seconds since 1970.
        step_time_s: its usual step.
    """

    size: int
    step: int
    last_step_s: float
    step_time_s: float


class Clock:
    """Times of one rank."""

    def __init__(self) -> None:
        self._begin = time.perf_counter()
        self._last_end_s = time.time()
        self._step_time_s = 0.0
        self._leaving: Leaving | None = None
        self._entered_s = 0.0
        self._entry = (0, 0)

    def begin(self) -> None:
        """A step begins now."""
        self._begin = time.perf_counter()

    def end(self) -> float:
        """A step ends now.

        Returns:
            Its duration in seconds.
        """
        duration_s = time.perf_counter() - self._begin
        self._last_end_s = time.time()
        old = self._step_time_s
        self._step_time_s = duration_s if old == 0.0 else old + SMOOTHING * (duration_s - old)
        return duration_s

    def leave(self, size: int, step: int) -> None:
        """The world of `size` is left, `step` steps having begun in it.

        When a world ends before its first step, standing still goes on from the world before.
        """
        if self._leaving is None and self._step_time_s > 0.0:
            self._leaving = Leaving(size, step, self._last_end_s, self._step_time_s)

    def enter(self, size: int, step: int) -> None:
        """A world of `size` begins at `step`."""
        self._entered_s = time.time()
        self._entry = (size, step)
        self._step_time_s = 0.0
        self.begin()

    def rate(self, batch: float) -> float:
        """Samples per second, at `batch` samples a step."""
        return batch / self._step_time_s if self._step_time_s > 0.0 else 0.0

    def skip(self) -> None:
        """What went on since the world was entered was the script's own work: the first step begins only now."""
        self.begin()
        left = self._leaving
        if left is not None:
            away_s = time.time() - self._entered_s
            self._leaving = Leaving(left.size, left.step, left.last_step_s + away_s, left.step_time_s)
            self._entered_s = time.time()

    def resized(self, duration_s: float) -> dict[str, float] | None:
        """After a step of `duration_s`: what to say of the change, once, in ranks that were in both worlds."""
        left = self._leaving
        if left is None:
            return None
        self._leaving = None
        size, step = self._entry
        return {
            "from_size": left.size,
            "to_size": size,
            "last_step_s": left.last_step_s,
            "first_step_s": self._last_end_s,
            "step_time_s": min(left.step_time_s, duration_s),
            "steps_lost": max(0, left.step - step),
        }

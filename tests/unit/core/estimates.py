"""Builders of what was seen of jobs' speeds, for tests."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from scheduler_core.estimate.rows import ReportRow
from scheduler_core.estimate.seen import SizeSeen

#: Relative noise of eight stretches, 1.4 % of spread.
_NOISE = (0.0, 0.01, -0.01, 0.02, -0.02, 0.0, 0.01, -0.01)


def noisy(gpus: int, speed: float, **changes: Any) -> SizeSeen:
    """Enough evidence of a speed, with a little noise around it."""
    return stretches(gpus, *(speed * (1 + part) for part in _NOISE), **changes)


def stretches(gpus: int, *speeds: float, **changes: Any) -> SizeSeen:
    """Stretches of four seconds each."""
    return SizeSeen(**{"gpus": gpus, "speeds": speeds, "seconds": (4.0,) * len(speeds), "last_s": 0.0, **changes})


def row(gpus: int = 1, speed: float = 100.0, length_s: float = 4.0, **changes: Any) -> ReportRow:
    """A report row of a stretch at a speed, one step a second, a quarter of it communication."""
    settled: dict[str, Any] = {
        "kind": "epoch",
        "time_s": 1_000.0,
        "segment": 0,
        "epoch": 0,
        "samples": 400.0,
        "gpus": gpus,
        "steps": max(1, round(length_s)),
        "batch": speed * length_s / max(1, round(length_s)),
        "compute_s": 0.75 * length_s,
        "communication_s": 0.25 * length_s,
    }
    return ReportRow(**{**settled, **changes})


def epochs_at(gpus: int, *speeds: float, since_s: float = 0.0, **changes: Any) -> Iterator[ReportRow]:
    """Rows of a stay at one size, the warm-up row first: epochs of four seconds."""
    for number, speed in enumerate((0.5 * speeds[0], *speeds)):
        yield row(gpus, speed, time_s=since_s + 4.0 * number, **changes)

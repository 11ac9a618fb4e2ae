"""A driver's report rows and resize records as the estimators take them; a row that makes no sense is left out.

In: what ``/status`` and ``/reports`` gave. Out: values. A job's owner decides what is answered, so nothing is believed
that is not in range.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from scheduler_core.estimate.rows import ReportRow

#: No figure of a job is larger; what is, is nonsense.
_MOST = 1e18
_KINDS = ("epoch", "step")


@dataclass(frozen=True, slots=True, kw_only=True)
class ResizeSaid:
    """A change of the world, what is learned from.

    Attributes:
        kind: ``start``, ``grow``, ``shrink``, ``replace`` or ``stop``.
        to_size: Ranks after it.
        first_step_s: End of the first step after it, seconds since the epoch; None where there was none.
        still_s: Seconds for which training stood still, None where nobody can say.
    """

    kind: str
    to_size: int
    first_step_s: float | None
    still_s: float | None


def read_rows(said: object) -> tuple[ReportRow, ...]:
    """The rows of a list that are report rows."""
    return tuple(row for one in _mappings(said) if (row := _read_row(one)) is not None)


def read_resizes(said: object) -> tuple[ResizeSaid, ...]:
    """The records of a list, in its order."""
    return tuple(
        ResizeSaid(
            kind=str(one.get("kind")),
            to_size=int(_figure(one, "to_size") or 0),
            first_step_s=_figure(one, "first_step_s"),
            still_s=_figure(one, "still_s"),
        )
        for one in _mappings(said)
    )


def _read_row(said: dict[str, Any]) -> ReportRow | None:
    names = ("time_s", "segment", "epoch", "samples", "world_size", "steps", "compute_s", "communication_s")
    figures = {name: _figure(said, name) for name in names}
    found = {name: value for name, value in figures.items() if value is not None}
    if said.get("kind") not in _KINDS or len(found) < len(names):
        return None
    return ReportRow(
        kind=said["kind"],
        time_s=found["time_s"],
        segment=int(found["segment"]),
        epoch=int(found["epoch"]),
        samples=found["samples"],
        gpus=int(found["world_size"]),
        steps=int(found["steps"]),
        batch=_figure(said, "batch") or 0.0,
        compute_s=found["compute_s"],
        communication_s=found["communication_s"],
        gradient_bytes=_figure(said, "gradient_bytes") or 0.0,
    )


def _mappings(said: object) -> Iterable[dict[str, Any]]:
    return [one for one in said if isinstance(one, dict)] if isinstance(said, list) else []


def _figure(said: dict[str, Any], name: str) -> float | None:
    value = said.get(name)
    if not isinstance(value, (int, float)) or isinstance(value, bool):
        return None
    return float(value) if math.isfinite(value) and 0 <= value <= _MOST else None

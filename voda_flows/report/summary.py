"""What a job's life comes to in numbers: waiting, running, resizes, standing still, steps lost, the last metric."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from voda_flows.objects import Object
from voda_flows.report.events import RESIZES, Event
from voda_flows.report.lives import JobLife

#: Metrics of a report row in the order in which they are worth showing (schema in workloads/README.md).
METRICS: Final = ("accuracy", "validation_loss", "loss")


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """A job in numbers; times in seconds.

    Attributes:
        wait_s: In the queue, all segments together.
        run_s: From grants to the ends of their segments.
        jct_s: From submission to end (or to now).
        gpu_s: GPU seconds held.
        resizes: How often by kind; kinds that did not happen are left out.
        still_s: Standing still in in-place changes.
        steps_lost: Steps done twice.
        metric: Name of the last metric shown, empty when nothing was reported.
        value: Its last value.
    """

    wait_s: float
    run_s: float
    jct_s: float
    gpu_s: float
    resizes: Mapping[str, int]
    still_s: float
    steps_lost: int
    metric: str = ""
    value: float | None = None


def summary(life: JobLife, happened: tuple[Event, ...], rows: tuple[Object, ...], now_s: float) -> Summary:
    """Sum up a job.

    Args:
        life: The job.
        happened: Its events.
        rows: Its report rows of all segments, oldest first.
        now_s: Now, for jobs that have not ended.

    Returns:
        The numbers.
    """
    end_s = life.ended_s if life.ended_s is not None else now_s
    ran = [(segment.ended_s or end_s) - segment.granted_s for segment in life.segments if segment.granted_s is not None]
    held = [one for segment in life.segments for one in segment.holdings]
    metric, value = last_metric(rows)
    return Summary(
        wait_s=life.waited_s(now_s),
        run_s=sum(max(0.0, span_s) for span_s in ran),
        jct_s=end_s - life.submitted_s,
        gpu_s=sum(one.gpus * max(0.0, (one.end_s or end_s) - one.start_s) for one in held),
        resizes=dict(sorted(Counter(event.kind for event in happened if event.kind in RESIZES).items())),
        still_s=sum(event.still_s or 0.0 for event in happened),
        steps_lost=sum(event.steps_lost for event in happened),
        metric=metric,
        value=value,
    )


def last_metric(rows: tuple[Object, ...]) -> tuple[str, float | None]:
    """The most telling metric that was reported, and its last value."""
    for name in METRICS:
        for row in reversed(rows):
            value = figure(row, name)
            if value is not None:
                return name, value
    return "", None


def figure(row: Object, name: str) -> float | None:
    """A finite number in a report row: one of its own columns, or one of the script's metrics.

    >>> figure({"loss": 0.5, "metrics": {"accuracy": 0.9}}, "accuracy")
    0.9
    """
    value = row.get(name, (row.get("metrics") or {}).get(name))
    return float(value) if isinstance(value, int | float) and math.isfinite(value) else None

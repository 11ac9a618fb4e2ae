"""What jobs reported, as lines over time in SVG: loss, accuracy, speed. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from voda_flows.report.frame import LEFT, RIGHT, axis, grid, picture, tip, words
from voda_flows.report.record import JobRecord, Record
from voda_flows.report.svg import Axis, element, path
from voda_flows.runtime.reports import figure

_HEIGHT: Final = 150.0
_TOP: Final = 10.0
#: More points than this cannot be told apart at the picture's width.
_POINTS: Final = 600
#: More curves than this cannot be told apart in one picture.
MOST: Final = 12


@dataclass(frozen=True, slots=True, kw_only=True)
class Curve:
    """One job's values of one metric.

    Attributes:
        label: The job.
        number: Its place among the jobs, for its colour.
        runs: (seconds since the epoch, value), one run of points for each segment of the job.
    """

    label: str
    number: int
    runs: tuple[tuple[tuple[float, float], ...], ...]


def curves(made: Record, names: Iterable[str]) -> list[Curve]:
    """The values of the first of some metrics that each job reported.

    Args:
        made: The record.
        names: Names of one thing, best first (``val_accuracy``, ``accuracy``).

    Returns:
        A curve for each job that reported one of them; where they are too many, for those that trained longest.
    """
    wanted, time = tuple(names), axis(made)
    found: list[Curve] = []
    longest = sorted(range(len(made.jobs)), key=lambda number: (-made.jobs[number].numbers.training_s, number))
    for number in longest:
        if len(found) == MOST:
            break
        job = made.jobs[number]
        runs = next((runs for name in wanted if (runs := _runs(job, name, time))), ())
        if runs:
            found.append(Curve(label=job.life.label, number=number, runs=runs))
    return sorted(found, key=lambda curve: curve.number)


def chart(made: Record, lines: list[Curve], title: str, *, top: float | None = None) -> str:
    """A picture of curves.

    Args:
        made: The record, for the time axis.
        lines: The curves.
        title: What the values are.
        top: Value at the upper edge; the largest one where none is given.

    Returns:
        SVG, empty where there are no curves.
    """
    if not lines:
        return ""
    values = [value for line in lines for run in line.runs for _, value in run]
    scale = _Scale(low=min(0.0, *values), high=top if top is not None else _round_up(max(values)))
    parts = [*_frame(axis(made), scale, title), *(_line(line, axis(made), scale, title) for line in lines)]
    return picture(_HEIGHT + 22, f"{title} over time", *parts)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Scale:
    """The value axis: ``low`` is at the foot of the picture, ``high`` at its top."""

    low: float
    high: float

    def y(self, value: float) -> float:
        """Where a value is; what is above the top is at the top."""
        share = (min(value, self.high) - self.low) / max(self.high - self.low, 1e-12)
        return _TOP + (_HEIGHT - _TOP) * (1 - share)


def _frame(time: Axis, scale: _Scale, title: str) -> Iterator[str]:
    """Lines at three values, times at the foot, the title at the side."""
    yield from grid(time, _HEIGHT)
    for share in (0.0, 0.5, 1.0):
        value = scale.low + share * (scale.high - scale.low)
        y = scale.y(value)
        yield element("path", d=f"M{LEFT} {y:.1f}H{RIGHT}", class_="grid")
        yield words(LEFT - 10, y + 4, f"{value:.3g}", class_="small", text_anchor="end")
    yield words(8, _HEIGHT / 2, title, class_="name")


def _line(line: Curve, time: Axis, scale: _Scale, title: str) -> str:
    """One job's curve, with a dot at its end."""
    runs = [[(time.x(moment_s), scale.y(value)) for moment_s, value in run] for run in line.runs]
    return tip(
        f"{line.label}: {title} {line.runs[-1][-1][1]:.4g} at the end",
        element("path", d=" ".join(map(path, runs)), class_=f"curve line{line.number % 8}"),
        element("circle", cx=runs[-1][-1][0], cy=runs[-1][-1][1], r=3.5, class_=f"job{line.number % 8}"),
        class_=f"hit of{line.number}",
    )


def _runs(job: JobRecord, name: str, time: Axis) -> tuple[tuple[tuple[float, float], ...], ...]:
    """A job's values of a metric in the span, by segment, thinned out evenly."""
    runs: dict[object, list[tuple[float, float]]] = {}
    for row in job.rows:
        moment_s, value = figure(row, "time_s"), figure(row, name)
        if moment_s is not None and value is not None and time.meets(moment_s, moment_s):
            runs.setdefault(row.get("segment"), []).append((moment_s, value))
    step = max(1, math.ceil(sum(map(len, runs.values())) / _POINTS))
    return tuple((*points[: len(points) - 1 : step], points[-1]) for points in runs.values())


def _round_up(value: float) -> float:
    """The next round number."""
    if value <= 0:
        return 1.0
    unit = 10.0 ** math.floor(math.log10(value))
    return next(step * unit for step in (1, 1.5, 2, 2.5, 3, 4, 5, 6, 8, 10) if step * unit >= value)

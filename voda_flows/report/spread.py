"""How long jobs took, as SVG: which part of them took at most so long. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import Final

from voda_flows.report.record import JobRecord
from voda_flows.report.svg import Axis, element, path
from voda_flows.report.times import short

_WIDTH, _HEIGHT, _LEFT, _RIGHT, _TOP, _BASE = 560, 232, 52, 540, 12.0, 176.0
#: More corners than this cannot be told apart.
_CORNERS: Final = 200
_LINES: Final = (("time from submission to end (JCT)", "line0"), ("time at gates", "line1"))


def spread(jobs: Sequence[JobRecord]) -> str:
    """The distribution of whole times and of waits.

    Args:
        jobs: Jobs that ended.

    Returns:
        SVG, empty where there are none.
    """
    if not jobs:
        return ""
    values = ([job.numbers.jct_s for job in jobs], [job.numbers.wait_s for job in jobs])
    scale = Axis(from_s=0.0, to_s=max(*values[0], 1.0), left=_LEFT, right=_RIGHT)
    parts = [*_frame(scale)]
    for (name, look), found in zip(_LINES, values, strict=True):
        said = f"{name}: half of the jobs at most {short(sorted(found)[(len(found) - 1) // 2])}"
        line = element("path", d=path(_corners(sorted(found), scale)), class_=f"curve {look}")
        parts.append(element("g", element("title", escape(said)), line, class_="hit"))
    return element(
        "svg", *parts, viewBox=f"0 0 {_WIDTH} {_HEIGHT}", role="img", aria_label="Which part of the jobs took how long"
    )


def _frame(scale: Axis) -> list[str]:
    """Grid, labels of both axes, and what the lines are."""
    parts = []
    for percent in (0, 50, 95, 100):
        y = _y(percent / 100)
        parts.append(element("path", d=f"M{_LEFT} {y:.1f}H{_RIGHT}", class_="grid"))
        if percent != 95:
            parts.append(_words(_LEFT - 8, y + 4, f"{percent} %", "end"))
    for after_s in scale.ticks(6):
        x = scale.x(after_s)
        parts.append(element("path", d=f"M{x:.1f} {_TOP}V{_BASE}", class_="grid"))
        parts.append(_words(x, _BASE + 16, short(after_s) if after_s else "0", "middle"))
    for number, (name, look) in enumerate(_LINES):
        x = _LEFT + number * 290
        parts.append(element("path", d=f"M{x} {_BASE + 40}h22", class_=f"curve {look}"))
        parts.append(_words(x + 28, _BASE + 44, name, "start"))
    return parts


def _corners(values: Sequence[float], scale: Axis) -> list[tuple[float, float]]:
    """Steps that rise by one job each, fewer where there are too many."""
    step = max(1, len(values) // _CORNERS)
    points, part = [(scale.x(0.0), _y(0.0))], 0.0
    for number in [*range(step - 1, len(values) - 1, step), len(values) - 1]:
        x = scale.x(values[number])
        points += [(x, _y(part)), (x, _y((number + 1) / len(values)))]
        part = (number + 1) / len(values)
    return [*points, (scale.x(scale.to_s), _y(1.0))]


def _y(part: float) -> float:
    """Where a part of the jobs is."""
    return _BASE - part * (_BASE - _TOP)


def _words(x: float, y: float, said: str, anchor: str) -> str:
    """A label."""
    return element("text", escape(said), x=x, y=y, class_="small", text_anchor=anchor)

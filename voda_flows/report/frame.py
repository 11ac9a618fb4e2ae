"""What all pictures of a record share: their width, the time axis, the grid with its labels. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from html import escape
from typing import Final

from voda_flows.report.record import Record
from voda_flows.report.svg import Axis, element
from voda_flows.report.times import text

WIDTH: Final = 1120
LEFT: Final = 124
RIGHT: Final = 1100
#: Room below a picture for the axis.
FOOT: Final = 22
#: More steps than this cannot be told apart at the pictures' width.
_STEPS: Final = 500


def axis(made: Record) -> Axis:
    """The time axis that all pictures of a record share."""
    return Axis(from_s=made.from_s, to_s=max(made.to_s, made.from_s + 1), left=LEFT, right=RIGHT)


def unit(made: Record) -> str:
    """What the numbers on the time axis are."""
    return "time of day, UTC" if axis(made).by_the_clock else f"minutes:seconds since {text(made.from_s)}"


def words(x: float, y: float, said: str, **attributes: object) -> str:
    """A piece of text."""
    return element("text", escape(said), x=x, y=y, **attributes)


def grid(time: Axis, height: float, *, labels: bool = True) -> Iterator[str]:
    """Vertical lines at round moments, with their time below."""
    marks = time.marks()
    lines = " ".join(f"M{time.x(moment_s):.1f} 0V{height:.0f}" for moment_s, _ in marks)
    yield element("path", d=lines, class_="grid")
    if labels:
        for moment_s, said in marks:
            yield words(time.x(moment_s), height + 15, said, class_="small", text_anchor="middle")


def picture(height: float, title: str, *parts: str) -> str:
    """A whole picture; the arrow keys go from one of its parts to the next."""
    return element(
        "svg", *parts, viewBox=f"0 0 {WIDTH} {height:.0f}", role="img", aria_label=title, tabindex=0, class_="wide"
    )


def tip(said: str, *parts: str, **attributes: object) -> str:
    """A part of a picture that says what it is when pointed at."""
    return element("g", element("title", escape(said)), *parts, **attributes)


def staircase(steps: Sequence[tuple[float, int]], to_s: float) -> list[tuple[float, float]]:
    """Corners of a number over time, given as (from when, how many): at most so many that a picture can show.

    Args:
        steps: In order of time.
        to_s: Until when the last one holds.

    Returns:
        (moment, number) of each corner; where there were too many, means over equal stretches of time.
    """
    spans = [
        (from_s, min(next_s, to_s), float(count))
        for (from_s, count), (next_s, _) in zip(steps, [*steps[1:], (to_s, 0)], strict=True)
        if from_s < to_s
    ]
    if len(spans) > _STEPS:
        spans = list(_means(spans, (to_s - spans[0][0]) / _STEPS))
    return [corner for from_s, next_s, count in spans for corner in ((from_s, count), (next_s, count))]


def _means(spans: Iterable[tuple[float, float, float]], width_s: float) -> Iterator[tuple[float, float, float]]:
    """Means over stretches of time."""
    begins_s, area = -1.0, 0.0
    for from_s, to_s, count in spans:
        begins_s, at_s = from_s if begins_s < 0 else begins_s, from_s
        while to_s >= begins_s + width_s:
            area += count * (begins_s + width_s - at_s)
            yield begins_s, begins_s + width_s, area / width_s
            begins_s, area = begins_s + width_s, 0.0
            at_s = begins_s
        area += count * (to_s - at_s)

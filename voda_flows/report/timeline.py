"""The GPU timeline as SVG: who had which slot when, how many GPUs were held, how many jobs waited. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape
from typing import Final

from voda_flows.report.frame import FOOT, LEFT, RIGHT, axis, grid, picture, staircase, tip, words
from voda_flows.report.lives import Holding
from voda_flows.report.record import JobRecord, NodeRecord, Record
from voda_flows.report.svg import Axis, element, path
from voda_flows.report.times import moment, short

#: Height of a slot's row where there are at most so many of them.
_ROWS: Final = ((24, 24.0), (64, 14.0))
_LEAST_ROW: Final = 7.0
#: Rows lower than this have no room for words.
_WORDS: Final = 12.0
_NARROW: Final = 6.6
_CHART: Final = 76.0


def slots(made: Record) -> str:
    """Rows are node slots, bars are workers of jobs; hatched while a worker warms up."""
    row = _row_height(made)
    y_by_slot: dict[tuple[str, int], float] = {}
    labels: list[str] = []
    y = 4.0
    for node in made.nodes:
        labels += _node(node, y, row)
        y_by_slot |= {(node.name, slot): y + slot * row for slot in range(node.slots)}
        y += max(node.slots * row, 14.0) + 8
    time = axis(made)
    bars = [
        _bar(job, number, held, (y_by_slot[held.node, slot], row), made)
        for number, job in enumerate(made.jobs)
        for held in job.held
        if time.meets(held.start_s, made.taken_s if held.end_s is None else held.end_s)
        for slot in held.slots
        if (held.node, slot) in y_by_slot
    ]
    return picture(y + FOOT, "Which job held which GPU slot when", *grid(time, y), *labels, *bars)


def held(made: Record) -> str:
    """How many GPUs were held, out of those that there are."""
    return _chart(made, "GPUs held", made.busy(), made.slots)


def waiting(made: Record) -> str:
    """How many jobs waited at a gate."""
    return _chart(made, "Jobs waiting", made.waiting(), None)


def warm_until(job: JobRecord, held: Holding) -> float | None:
    """When a worker made its first step: the first start or growth after it was granted."""
    ends_s = held.end_s if held.end_s is not None else float("inf")
    return next(
        (
            event.at_s
            for event in job.happened
            if event.kind in ("start", "resume", "grow") and held.start_s <= event.at_s <= ends_s
        ),
        None,
    )


def _row_height(made: Record) -> float:
    """How high a slot's row may be."""
    rows = sum(node.slots for node in made.nodes)
    return next((height for most, height in _ROWS if rows <= most), _LEAST_ROW)


def _node(node: NodeRecord, y: float, row: float) -> Iterator[str]:
    """A node's name and its empty rows."""
    name = node.name if len(node.name) <= 9 else f"{node.name[:8]}…"
    gone = "" if node.to_s is None else f", gone since {moment(node.to_s)}"
    label = words(8, y + max(node.slots * row, 14.0) / 2 + 4, name, class_="name")
    yield tip(f"{node.name}: {node.slots} slots{gone}", label, class_="hit gone" if gone else "hit")
    for slot in range(node.slots):
        top = y + slot * row
        if row >= _WORDS:
            yield words(LEFT - 10, top + row / 2 + 4, f"slot {slot}", class_="small", text_anchor="end")
        yield element("rect", x=LEFT, y=top + 1, width=RIGHT - LEFT, height=_thick(row), class_="row", rx=2)


def _thick(row: float) -> float:
    """Height of a bar in a row."""
    return row - (3 if row >= _WORDS else 1)


def _bar(job: JobRecord, number: int, held: Holding, place: tuple[float, float], made: Record) -> str:
    """A worker's hold on a slot."""
    (y, row), time = place, axis(made)
    ends_s = held.end_s if held.end_s is not None else made.taken_s
    x, width = time.x(held.start_s), max(1.5, time.x(ends_s) - time.x(held.start_s))
    warm_s = warm_until(job, held)
    warming = time.x(warm_s) - x if warm_s is not None else 0.0
    label = job.life.label
    until = "still held" if held.end_s is None else f"to {moment(ends_s)}"
    said = (
        f"{label} {held.worker} on {held.node}\n{moment(held.start_s)} {until} ({short(ends_s - held.start_s)})\n"
        f"first step after {short(None if warm_s is None else warm_s - held.start_s)}"
    )
    box: dict[str, object] = {"x": x, "y": y + 1, "height": _thick(row)}
    parts = [element("rect", **box, width=width, class_=f"bar job{number % 8}")]
    if warming > 1:
        parts.append(element("rect", **box, width=warming, class_="warming"))
    wide = len(label) * _NARROW + 8
    if wide < width and row >= _WORDS:
        after = warming + wide < width
        inside = {"x": x + (warming if after else 0.0) + 6, "class_": "on" if after or warming < 1 else "on faint"}
        parts.append(element("text", escape(label), y=y + row / 2 + 3, **inside))
    return tip(said, *parts, class_=f"hit of{number}")


def _chart(made: Record, title: str, steps: Sequence[tuple[float, int]], limit: int | None) -> str:
    """A number over time as an area, with its greatest value on the axis."""
    time: Axis = axis(made)
    corners = staircase(steps, made.to_s)
    most = max([limit or 0, *(count for _, count in corners)], default=0) or 1
    top, base = 14.0, _CHART
    unit = (base - top) / most
    points = [(time.x(moment_s), base - count * unit) for moment_s, count in corners]
    outline = [(LEFT, base), *points, (points[-1][0], base)] if points else []
    return picture(
        base + FOOT,
        f"{title} over time, at most {most:.0f}",
        *grid(time, base),
        element("line", x1=LEFT, x2=RIGHT, y1=top, y2=top, class_="limit" if limit else "grid"),
        element("line", x1=LEFT, x2=RIGHT, y1=base, y2=base, class_="base"),
        words(LEFT - 10, top + 4, f"{most:.0f}", class_="small", text_anchor="end"),
        words(LEFT - 10, base, "0", class_="small", text_anchor="end"),
        words(8, (base + top) / 2 + 4, title, class_="name"),
        element("path", d=path(outline), class_="area"),
    )

"""The GPU timeline as SVG: who had which slot when, how big each job was, how much of the cluster was held. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape
from typing import Final

from voda_flows.report.events import Event
from voda_flows.report.lives import Holding, JobLife
from voda_flows.report.record import JobRecord, Record
from voda_flows.report.svg import Axis, clock, element, path
from voda_flows.report.times import short

WIDTH: Final = 1120
LEFT: Final = 108
RIGHT: Final = 1100
_SLOT: Final = 24
_LANE: Final = 46
_AXIS: Final = 22
_NARROW: Final = 6.6
_MARKS: Final = {"grow": "▲", "shrink": "▼", "preempt": "■", "lost": "✖", "resume": "▶", "replace": "↻"}


def axis(made: Record) -> Axis:
    """The time axis that all pictures of a record share."""
    return Axis(from_s=made.from_s, to_s=max(made.to_s, made.from_s + 1), left=LEFT, right=RIGHT)


def slots(made: Record) -> str:
    """Rows are node slots, bars are workers of jobs; hatched while a worker warms up."""
    time, y_by_slot, y = axis(made), {}, 4.0
    labels = []
    for node in made.nodes:
        labels.append(_text(8, y + node.slots * _SLOT / 2 + 4, node.name, class_="name"))
        for slot in range(node.slots):
            y_by_slot[node.name, slot] = y
            labels.append(_text(LEFT - 10, y + 15, f"slot {slot}", class_="small", text_anchor="end"))
            labels.append(element("rect", x=LEFT, y=y + 1, width=RIGHT - LEFT, height=_SLOT - 3, class_="row", rx=3))
            y += _SLOT
        y += 8
    bars = [
        _bar(job, number, held, y_by_slot[held.node, slot], made)
        for number, job in enumerate(made.jobs)
        for segment in job.life.segments
        for held in segment.holdings
        for slot in held.slots
        if (held.node, slot) in y_by_slot
    ]
    return _picture(y + _AXIS, "Which job held which GPU slot when", *_grid(time, y), *labels, *bars)


def lanes(made: Record) -> str:
    """Rows are jobs: how many GPUs each had, its waits, and a mark for each change with its reason."""
    time, parts = axis(made), []
    most = max((count for job in made.jobs for _, count in sizes(job.life, made.taken_s)), default=1) or 1
    for number, job in enumerate(made.jobs):
        top = 4.0 + number * _LANE
        base = top + _LANE - 12
        parts.append(_text(8, base - 8, job.life.label[:15], class_="name"))
        parts.append(element("line", x1=LEFT, x2=RIGHT, y1=base, y2=base, class_="base"))
        parts += _waits(job, time, base, made.taken_s)
        parts.append(_steps(job, number, time, (base, (_LANE - 16) / most), made.taken_s))
        parts += [mark for event in job.happened if (mark := _mark(job, event, time, base))]
    height = 4.0 + len(made.jobs) * _LANE
    return _picture(height + _AXIS, "How many GPUs each job had, and its waits", *_grid(time, height), *parts)


def held(made: Record) -> str:
    """How many GPUs were held."""
    time, height, steps = axis(made), 70.0, list(made.busy())
    unit = (height - 14) / max(made.slots, 1)
    points = [(time.x(made.from_s), height)]
    for (moment_s, count), (next_s, _) in zip(steps, [*steps[1:], (made.to_s, 0)], strict=True):
        points += [(time.x(moment_s), height - count * unit), (time.x(next_s), height - count * unit)]
    points.append((time.x(made.to_s), height))
    top = height - made.slots * unit
    return _picture(
        height + _AXIS,
        "GPUs held",
        *_grid(time, height),
        element("line", x1=LEFT, x2=RIGHT, y1=top, y2=top, class_="limit"),
        _text(LEFT - 10, top + 4, str(made.slots), class_="small", text_anchor="end"),
        _text(LEFT - 10, height, "0", class_="small", text_anchor="end"),
        _text(8, height / 2 + 8, "GPUs held", class_="name"),
        element("path", d=path(points), class_="area"),
    )


def sizes(life: JobLife, now_s: float) -> list[tuple[float, int]]:
    """How many GPUs a job held, as (from when, how many)."""
    changes: dict[float, int] = {}
    for segment in life.segments:
        for one in segment.holdings:
            changes[one.start_s] = changes.get(one.start_s, 0) + one.gpus
            end_s = one.end_s if one.end_s is not None else now_s
            changes[end_s] = changes.get(end_s, 0) - one.gpus
    count, steps = 0, []
    for moment_s, change in sorted(changes.items()):
        count += change
        steps.append((moment_s, count))
    return steps


def _bar(job: JobRecord, number: int, held: Holding, y: float, made: Record) -> str:
    """A worker's hold on a slot."""
    time, end_s = axis(made), held.end_s if held.end_s is not None else made.taken_s
    x, width = time.x(held.start_s), max(1.5, time.x(end_s) - time.x(held.start_s))
    warm_s = warm_until(job, held)
    warming = time.x(warm_s) - x if warm_s is not None else 0.0
    label = job.life.label
    tip = (
        f"{label} {held.worker} on {held.node}\n"
        f"{clock(held.start_s - made.from_s)} to {clock(end_s - made.from_s)} ({short(end_s - held.start_s)})\n"
        f"first step after {short(None if warm_s is None else warm_s - held.start_s)}"
    )
    box: dict[str, object] = {"x": x, "y": y + 1, "height": _SLOT - 3, "rx": 3}
    parts = [element("rect", **box, width=width, class_=f"bar job{number % 8}")]
    if warming > 1:
        parts.append(element("rect", **box, width=warming, class_="warming"))
    wide = len(label) * _NARROW + 8
    if wide < width:
        after = warming + wide < width
        place = {"x": x + (warming if after else 0.0) + 6, "class_": "on" if after or warming < 1 else "on faint"}
        parts.append(element("text", escape(label), y=y + 15, **place))
    return element("g", element("title", escape(tip)), *parts, data_tip=tip, class_=f"hit of{number}")


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


def _waits(job: JobRecord, time: Axis, base: float, now_s: float) -> Iterator[str]:
    """Hatched while a job is in the queue."""
    life = job.life
    spans = [(segment.queued_s, segment.granted_s) for segment in life.segments] or [(life.submitted_s, None)]
    for queued_s, granted_s in spans:
        end_s = granted_s or life.ended_s or now_s
        if end_s - queued_s > 0.05:
            tip = f"{life.label} waited {short(end_s - queued_s)}"
            bar = element(
                "rect",
                x=time.x(queued_s),
                y=base - 8,
                width=max(1.5, time.x(end_s) - time.x(queued_s)),
                height=8,
                class_="wait",
            )
            yield element("g", element("title", escape(tip)), bar, data_tip=tip, class_="hit")


def _steps(job: JobRecord, number: int, time: Axis, scale: tuple[float, float], now_s: float) -> str:
    """The size of a job over time, as an area."""
    base, unit = scale
    steps = sizes(job.life, now_s)
    if not steps:
        return ""
    points = [(time.x(steps[0][0]), base)]
    for (moment_s, count), (next_s, _) in zip(steps, [*steps[1:], steps[-1]], strict=True):
        points += [(time.x(moment_s), base - count * unit), (time.x(next_s), base - count * unit)]
    return element("path", d=path([*points, (points[-1][0], base)]), class_=f"size job{number % 8}")


def _mark(job: JobRecord, event: Event, time: Axis, base: float) -> str:
    """A mark for what changed a job's size, or ended it."""
    good = job.life.phase == "Succeeded"
    sign = ("✔" if good else "✖") if event.kind == "end" else _MARKS.get(event.kind)
    if sign is None:
        return ""
    mood = "lost" if event.kind == "end" and not good else event.kind
    still = f"\nstood still {event.still_s:.2f}s" if event.still_s is not None else ""
    lost = f"\n{event.steps_lost} steps lost" if event.kind in ("grow", "shrink", "preempt", "lost", "replace") else ""
    why = f"\n{event.reason}" if event.reason else ""
    tip = f"{job.life.label} at +{clock(event.at_s - time.from_s)}\n{event.text}{why}{still}{lost}"
    x = time.x(event.at_s)
    return element(
        "g",
        element("title", escape(tip)),
        element("circle", cx=x, cy=base + 5, r=6.5, class_=f"dot {mood}"),
        _text(x, base + 8, sign, class_="sign", text_anchor="middle"),
        data_tip=tip,
        class_="hit",
    )


def _grid(time: Axis, height: float) -> Iterator[str]:
    """Vertical lines at round moments, with their time below."""
    for after_s in time.ticks():
        x = time.x(time.from_s + after_s)
        yield element("line", x1=x, x2=x, y1=0, y2=height, class_="grid")
        yield _text(x, height + 15, clock(after_s), class_="small", text_anchor="middle")


def _text(x: float, y: float, text: str, **attributes: object) -> str:
    """A piece of text."""
    return element("text", escape(text), x=x, y=y, **attributes)


def _picture(height: float, title: str, *parts: str) -> str:
    """A whole picture."""
    return element("svg", *parts, viewBox=f"0 0 {WIDTH} {height:.0f}", role="img", aria_label=title)

"""Jobs over time as SVG, a lane each: GPUs, waits, progress, and a mark for each change with its reason. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from voda_flows.report.events import Event
from voda_flows.report.frame import FOOT, LEFT, RIGHT, WIDTH, axis, grid, picture, tip, words
from voda_flows.report.lives import JobLife
from voda_flows.report.record import JobRecord, Record
from voda_flows.report.svg import Axis, element, path
from voda_flows.report.times import moment, short
from voda_flows.runtime.reports import figure

#: More jobs than this have low lanes.
FEW: Final = 30
#: Points of all progress curves together, and of one at most and at least.
_POINTS, _MOST, _LEAST = 6000, 120, 8
_MARKS: Final = {"grow": "▲", "shrink": "▼", "preempt": "■", "lost": "✖", "resume": "▶", "replace": "↻"}
_COSTS: Final = ("grow", "shrink", "preempt", "lost", "replace")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Lane:
    """Where one job is drawn.

    Attributes:
        number: The job's place among all.
        base: Foot of its bars.
        room: Height of its bars.
        sign: Radius of its marks.
        unit: Height of a GPU.
    """

    number: int
    base: float
    room: float
    sign: float
    unit: float


def lanes(made: Record) -> str:
    """Rows are jobs: how many GPUs each had, its waits, how far it was, and a mark for each change."""
    time = axis(made)
    parts: list[str] = []
    few = len(made.jobs) <= FEW
    high, foot, sign = (48.0, 14.0, 6.5) if few else (20.0, 5.0, 4.0)
    most = max((count for job in made.jobs for _, count in sizes(job.life, made.taken_s)), default=1) or 1
    for number, job in enumerate(made.jobs):
        base = 4.0 + (number + 1) * high - foot
        room = high - foot - 4
        lane = _Lane(number=number, base=base, room=room, sign=sign, unit=room / most)
        parts += _lane(job, lane, time, made)
    height = 6.0 + len(made.jobs) * high
    title = "Each job's GPUs, waits and progress over time"
    if few:
        return picture(height + FOOT, title, *grid(time, height), *parts)
    return _axis(time) + picture(height, title, *grid(time, height, labels=False), *parts)


def _axis(time: Axis) -> str:
    """The time axis by itself: it stays in sight while the lanes scroll."""
    return element(
        "svg", *grid(time, 0.0), viewBox=f"0 0 {WIDTH} {FOOT}", role="img", aria_label="Time axis", class_="wide axis"
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


def progress(job: JobRecord, at_most: int) -> list[list[tuple[float, float]]]:
    """How far a job was, as (when, part of its epochs), a run for each segment, thinned out evenly."""
    epochs = float(job.life.asked.get("epochs") or 1) if job.life.asked.get("epochs", "1").isdigit() else 1.0
    runs: dict[object, list[tuple[float, float]]] = {}
    for row in job.rows:
        moment_s, epoch = figure(row, "time_s"), figure(row, "epoch")
        if row.get("kind", "epoch") == "epoch" and moment_s is not None and epoch is not None:
            runs.setdefault(row.get("segment"), []).append((moment_s, min(1.0, (epoch + 1) / max(epochs, 1.0))))
    step = max(1, math.ceil(sum(map(len, runs.values())) / at_most))
    return [points[: len(points) - 1 : step] + points[-1:] for points in runs.values()]


def _lane(job: JobRecord, lane: _Lane, time: Axis, made: Record) -> Iterator[str]:
    """One job."""
    label = job.life.label if len(job.life.label) <= 15 else f"{job.life.label[:14]}…"
    numbers = job.numbers
    said = (
        f"{job.life.label}: {job.life.phase}\nasked for {job.life.asks} GPUs\nqueued {short(numbers.queue_s)}, "
        f"preempted {short(numbers.preempted_s)}, starting {short(numbers.starting_s)}, "
        f"training {short(numbers.training_s)}"
    )
    name = words(8, lane.base - lane.room / 2 + 4, label, class_="name" if lane.room > 20 else "small")
    yield tip(said, name, class_=f"hit of{lane.number}", id=f"lane{lane.number}")
    yield element("path", d=f"M{LEFT} {lane.base:.1f}H{RIGHT}", class_="base" if lane.room > 20 else "grid")
    yield from _waits(job, time, lane, made.taken_s)
    yield _steps(job, lane, time, made.taken_s)
    yield _progress(job, lane, time, len(made.jobs))
    for event in job.happened:
        if time.meets(event.at_s, event.at_s):
            yield _mark(job, event, time, lane)


def _waits(job: JobRecord, time: Axis, lane: _Lane, now_s: float) -> Iterator[str]:
    """Hatched while a job is in the queue."""
    thick = min(8.0, lane.room * 0.7)
    for from_s, to_s in job.life.waits(now_s):
        if to_s - from_s > 0.05 and time.meets(from_s, to_s):
            x = time.x(from_s)
            box = element(
                "rect",
                x=x,
                y=lane.base - thick,
                width=max(1.5, time.x(to_s) - x),
                height=thick,
                class_="wait",
            )
            yield tip(f"{job.life.label} waited {short(to_s - from_s)}", box, class_=f"hit of{lane.number}")


def _steps(job: JobRecord, lane: _Lane, time: Axis, now_s: float) -> str:
    """The size of a job over time, as an area."""
    steps = sizes(job.life, now_s)
    if not steps or not time.meets(steps[0][0], steps[-1][0]):
        return ""
    points = [(time.x(steps[0][0]), lane.base)]
    for (moment_s, count), (next_s, _) in zip(steps, [*steps[1:], steps[-1]], strict=True):
        y = lane.base - count * lane.unit
        points += [(time.x(moment_s), y), (time.x(next_s), y)]
    area = path([*points, (points[-1][0], lane.base)])
    return element("path", d=area, class_=f"size hit of{lane.number} job{lane.number % 8}")


def _progress(job: JobRecord, lane: _Lane, time: Axis, num_jobs: int) -> str:
    """How far the job was, from the foot of its lane to its top."""
    at_most = max(_LEAST, min(_MOST, _POINTS // max(num_jobs, 1)))
    runs = [[point for point in run if time.meets(point[0], point[0])] for run in progress(job, at_most)]
    drawn = [[(time.x(at_s), lane.base - part * lane.room) for at_s, part in run] for run in runs if run]
    if not drawn:
        return ""
    line = " ".join(map(path, drawn))
    return element("path", d=line, class_=f"progress hit of{lane.number}")


def _mark(job: JobRecord, event: Event, time: Axis, lane: _Lane) -> str:
    """A mark for what changed a job's size, or ended it."""
    good = job.life.phase == "Succeeded"
    sign = ("✔" if good else "✖") if event.kind == "end" else _MARKS.get(event.kind)
    if sign is None:
        return ""
    mood = "lost" if event.kind == "end" and not good else event.kind
    said = [f"{job.life.label}, {moment(event.at_s)}", event.text, event.reason]
    if event.still_s is not None:
        said.append(f"stood still {event.still_s:.2f}s")
    if event.kind in _COSTS:
        said.append(f"{event.steps_lost} steps lost")
    x, y = time.x(event.at_s), lane.base + lane.sign - 2
    circle = element("circle", cx=x, cy=y, r=lane.sign, class_=f"dot {mood}")
    if lane.sign < 5:
        return tip("\n".join(filter(None, said)), circle, class_=f"hit of{lane.number}")
    return tip(
        "\n".join(filter(None, said)),
        circle,
        words(x, y + 3, sign, class_="sign", text_anchor="middle"),
        class_=f"hit of{lane.number}",
    )

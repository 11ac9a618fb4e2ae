"""What a job's report rows teach of it.

In: what is known of a job, and new rows of its training. Out: what is known then. Rows are measured in seconds of steps
alone, so an epoch that was cut short says as much as a whole one. Left out is the first row after each start or change
of size (its steps are slower: caches, compilation), unless it is so long that they do not matter.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace

from scheduler_core.estimate.seen import SizeSeen, seen_again, short

#: A first row of so many seconds counts: the warm-up is a small part of it.
LONG_ROW_S = 120.0
#: Step times that are kept.
_KEPT_STEPS = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportRow:
    """One row of a job's report (workloads/README.md), what matters of it.

    Attributes:
        kind: ``epoch`` at the end of one, ``step`` between.
        time_s: When it was made, seconds since the epoch.
        segment: Segment of the job.
        epoch: Epoch being trained, from 0.
        samples: Samples of the job so far.
        gpus: Ranks that made these steps.
        steps: Steps that the row covers.
        batch: Mean samples of a step over all ranks, 0 where unknown.
        compute_s: Seconds of these steps without the gradient exchange.
        communication_s: Seconds of the gradient exchange.
        gradient_bytes: Bytes that each rank gives to one exchange, 0 where unknown.
    """

    kind: str
    time_s: float
    segment: int
    epoch: int
    samples: float
    gpus: int
    steps: int
    batch: float
    compute_s: float
    communication_s: float
    gradient_bytes: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """Where rows of one kind stand: a stay at one size in one segment.

    Attributes:
        kind: The rows' kind.
        segment: Segment of the job.
        gpus: The size.
        is_counted: Whether a row of it has counted.
    """

    kind: str
    segment: int
    gpus: int
    is_counted: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class History:
    """What is known of a job, or of all jobs of a category.

    Attributes:
        sizes: Speeds, sizes ascending.
        runs: Where its rows stand, one for each kind.
        samples_per_epoch: Samples of an epoch, 0 while unknown.
        epochs_done: Epochs trained, the part of the present one as well as it is known.
        step_s: Last seconds of one step without communication, oldest first.
        gradient_bytes: Bytes that each rank gives to one exchange, 0 while unknown.
        last_s: When it was last heard of, seconds since the epoch.
    """

    sizes: tuple[SizeSeen, ...] = ()
    runs: tuple[Run, ...] = ()
    samples_per_epoch: float = 0.0
    epochs_done: float = 0.0
    step_s: tuple[float, ...] = ()
    gradient_bytes: float = 0.0
    last_s: float = 0.0


def taught(history: History, rows: Iterable[ReportRow]) -> History:
    """What is known of a job after more rows.

    Args:
        history: What is known.
        rows: New rows in the order in which they were made.

    Returns:
        What is known then.
    """
    for row in rows:
        history = _with_speed(_with_progress(history, row), row)
    return history


def _with_progress(history: History, row: ReportRow) -> History:
    per_epoch, done = history.samples_per_epoch, history.epochs_done
    if row.kind == "epoch":
        done = row.epoch + 1.0
        per_epoch = row.samples / done if row.samples > 0 else per_epoch
    elif per_epoch:
        done = row.samples / per_epoch
    return replace(
        history,
        samples_per_epoch=per_epoch,
        epochs_done=done,
        gradient_bytes=row.gradient_bytes or history.gradient_bytes,
        last_s=max(history.last_s, row.time_s),
    )


def _with_speed(history: History, row: ReportRow) -> History:
    length_s = row.compute_s + row.communication_s
    if row.steps < 1 or row.gpus < 1 or not (0 < length_s < math.inf):
        return history
    runs = {run.kind: run for run in history.runs}
    run = runs.get(row.kind)
    if run is None or (run.segment, run.gpus) != (row.segment, row.gpus):
        runs[row.kind] = run = Run(kind=row.kind, segment=row.segment, gpus=row.gpus)
        if length_s < LONG_ROW_S:
            return replace(history, runs=_ordered(runs))
    steps = runs.get("step")
    is_told_twice = row.kind != "step" and steps and (steps.segment, steps.gpus) == (row.segment, row.gpus)
    if is_told_twice or not (0 < row.batch < math.inf):
        return replace(history, runs=_ordered(runs))
    sizes = {seen.gpus: seen for seen in history.sizes}
    speed = short(row.steps * row.batch / length_s)
    stretch = SizeSeen(gpus=row.gpus, speeds=(speed,), seconds=(short(length_s),), last_s=row.time_s)
    sizes[row.gpus] = seen_again(sizes.get(row.gpus), stretch, is_visit=not run.is_counted)
    runs[row.kind] = replace(run, is_counted=True)
    return replace(
        history,
        sizes=tuple(sizes[gpus] for gpus in sorted(sizes)),
        runs=_ordered(runs),
        step_s=(*history.step_s, short(row.compute_s / row.steps))[-_KEPT_STEPS:],
    )


def _ordered(runs: dict[str, Run]) -> tuple[Run, ...]:
    return tuple(runs[kind] for kind in sorted(runs))

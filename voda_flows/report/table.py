"""The record as a table: one line per job, what it waited, ran and lost."""

from __future__ import annotations

from collections.abc import Mapping

from voda_flows.report.record import JobRecord, Record
from voda_flows.report.statistics import TIMES
from voda_flows.report.times import short

_LAST = ("JCT", "RESIZES", "STOOD STILL", "STEPS LOST", "LAST METRIC")
HEADERS = ("JOB", "STATUS", "WAIT", "RUN", *_LAST)
#: With the wait and the run in their parts.
WIDE = ("JOB", "STATUS", "QUEUED", "PREEMPTED", "STARTING", "TRAINING", *_LAST)
TIME_HEADERS = ("TIME", "MEAN", "MEDIAN", "P95", "LONGEST")
#: Shorter times are none.
_SOME_S = 0.05
_WORDS = {"grow": "grown", "shrink": "shrunk", "replace": "replaced", "preempt": "preempted", "resume": "resumed"}


def rows(made: Record, *, wide: bool = False) -> list[list[str]]:
    """Text per column of ``HEADERS`` or ``WIDE``, a line per job."""
    return [_row(job, wide=wide) for job in made.jobs]


def total(made: Record) -> str:
    """One line on the whole."""
    done = sum(job.life.phase == "Succeeded" for job in made.jobs)
    span = short(made.to_s - made.from_s)
    return f"{done} of {len(made.jobs)} jobs succeeded in {span}; GPUs held {made.utilisation:.0%} of the time"


def times(made: Record) -> list[list[str]]:
    """How long the jobs took that succeeded: mean, median, 95th percentile and longest, a line per part."""
    return [
        [TIMES[name], short(one.mean), short(one.median), short(one.p95), short(one.longest)]
        for name, one in made.statistics().items()
    ]


def metric(job: JobRecord) -> str:
    """The last metric as people read it."""
    numbers = job.numbers
    if numbers.value is None:
        return "-"
    value = f"{numbers.value:.1%}" if "accuracy" in numbers.metric else f"{numbers.value:.4g}"
    return f"{numbers.metric.replace('_', ' ')} {value}"


def _row(job: JobRecord, *, wide: bool) -> list[str]:
    """One job's line."""
    numbers = job.numbers
    parts = (numbers.queue_s, numbers.preempted_s, numbers.starting_s, numbers.training_s)
    spans = parts if wide else (numbers.wait_s, numbers.run_s)
    resizes = ", ".join(f"{count} {_WORDS.get(kind, kind)}" for kind, count in _ordered(numbers.resizes))
    return [
        job.life.label,
        job.life.phase,
        *(short(span_s) if span_s >= _SOME_S else "-" for span_s in spans),
        short(numbers.jct_s),
        resizes or "none",
        f"{numbers.still_s:.2f}s",
        str(numbers.steps_lost),
        metric(job),
    ]


def _ordered(resizes: Mapping[str, int]) -> list[tuple[str, int]]:
    """Kinds in the order of the words."""
    return [(kind, resizes[kind]) for kind in _WORDS if kind in resizes]

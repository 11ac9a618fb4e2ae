"""The record as a table: one line per job, what it waited, ran and lost."""

from __future__ import annotations

from collections.abc import Mapping

from voda_flows.report.record import JobRecord, Record
from voda_flows.report.times import short

HEADERS = ("JOB", "STATUS", "WAIT", "RUN", "JCT", "RESIZES", "STOOD STILL", "STEPS LOST", "LAST METRIC")
_WORDS = {"grow": "grown", "shrink": "shrunk", "replace": "replaced", "preempt": "preempted", "resume": "resumed"}


def rows(made: Record) -> list[list[str]]:
    """Text per column, a line per job."""
    return [_row(job) for job in made.jobs]


def total(made: Record) -> str:
    """One line on the whole."""
    done = sum(job.life.phase == "Succeeded" for job in made.jobs)
    span = short(made.to_s - made.from_s)
    return f"{done} of {len(made.jobs)} jobs succeeded in {span}; GPUs held {made.utilisation:.0%} of the time"


def metric(job: JobRecord) -> str:
    """The last metric as people read it."""
    numbers = job.numbers
    if numbers.value is None:
        return "-"
    value = f"{numbers.value:.1%}" if "accuracy" in numbers.metric else f"{numbers.value:.4g}"
    return f"{numbers.metric.replace('_', ' ')} {value}"


def _row(job: JobRecord) -> list[str]:
    """One job's line."""
    numbers = job.numbers
    resizes = ", ".join(f"{count} {_WORDS.get(kind, kind)}" for kind, count in _ordered(numbers.resizes))
    return [
        job.life.label,
        job.life.phase,
        short(numbers.wait_s),
        short(numbers.run_s),
        short(numbers.jct_s),
        resizes or "none",
        f"{numbers.still_s:.2f}s",
        str(numbers.steps_lost),
        metric(job),
    ]


def _ordered(resizes: Mapping[str, int]) -> list[tuple[str, int]]:
    """Kinds in the order of the words."""
    return [(kind, resizes[kind]) for kind in _WORDS if kind in resizes]

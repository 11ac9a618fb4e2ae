"""What the demo's record must show, held against it. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from voda_flows.report.record import JobRecord, Record

#: Changes of size that must not lose a step.
GRACEFUL: Final = ("grow", "shrink", "preempt")
ACCURACY: Final = 0.95


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """One figure of the record.

    Attributes:
        figure: What was looked at.
        value: What was found.
        must_be: What was expected.
        holds: Whether it is so.
    """

    figure: str
    value: str
    must_be: str
    holds: bool


def checks(made: Record, jobs: int, *, resizes: bool = True) -> list[Check]:
    """Everything the record must show.

    Args:
        made: The record of a finished demo.
        jobs: How many jobs there must be.
        resizes: Whether the policy resizes running jobs; with one that does not, no resize is looked for.

    Returns:
        One check per figure.
    """
    return [*_ends(made, jobs), *(_resizes(made) if resizes else ()), _resumed(made), _lost(made), _accuracy(made)]


def _ends(made: Record, jobs: int) -> Iterator[Check]:
    """Every job succeeded."""
    done = [job for job in made.jobs if job.life.phase == "Succeeded"]
    yield Check(
        figure="jobs succeeded",
        value=f"{len(done)} of {len(made.jobs)}",
        must_be=f"{jobs} of {jobs}",
        holds=len(done) == len(made.jobs) == jobs,
    )


def _resizes(made: Record) -> Iterator[Check]:
    """It grew, it shrank."""
    for kind, words in (("grow", "in-place growths"), ("shrink", "in-place shrinks")):
        count = sum(job.numbers.resizes.get(kind, 0) for job in made.jobs)
        yield Check(figure=words, value=str(count), must_be=">= 1", holds=count >= 1)


def _resumed(made: Record) -> Check:
    """Somebody was preempted to zero and resumed."""
    resumed = [job.life.label for job in made.jobs if _was_resumed(job)]
    return Check(
        figure="preempted to zero and resumed",
        value=", ".join(resumed) or "none",
        must_be=">= 1 job",
        holds=bool(resumed),
    )


def _lost(made: Record) -> Check:
    """No graceful change lost a step."""
    lost = {
        job.life.label: steps
        for job in made.jobs
        if (steps := sum(event.steps_lost for event in job.happened if event.kind in GRACEFUL))
    }
    return Check(
        figure="steps lost in graceful changes",
        value=", ".join(f"{label} {steps}" for label, steps in lost.items()) or "0",
        must_be="0",
        holds=not lost,
    )


def _accuracy(made: Record) -> Check:
    """Training on changing GPUs still learns."""
    job = next((job for job in made.jobs if job.life.label == "digits"), None)
    value = job.numbers.value if job is not None and job.numbers.metric == "accuracy" else None
    return Check(
        figure="accuracy of digits",
        value="none" if value is None else f"{value:.3f}",
        must_be=f">= {ACCURACY}",
        holds=value is not None and value >= ACCURACY,
    )


def _was_resumed(job: JobRecord) -> bool:
    """Whether a preemption was followed by a resumption."""
    kinds = [event.kind for event in job.happened]
    return "preempt" in kinds and "resume" in kinds[kinds.index("preempt") :]

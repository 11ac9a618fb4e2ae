"""Workloads of the artifact of Pollux (OSDI'21): jobs with the GPUs and the batch size that their users asked for."""

from __future__ import annotations

from dataclasses import dataclass

from scheduler_core.errors import InvalidValue
from scheduler_core.simulate.traces.table import numbers, rows

_HEADER = ("name", "time", "application", "num_replicas", "batch_size")


@dataclass(frozen=True, slots=True, kw_only=True)
class PolluxJob:
    """One row of a workload.

    Attributes:
        name: Unique in its workload.
        submitted_s: When it is submitted, whole seconds from the beginning.
        application: What it trains.
        num_gpus: GPUs that its user asks for.
        batch_size: Samples of one step over all GPUs that its user asks for.
    """

    name: str
    submitted_s: int
    application: str
    num_gpus: int
    batch_size: int


def read_pollux(text: str, *, name: str = "workload") -> tuple[PolluxJob, ...]:
    """Read a workload.

    Args:
        text: The file's text.
        name: What to call it in errors.

    Returns:
        Jobs in order of submission, then as in the file.

    Raises:
        InvalidValue: Naming the line, what was expected and what was found.
    """
    jobs: dict[str, PolluxJob] = {}
    for line, fields in rows(text, _HEADER, name=name):
        values = numbers([fields[1], *fields[3:]], name=name, line=line)
        if not all(value.is_integer() for value in values) or values[0] < 0 or min(values[1:]) < 1:
            raise InvalidValue(f"{name}, line {line}: expected whole time >= 0, replicas and batch >= 1, got {fields}")
        if fields[0] in jobs:
            raise InvalidValue(f"{name}, line {line}: expected unique names, got {fields[0]!r} again")
        submitted_s, num_gpus, batch_size = map(int, values)
        jobs[fields[0]] = PolluxJob(
            name=fields[0],
            submitted_s=submitted_s,
            application=fields[2],
            num_gpus=num_gpus,
            batch_size=batch_size,
        )
    return tuple(sorted(jobs.values(), key=lambda job: job.submitted_s))

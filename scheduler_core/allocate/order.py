"""The orders in which policies serve jobs, each total, and how large a job is worth growing."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence

from scheduler_core.allocate.rungs import useful_rungs
from scheduler_core.model.job import JobSpec


def by_arrival(specs: Iterable[JobSpec]) -> list[JobSpec]:
    """Jobs by priority class (higher first), then submit time, then id: a total order."""
    return sorted(specs, key=lambda spec: (-spec.priority, spec.submitted_s, spec.id))


def by_remaining(specs: Iterable[JobSpec], remaining_s_by_job: Mapping[str, float]) -> list[JobSpec]:
    """Jobs by priority class, then seconds still needed at one GPU, then arrival; unknown is longer than any known."""
    left = remaining_s_by_job
    return sorted(specs, key=lambda spec: (-spec.priority, left.get(spec.id, math.inf), spec.submitted_s, spec.id))


def useful_gpus(spec: JobSpec, speed: Sequence[float]) -> int:
    """The most GPUs that are known to help, or not known not to.

    Args:
        spec: The job.
        speed: Samples/s at 0, 1, 2, ... GPUs; may be empty or shorter than the job's maximum.

    Returns:
        The largest of its useful sizes; 0 where no size is allowed.
    """
    sizes = useful_rungs(spec, speed)
    return sizes[-1] if sizes else 0

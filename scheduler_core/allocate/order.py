"""What the policies share: the order of first come, first served, and how large a job is worth growing."""

from __future__ import annotations

from collections.abc import Iterable

from scheduler_core.model.job import JobSpec


def by_arrival(specs: Iterable[JobSpec]) -> list[JobSpec]:
    """Jobs by priority class (higher first), then submit time, then id: a total order."""
    return sorted(specs, key=lambda spec: (-spec.priority, spec.submitted_s, spec.id))


def useful_gpus(spec: JobSpec, speed: tuple[float, ...]) -> int:
    """The most GPUs that are known to help, or not known not to.

    Args:
        spec: The job.
        speed: Samples/s at 0, 1, 2, ... GPUs; may be empty or shorter than the job's maximum.

    Returns:
        The job's maximum, or the smallest size of the highest speed where the table shows a larger size to be no
        faster; never below the job's minimum.
    """
    sizes = range(spec.min_gpus, min(spec.max_gpus, len(speed) - 1) + 1, spec.gpus_per_worker)
    if not sizes:
        return spec.max_gpus
    best = max(sizes, key=lambda gpus: (speed[gpus], -gpus))
    return best if best < sizes[-1] else spec.max_gpus

"""Grow served jobs in turn, one allowed size at a time, up to their best known speeds.

In: the served jobs in an order, with their GPUs. Out: the same with what was left. Second phase of the elastic policies
of Voda (IC2E 2023, pp. 131-140).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from scheduler_core.allocate.rungs import useful_rungs
from scheduler_core.model.job import JobSpec
from scheduler_core.model.ports import PolicyInput


def grown_in_turn(asked: PolicyInput, ordered: Iterable[JobSpec], served: Mapping[str, int]) -> dict[str, int]:
    """Give what is left, one step to each job in turn, until nothing fits.

    Args:
        asked: GPUs in all and the speed tables.
        ordered: The jobs in the order of their turns.
        served: GPUs by job so far, each an allowed size; jobs that are not named do not grow.

    Returns:
        GPUs by job.
    """
    gpus_by_job = dict(served)
    free_gpus = asked.capacity_gpus - sum(served.values())
    if not free_gpus:
        return gpus_by_job
    growing = [(spec.id, _above(asked, spec, served[spec.id])) for spec in ordered if spec.id in served]
    level = 0
    while growing and free_gpus:
        still = []
        for job_id, steps in growing:
            if level < len(steps) and steps[level] - gpus_by_job[job_id] <= free_gpus:
                free_gpus -= steps[level] - gpus_by_job[job_id]
                gpus_by_job[job_id] = steps[level]
                still.append((job_id, steps))
        growing = still
        level += 1
    return gpus_by_job


def _above(asked: PolicyInput, spec: JobSpec, gpus: int) -> list[int]:
    """The useful sizes of a job above what it has."""
    return [size for size in useful_rungs(spec, asked.speed_by_job.get(spec.id, ())) if size > gpus]

"""Serve jobs in an order, each what it asks for, while GPUs last.

In: the jobs in their order and what each asks for. Out: GPUs by job. What most policies begin with.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from scheduler_core.allocate.rungs import rungs
from scheduler_core.model.job import JobSpec
from scheduler_core.model.ports import PolicyInput


def smallest(spec: JobSpec, _free_gpus: int = 0) -> int:
    """The smallest size that a job may have, GPUs; 0 where none is allowed."""
    return spec.min_gpus if not spec.gpu_sizes else next(iter(rungs(spec)), 0)


def walk(
    asked: PolicyInput, ordered: Iterable[JobSpec], wanted: Callable[[JobSpec, int], int] = smallest
) -> dict[str, int]:
    """Give each job in turn what it asks for, where that still fits.

    Where ``backfilling`` is off, no job starts behind one that does not fit; those that hold GPUs now are still
    served, because to stop them would help nobody.

    Args:
        asked: GPUs to give, what jobs hold now, and the settings.
        ordered: The jobs, first served first.
        wanted: GPUs that a job asks for, given how many are left; 0 for one that cannot be served.

    Returns:
        GPUs of those that were served, in the order in which they were.
    """
    free_gpus, is_blocked = asked.capacity_gpus, False
    gpus_by_job: dict[str, int] = {}
    for spec in ordered:
        if not free_gpus:
            break
        gpus = wanted(spec, free_gpus)
        if not gpus or (is_blocked and not asked.current.gpus(spec.id)):
            continue
        if gpus <= free_gpus:
            gpus_by_job[spec.id] = gpus
            free_gpus -= gpus
        elif not asked.params.backfilling:
            is_blocked = True
    return gpus_by_job

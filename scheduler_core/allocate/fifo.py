"""FIFO: every job its minimum, first come, first served, and what fits behind a job that does not fit goes ahead.

In: the jobs and the GPUs to give. Out: GPUs by job. Second of the six steps (allocate).
The rule is Voda's FIFO (IC2E 2023, pp. 131-140): walk the jobs in order, give the minimum where it still fits, go on
where it does not. Ours orders by priority class first and breaks ties by id, so equal input gives equal output.
"""

from __future__ import annotations

from scheduler_core.allocate.order import by_arrival
from scheduler_core.model.allocation import Allocation
from scheduler_core.model.ports import PolicyInput


def fifo(asked: PolicyInput) -> Allocation:
    """Give each job its minimum in order of arrival while GPUs last.

    Args:
        asked: Jobs and GPUs; speeds are not looked at.

    Returns:
        0 or ``min_gpus`` for each job.
    """
    free_gpus = asked.capacity_gpus
    gpus_by_job: dict[str, int] = {}
    for spec in by_arrival(asked.specs):
        if spec.min_gpus <= free_gpus:
            gpus_by_job[spec.id] = spec.min_gpus
            free_gpus -= spec.min_gpus
    return Allocation(gpus_by_job=gpus_by_job)

"""FIFO: every job its minimum, first come, first served, and what fits behind a job that does not fit goes ahead.

In: the jobs and the GPUs to give. Out: GPUs by job. Second of the six steps (allocate).
The rule is Voda's FIFO (IC2E 2023, pp. 131-140): walk the jobs in order, give the minimum where it still fits, go on
where it does not. Ours orders by priority class first and breaks ties by id, so equal input gives equal output; and it
goes on only where ``backfilling`` is on.
"""

from __future__ import annotations

from scheduler_core.allocate.order import by_arrival
from scheduler_core.allocate.walk import walk
from scheduler_core.model.allocation import Allocation
from scheduler_core.model.ports import PolicyInput


def fifo(asked: PolicyInput) -> Allocation:
    """Give each job its minimum in order of arrival while GPUs last.

    Args:
        asked: Jobs and GPUs; speeds are not looked at.

    Returns:
        0 or the smallest allowed size for each job.
    """
    return Allocation(gpus_by_job=walk(asked, by_arrival(asked.specs)))

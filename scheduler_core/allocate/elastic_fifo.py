"""Elastic FIFO: minima first come, first served, then what is left one worker at a time in turn.

In: the jobs, the GPUs to give and what is known of their speed. Out: GPUs by job. Second of the six steps (allocate).
The rule is Voda's default (IC2E 2023, pp. 131-140). Ours differs where the original is wrong or blind: a job that got
no minimum takes no part in the second phase, a job grows by whole workers, and no job grows past its best known speed.
"""

from __future__ import annotations

from scheduler_core.allocate.fifo import fifo
from scheduler_core.allocate.order import by_arrival, useful_gpus
from scheduler_core.model.allocation import Allocation
from scheduler_core.model.ports import PolicyInput


def elastic_fifo(asked: PolicyInput) -> Allocation:
    """Give minima in order of arrival, then grow the jobs that have one, a worker at a time in turn.

    Args:
        asked: Jobs, GPUs and speed tables (samples/s by GPUs; a job without one may grow to its maximum).

    Returns:
        0 or ``min_gpus`` to ``max_gpus`` for each job, in whole workers.
    """
    gpus_by_job = dict(fifo(asked).gpus_by_job)
    free_gpus = asked.capacity_gpus - sum(gpus_by_job.values())
    limit_by_job = {spec.id: useful_gpus(spec, asked.speed_by_job.get(spec.id, ())) for spec in asked.specs}
    growing = [spec for spec in by_arrival(asked.specs) if spec.id in gpus_by_job]
    while growing:
        still = []
        for spec in growing:
            step = spec.gpus_per_worker
            if step <= free_gpus and gpus_by_job[spec.id] + step <= limit_by_job[spec.id]:
                gpus_by_job[spec.id] += step
                free_gpus -= step
                still.append(spec)
        growing = still
    return Allocation(gpus_by_job=gpus_by_job)

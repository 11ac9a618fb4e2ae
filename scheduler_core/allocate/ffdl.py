"""FfDL's optimizer: the allocation of the greatest speed-up in all, among the jobs that first come, first served keeps.

In: the jobs, the GPUs to give and what is known of their speed. Out: GPUs by job. Second of the six steps (allocate).
The rule is the dynamic programme of the elastic FfDL (MASCOTS'20, "Effective Elastic Scaling of Deep Learning
Workloads") as Voda has it (IC2E 2023): keep the jobs that come first, as many as can run, and choose their sizes for
the greatest sum of speed-ups over one GPU.

What is exact: given which jobs are kept, and each job's row of the speed table up to its best size, no choice of
allowed sizes has a greater sum (rounding apart). Which are kept is the rule's: minima by arrival. Ours differs: the
original ignores minima, and stops with an error where one is more than 1 or there is no GPU at all; ours keeps as many
jobs as their minima allow. Among allocations of the same sum it takes one that depends on the jobs alone.
"""

from __future__ import annotations

from scheduler_core.allocate.knapsack import Group, best_options
from scheduler_core.allocate.order import by_arrival
from scheduler_core.allocate.rungs import speedups, useful_rungs
from scheduler_core.allocate.walk import walk
from scheduler_core.model.allocation import Allocation
from scheduler_core.model.ports import PolicyInput


def ffdl(asked: PolicyInput) -> Allocation:
    """Keep jobs by arrival, then give them the sizes of the greatest total speed-up.

    Args:
        asked: Jobs, GPUs and speed tables (samples/s by GPUs; a job without one counts each GPU as one).

    Returns:
        0 or an allowed size for each job.
    """
    ordered = by_arrival(asked.specs)
    kept = walk(asked, ordered)
    free_gpus = asked.capacity_gpus - sum(kept.values())
    if not free_gpus:
        return Allocation(gpus_by_job=kept)
    sizes_by_job, groups = {}, []
    for spec in ordered:
        if spec.id in kept:
            speed = asked.speed_by_job.get(spec.id, ())
            sizes = useful_rungs(spec, speed)
            worth = speedups(sizes, speed)
            sizes_by_job[spec.id] = sizes
            groups.append(
                Group(costs=tuple(gpus - sizes[0] for gpus in sizes), values=tuple(value - worth[0] for value in worth))
            )
    options = best_options(groups, free_gpus)
    pairs = zip(sizes_by_job.items(), options, strict=True)
    return Allocation(gpus_by_job={job_id: sizes[option] for (job_id, sizes), option in pairs})

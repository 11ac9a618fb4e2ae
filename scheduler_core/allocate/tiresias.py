"""Tiresias: least attained service first, in few queues, each job the GPUs that its user asked for.

In: the jobs, the GPUs to give and what service each job has had. Out: GPUs by job. Second of the six steps (allocate).
The rule is Tiresias (NSDI'19, section 4.1.2) as Voda has it (IC2E 2023): jobs by queue and first start, each
``num_gpus`` where that fits. Ours differs: promotion is sound (see ``allocate.attained``), a number outside the job's
sizes is clipped (the original stops with an error), a job without a number gets its minimum, priority classes go first
(the original never runs a job of a third priority), and ties end in the id. The number is the user's wish: it is not
cut at the best known speed.
"""

from __future__ import annotations

from scheduler_core.allocate.attained import asked_gpus, by_queue
from scheduler_core.allocate.walk import walk
from scheduler_core.model.allocation import Allocation
from scheduler_core.model.ports import PolicyInput


def tiresias(asked: PolicyInput) -> Allocation:
    """Give each job what it asks for, those of the first queue first, while GPUs last.

    Args:
        asked: Jobs, GPUs, service and first starts; speeds are not looked at.

    Returns:
        0 or the size it asks for, for each job.
    """
    return Allocation(gpus_by_job=walk(asked, by_queue(asked), asked_gpus))

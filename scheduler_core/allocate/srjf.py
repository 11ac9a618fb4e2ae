"""Shortest remaining job first: minima in order of the work that is left, so short jobs never wait for long ones.

In: the jobs, the GPUs to give and how long each job still needs. Out: GPUs by job. Second of the six steps (allocate).
The rule is Voda's SRJF (IC2E 2023, pp. 131-140): order by seconds left at one GPU, then as FIFO; made afresh at each
decision, so a shorter job preempts. Ours orders by priority class first, puts jobs of which nothing is known last, by
arrival (the original stops with an error there), and breaks ties by arrival and id.
"""

from __future__ import annotations

from scheduler_core.allocate.order import by_remaining
from scheduler_core.allocate.walk import walk
from scheduler_core.model.allocation import Allocation
from scheduler_core.model.ports import PolicyInput


def srjf(asked: PolicyInput) -> Allocation:
    """Give each job its minimum, that with least work left first, while GPUs last.

    Args:
        asked: Jobs, GPUs and seconds left at one GPU; speeds are not looked at.

    Returns:
        0 or the smallest allowed size for each job.
    """
    return Allocation(gpus_by_job=walk(asked, by_remaining(asked.specs, asked.remaining_s_by_job)))

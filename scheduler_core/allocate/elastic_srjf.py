"""Elastic SRJF: minima by shortest remaining job first, then what is left one worker at a time in the same order.

In: the jobs, the GPUs to give, how long each job still needs and what is known of their speed. Out: GPUs by job.
Second of the six steps (allocate). The rule is Voda's (IC2E 2023, pp. 131-140). The original gives single GPUs to jobs
that got no minimum and grows a job of one size past its maximum, and then stops with an error; ours does neither, and
grows no job past its best known speed.
"""

from __future__ import annotations

from scheduler_core.allocate.growing import grown_in_turn
from scheduler_core.allocate.order import by_remaining
from scheduler_core.allocate.walk import walk
from scheduler_core.model.allocation import Allocation
from scheduler_core.model.ports import PolicyInput


def elastic_srjf(asked: PolicyInput) -> Allocation:
    """Give minima by least work left, then grow the jobs that have one, a size at a time in turn.

    Args:
        asked: Jobs, GPUs, seconds left at one GPU, and speed tables (samples/s by GPUs).

    Returns:
        0 or an allowed size for each job.
    """
    ordered = by_remaining(asked.specs, asked.remaining_s_by_job)
    return Allocation(gpus_by_job=grown_in_turn(asked, ordered, walk(asked, ordered)))

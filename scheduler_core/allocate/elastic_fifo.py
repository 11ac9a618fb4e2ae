"""Elastic FIFO: minima first come, first served, then what is left one worker at a time in turn.

In: the jobs, the GPUs to give and what is known of their speed. Out: GPUs by job. Second of the six steps (allocate).
The rule is Voda's default (IC2E 2023, pp. 131-140). Ours differs where the original is wrong or blind: a job that got
no minimum takes no part in the second phase, a job grows by whole workers through its allowed sizes, and no job grows
past its best known speed.
"""

from __future__ import annotations

from scheduler_core.allocate.growing import grown_in_turn
from scheduler_core.allocate.order import by_arrival
from scheduler_core.allocate.walk import walk
from scheduler_core.model.allocation import Allocation
from scheduler_core.model.ports import PolicyInput


def elastic_fifo(asked: PolicyInput) -> Allocation:
    """Give minima in order of arrival, then grow the jobs that have one, a size at a time in turn.

    Args:
        asked: Jobs, GPUs and speed tables (samples/s by GPUs; a job without one may grow to its maximum).

    Returns:
        0 or an allowed size for each job.
    """
    ordered = by_arrival(asked.specs)
    return Allocation(gpus_by_job=grown_in_turn(asked, ordered, walk(asked, ordered)))

"""Speed tables as the policies may rely on them: what the observation carries, less what cannot be true.

In: the observation. Out: samples/s at 0, 1, 2, ... GPUs by job. First of the three deciding steps (estimate). Fits and
learned tables fill the observation before it comes here; a policy sees nothing else of them.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from scheduler_core.model.observation import Observation


def speed_tables(observation: Observation) -> Mapping[str, tuple[float, ...]]:
    """The usable tables of live jobs, by id in order.

    A table is usable when it is 0 at 0 GPUs and finite and not negative everywhere. An unusable one is left out: its
    job is treated like one of which nothing is known, so one bad report harms nobody.
    """
    return {
        job.id: table
        for job in observation.jobs
        if (table := observation.speed_by_job.get(job.id, ())) and _is_usable(table)
    }


def _is_usable(table: tuple[float, ...]) -> bool:
    return table[0] == 0 and all(math.isfinite(speed) and speed >= 0 for speed in table)

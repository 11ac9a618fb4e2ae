"""Optimus with an oracle by the rules of the artifact of Pollux (OSDI'21): a baseline, no production policy.

One GPU for each job in order of submission, then one more for the job whose remaining time falls most by it, while it
falls. The oracle knows the true times and the iterations that are left. A job whose number of GPUs stays keeps its
nodes; the others are placed anew, the smallest first.
"""

from __future__ import annotations

import heapq
from collections.abc import Mapping, Sequence

from scheduler_core.simulate.compat.pollux_rounds import GPUS_PER_NODE, NODES, NodeList, RoundsJob, placed

#: The artifact trains this application on one GPU only.
_ALONE = "ncf"


class PolluxOptimus:
    """The policy, with the times that it has looked up."""

    def __init__(self) -> None:
        self._times_s: dict[tuple[str, int, int], float] = {}

    def __call__(self, live: Sequence[RoundsJob]) -> Mapping[str, NodeList]:
        """Nodes by job."""
        gpus_by_job = self._allocate(live)
        kept = {job.asked.name: job.nodes for job in live if len(job.nodes) == gpus_by_job.get(job.asked.name, 0) > 0}
        new = [(name, gpus) for name, gpus in gpus_by_job.items() if name not in kept]
        return placed(kept, sorted(new, key=lambda one: one[1]))

    def _allocate(self, live: Sequence[RoundsJob]) -> dict[str, int]:
        """GPUs by job, in order of submission."""
        served = live[: NODES * GPUS_PER_NODE]
        left_gpus = NODES * GPUS_PER_NODE - len(served)
        gpus = [1] * len(served)
        gains = [(-self._gain_s(job, 1), place) for place, job in enumerate(served)]
        heapq.heapify(gains)
        while left_gpus and gains and gains[0][0] < 0:
            place = gains[0][1]
            gpus[place] += 1
            left_gpus -= 1
            heapq.heapreplace(gains, (-self._gain_s(served[place], gpus[place]), place))
        return {job.asked.name: count for job, count in zip(served, gpus, strict=True)}

    def _gain_s(self, job: RoundsJob, gpus: int) -> float:
        """Seconds by which one more GPU shortens what is left, 0 where it may have no more."""
        application, batch_size = job.application, job.asked.batch_size
        if gpus >= (1 if application.name == _ALONE else batch_size // application.min_local):
            return 0.0
        faster_s = self._time_s(job, gpus) - self._time_s(job, gpus + 1)
        return faster_s * application.remaining_iterations(batch_size, job.epoch)

    def _time_s(self, job: RoundsJob, gpus: int) -> float:
        key = (job.application.name, job.asked.batch_size, gpus)
        if key not in self._times_s:
            self._times_s[key] = job.application.foreseen_s(job.asked.batch_size, gpus)
        return self._times_s[key]

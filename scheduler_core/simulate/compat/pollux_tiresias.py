"""Tiresias by the rules of the artifact of Pollux (OSDI'21): a baseline to compare with, no production policy.

Two queues; a job goes down when it ran for 57,600 GPU seconds (delays included, counted by the GPUs that it asks for)
and never comes up again. The queues are scanned in order of entry, and who fits in what is left has all it asks for.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from scheduler_core.simulate.compat.pollux_rounds import GPUS_PER_NODE, NODES, NodeList, RoundsJob, placed

DEMOTED_GPU_S = 57_600


class PolluxTiresias:
    """The policy, with its queues."""

    def __init__(self) -> None:
        self._queues: tuple[list[RoundsJob], list[RoundsJob]] = ([], [])

    def __call__(self, live: Sequence[RoundsJob]) -> Mapping[str, NodeList]:
        """Nodes by job."""
        first, second = self._queues
        first[:] = [job for job in first if job.ended_s is None]
        second[:] = [job for job in second if job.ended_s is None]
        known = {job.asked.name for queue in self._queues for job in queue}
        first += [job for job in live if job.asked.name not in known]
        second += [job for job in first if _is_old(job)]
        first[:] = [job for job in first if not _is_old(job)]
        left_gpus = NODES * GPUS_PER_NODE
        running = []
        for job in [*first, *second]:
            if job.asked.num_gpus <= left_gpus:
                left_gpus -= job.asked.num_gpus
                running.append(job)
        kept = {job.asked.name: job.nodes for job in running if job.nodes}
        new = [(job.asked.name, job.asked.num_gpus) for job in running if not job.nodes]
        return placed(kept, new)


def _is_old(job: RoundsJob) -> bool:
    return job.ran_s * job.asked.num_gpus >= DEMOTED_GPU_S

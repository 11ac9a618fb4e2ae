"""The rounds of the artifact of Pollux (OSDI'21): 60 s long, and 30 s without progress after each change of nodes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

from scheduler_core.errors import InvalidValue
from scheduler_core.simulate.compat.pollux_application import Application
from scheduler_core.simulate.traces.pollux import PolluxJob

ROUND_S = 60
RESTART_S = 30
NODES = 16
GPUS_PER_NODE = 4

#: Node of each worker, in the order in which they were taken.
NodeList: TypeAlias = tuple[int, ...]


class RoundsJob:
    """The state of one job.

    Attributes:
        asked: What its user asks for.
        application: What it trains.
        nodes: Where its workers are.
        epoch: Epochs completed.
        progress: See ``Application.progress_per_s``.
        ran_s: Seconds of the rounds in which it had GPUs.
        ended_s: When it ended, None before.
    """

    def __init__(self, asked: PolluxJob, application: Application) -> None:
        self.asked = asked
        self.application = application
        self.nodes: NodeList = ()
        self.epoch = 0
        self.progress = 0.0
        self.ran_s = 0
        self.ended_s: int | None = None
        self._delay_s = 0

    def move(self, nodes: NodeList) -> None:
        """Give it these nodes; other ones than before cost a restart."""
        if nodes != self.nodes:
            self.nodes, self._delay_s = nodes, RESTART_S

    def advance(self, now_s: int) -> None:
        """Train for one round."""
        self.ran_s += ROUND_S
        waited_s = min(self._delay_s, ROUND_S)
        self._delay_s -= waited_s
        left_s = ROUND_S - waited_s
        placement = tuple(self.nodes.count(node) for node in dict.fromkeys(self.nodes))
        split = self.application.split(self.asked.batch_size, len(self.nodes))
        while left_s > 0:
            per_s = self.application.progress_per_s(placement, split, self.epoch)
            boundary = float(self.application.boundaries[self.epoch])
            if self.progress + per_s * left_s < boundary:
                self.progress += per_s * left_s
                return
            left_s -= round((boundary - self.progress) / per_s)
            self.progress = boundary
            self.epoch += 1
            if self.epoch == self.application.epochs:
                self.ended_s = now_s + ROUND_S - left_s
                return


RoundsPolicy: TypeAlias = Callable[[Sequence[RoundsJob]], Mapping[str, NodeList]]


def run_rounds(
    workload: Sequence[PolluxJob], applications: Mapping[str, Application], policy: RoundsPolicy
) -> dict[str, int]:
    """Run a workload on 16 nodes with 4 GPUs each.

    Args:
        workload: In order of submission.
        applications: By name.
        policy: Gives nodes by job to all jobs that were submitted and have not ended, in order of submission.

    Returns:
        Seconds from submission to end, by job.

    Raises:
        InvalidValue: A job asks for more GPUs than there are, or its application is unknown.
    """
    for asked in workload:
        if asked.application not in applications or asked.num_gpus > NODES * GPUS_PER_NODE:
            raise InvalidValue(f"job {asked.name!r}: expected an application of {sorted(applications)}, got {asked}")
    jobs = [RoundsJob(asked, applications[asked.application]) for asked in workload]
    live: list[RoundsJob] = []
    coming, now_s = jobs, 0
    while live or coming:
        for job in live:
            if job.nodes:
                job.advance(now_s)
        now_s += ROUND_S
        arrived = [job for job in coming if job.asked.submitted_s <= now_s]
        coming = coming[len(arrived) :]
        live = [job for job in live if job.ended_s is None] + arrived
        nodes_by_job = policy(live)
        for job in live:
            job.move(nodes_by_job.get(job.asked.name, ()))
    return {job.asked.name: job.ended_s - job.asked.submitted_s for job in jobs if job.ended_s is not None}


def placed(kept: Mapping[str, NodeList], new: Sequence[tuple[str, int]]) -> dict[str, NodeList]:
    """Nodes by job: who stays, and the others on the freest node again and again, the first one on a tie.

    Args:
        kept: Nodes of those who stay.
        new: The others with the GPUs they get, in this order.
    """
    nodes_by_job = dict(kept)
    free = [GPUS_PER_NODE] * NODES
    for nodes in kept.values():
        for node in nodes:
            free[node] -= 1
    for name, gpus in new:
        taken: list[int] = []
        while len(taken) < gpus:
            node = max(range(NODES), key=lambda one: (free[one], -one))
            count = min(free[node], gpus - len(taken))
            taken += [node] * count
            free[node] -= count
        nodes_by_job[name] = tuple(taken)
    return nodes_by_job

"""What is really there: the one input of a scheduling cycle."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from operator import lt

from scheduler_core.errors import InvalidValue
from scheduler_core.model.cluster import Cluster
from scheduler_core.model.job import Job
from scheduler_core.model.queue import Queue
from scheduler_core.model.resizes import ResizeCosts


@dataclass(frozen=True, slots=True, kw_only=True)
class Observation:
    """The world at one moment.

    Attributes:
        now_s: When it was taken, seconds since the epoch; the only clock of the core.
        cluster: The nodes.
        jobs: Every live job with a legal request, sorted by id.
        queues: The queues, by name.
        refused: Jobs whose request is not legal, by id, with the text their user is shown; not among ``jobs``.
        speed_by_job: For each job, samples/s at 0, 1, 2, ... GPUs; index 0 is 0. Empty when nothing is known.
        remaining_s_by_job: Seconds that a job still needs at one GPU, where known (R of the papers).
        step_s_by_job: Seconds of one optimizer step without communication, where known.
        gradient_bytes_by_job: Bytes that each rank reduces with the others in one step, where known.
        costs: What a change of a running job costs.
    """

    now_s: float
    cluster: Cluster
    jobs: tuple[Job, ...] = ()
    queues: Mapping[str, Queue] = field(default_factory=dict)
    refused: Mapping[str, str] = field(default_factory=dict)
    speed_by_job: Mapping[str, tuple[float, ...]] = field(default_factory=dict)
    remaining_s_by_job: Mapping[str, float] = field(default_factory=dict)
    step_s_by_job: Mapping[str, float] = field(default_factory=dict)
    gradient_bytes_by_job: Mapping[str, float] = field(default_factory=dict)
    costs: ResizeCosts = ResizeCosts()

    def __post_init__(self) -> None:
        """Bring the jobs into their one order."""
        ids = [job.spec.id for job in self.jobs]
        if all(map(lt, ids, ids[1:])):  # as most worlds give them
            return
        ordered = tuple(sorted(self.jobs, key=lambda job: job.id))
        if len(set(ids)) != len(ids):
            raise InvalidValue(f"observation: expected unique job ids, got {sorted(ids)}")
        object.__setattr__(self, "jobs", ordered)

    @property
    def jobs_by_id(self) -> dict[str, Job]:
        """The jobs by id, in order of id."""
        return {job.id: job for job in self.jobs}

    def ours_gpus(self) -> dict[str, int]:
        """GPUs by node that our jobs may hold: allocatable less foreign, 0 on nodes that take nothing new."""
        return {
            node.name: max(0, node.gpus - node.foreign_gpus) if node.schedulable else 0 for node in self.cluster.nodes
        }

    def held_gpus(self) -> dict[str, int]:
        """GPUs by node that our jobs hold or were promised; nodes that are gone are left out."""
        held = {node.name: 0 for node in self.cluster.nodes}
        for job in self.jobs:
            for worker in job.holding:
                if worker.node in held:
                    held[worker.node] += worker.gpus
        return held

    def free_gpus(self) -> dict[str, int]:
        """GPUs by node that can be claimed now, never negative."""
        held, leaving = self.held_gpus(), {node.name: node.leaving_gpus for node in self.cluster.nodes}
        return {name: max(0, gpus - held[name] - leaving[name]) for name, gpus in self.ours_gpus().items()}

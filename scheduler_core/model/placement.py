"""Which nodes each job's workers stand on: the result of a placer, and the law it must keep."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from scheduler_core.errors import LawBroken
from scheduler_core.model.allocation import Allocation
from scheduler_core.model.job import JobSpec


@dataclass(frozen=True, slots=True, kw_only=True)
class Placement:
    """Workers by node, for each job.

    Attributes:
        workers_by_job: job id -> node name -> number of workers (> 0); iteration is in order of names.
        unplaced: Jobs that were allocated GPUs for which no nodes could be found, with the reason.
    """

    workers_by_job: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    unplaced: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Bring the entries into their one order."""
        entries = {
            job_id: {node: count for node, count in sorted(nodes.items()) if count}
            for job_id, nodes in sorted(self.workers_by_job.items())
        }
        object.__setattr__(self, "workers_by_job", {job_id: nodes for job_id, nodes in entries.items() if nodes})
        object.__setattr__(self, "unplaced", dict(sorted(self.unplaced.items())))

    def workers(self, job_id: str) -> Mapping[str, int]:
        """Workers by node of one job, empty when it has none."""
        return self.workers_by_job.get(job_id, {})

    def check(self, allocation: Allocation, specs: Iterable[JobSpec], free_gpus: Mapping[str, int]) -> Placement:
        """The law: every allocated worker placed exactly once (or its job named unplaced), no node over capacity.

        Args:
            allocation: What was to be placed.
            specs: The jobs named in it.
            free_gpus: GPUs by node that this placement may use in all.

        Returns:
            Itself.

        Raises:
            LawBroken: Naming the job or node, what was expected and what was found.
        """
        known = {spec.id: spec for spec in specs}
        used: Counter[str] = Counter()
        for job_id, gpus in allocation.gpus_by_job.items():
            spec, nodes = known[job_id], self.workers(job_id)
            want = 0 if job_id in self.unplaced else gpus // spec.gpus_per_worker
            if sum(nodes.values()) != want:
                raise LawBroken(f"job {job_id!r}: expected {want} workers placed, got {dict(nodes)}")
            for node, count in nodes.items():
                used[node] += count * spec.gpus_per_worker
        stray = set(self.workers_by_job) - set(allocation.gpus_by_job)
        if stray:
            raise LawBroken(f"expected only allocated jobs placed, got {sorted(stray)}")
        for node_name, gpus in sorted(used.items()):
            if gpus > free_gpus.get(node_name, 0):
                raise LawBroken(f"node {node_name!r}: expected at most {free_gpus.get(node_name, 0)} GPUs, got {gpus}")
        return self

"""How many GPUs each job gets: the result of a policy, and the law it must keep."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from operator import index

from scheduler_core.errors import LawBroken
from scheduler_core.model.job import JobSpec


@dataclass(frozen=True, slots=True, kw_only=True)
class Allocation:
    """GPUs by job id; a job that is not named gets none.

    Attributes:
        gpus_by_job: Zero entries are dropped; iteration is in order of id.
    """

    gpus_by_job: Mapping[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Bring the entries into their one order; a policy may count in numpy's integers, but not in fractions."""
        entries = {job_id: index(gpus) for job_id, gpus in sorted(self.gpus_by_job.items()) if gpus}
        object.__setattr__(self, "gpus_by_job", entries)

    def gpus(self, job_id: str) -> int:
        """GPUs of one job, 0 when it gets none."""
        return self.gpus_by_job.get(job_id, 0)

    @property
    def total_gpus(self) -> int:
        """GPUs given in all."""
        return sum(self.gpus_by_job.values())

    def check(self, specs: Iterable[JobSpec], capacity_gpus: int, *, by: str) -> Allocation:
        """The law: each job 0 or an allowed size of min..max in whole workers, the sum within capacity, no unknown job.

        Args:
            specs: Every job the policy was asked about.
            capacity_gpus: GPUs it could give.
            by: Name of the policy, for the message.

        Returns:
            Itself, so that the call can stand in an expression.

        Raises:
            LawBroken: Naming the job, what was expected and what was found.
        """
        known = {spec.id: spec for spec in specs}
        for job_id, gpus in self.gpus_by_job.items():
            spec = known.get(job_id)
            if spec is None:
                raise LawBroken(f"job {job_id!r}: expected only jobs that were asked about (policy {by})")
            if not spec.min_gpus <= gpus <= spec.max_gpus or gpus % spec.gpus_per_worker:
                raise LawBroken(
                    f"job {job_id!r}: expected 0 or {spec.min_gpus}..{spec.max_gpus} GPUs in multiples of "
                    f"{spec.gpus_per_worker}, got {gpus} (policy {by})"
                )
            if spec.gpu_sizes and gpus not in spec.gpu_sizes:
                sizes = ", ".join(map(str, spec.gpu_sizes))
                raise LawBroken(f"job {job_id!r}: expected 0 or a size of {sizes}, got {gpus} GPUs (policy {by})")
        if self.total_gpus > capacity_gpus:
            raise LawBroken(f"expected at most {capacity_gpus} GPUs in all, got {self.total_gpus} (policy {by})")
        return self

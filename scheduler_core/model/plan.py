"""What to do about the difference between world and target: actions, releases before claims.

Every action is idempotent and guarded: the enforcer applies it only to the object version it was decided on, and a
conflict simply means that the next round looks again.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TypeAlias

from scheduler_core.errors import LawBroken
from scheduler_core.model.job import Job, Role, Worker, WorkerPhase
from scheduler_core.model.observation import Observation


@dataclass(frozen=True, slots=True, kw_only=True)
class NewWorker:
    """A worker to be granted.

    Attributes:
        id: ``w<number>``, not used before in this segment.
        node: Name of its node.
        gpus: GPUs it gets.
        role: What it does.
    """

    id: str
    node: str
    gpus: int
    role: Role = Role.WORKER


@dataclass(frozen=True, slots=True, kw_only=True)
class Grant:
    """Answer a start gate: the segment begins with these workers."""

    job_id: str
    segment: int
    workers: tuple[NewWorker, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Grow:
    """Answer a grow gate: more workers for a running segment."""

    job_id: str
    segment: int
    workers: tuple[NewWorker, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Publish:
    """Write the next generation of the allocation document: train with exactly these workers."""

    job_id: str
    segment: int
    generation: int
    worker_ids: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Stop:
    """Write ``stop: checkpoint`` into the allocation document: end the segment at the next commit."""

    job_id: str
    segment: int
    generation: int
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Release:
    """Answer the open grow gate of a segment whose driver has ended: no more workers."""

    job_id: str
    segment: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Evict:
    """Delete the pod of a worker that cannot be used (it did not come up in time)."""

    job_id: str
    segment: int
    worker_id: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Abandon:
    """End a pod of the segment's own that does not come up: its driver, or a try of its checkpoint step.

    Without its driver the segment ends and another gate follows; a checkpoint step is tried again, a few times.
    """

    job_id: str
    segment: int
    role: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Refuse:
    """Fail the gate of a job whose request is not legal, with the text that submission would have given."""

    job_id: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Announce:
    """Show on a waiting job's gate where it stands in the queue."""

    job_id: str
    message: str


Action: TypeAlias = Grant | Grow | Publish | Stop | Release | Evict | Abandon | Refuse | Announce


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """Actions in the order in which they are to be enforced."""

    actions: tuple[Action, ...] = ()

    def check(self, observation: Observation) -> Plan:
        """The law: claims fit what is free now, ids are new, a document only adds or only drops, never below min.

        Args:
            observation: The world the plan was made for.

        Returns:
            Itself.

        Raises:
            LawBroken: Naming the job or node, what was expected and what was found.
        """
        if not self.actions:
            return self
        jobs, free = observation.jobs_by_id, observation.free_gpus()
        documents: Counter[str] = Counter()
        for action in self.actions:
            if isinstance(action, Grant | Grow):
                _check_claim(action, jobs[action.job_id])
                _take(free, action.workers)
            elif isinstance(action, Publish | Stop):
                documents[action.job_id] += 1
                _check_document(action, jobs[action.job_id], documents[action.job_id])
        return self


def _take(free: dict[str, int], workers: Iterable[NewWorker]) -> None:
    for worker in workers:
        free[worker.node] = free.get(worker.node, 0) - worker.gpus
        if free[worker.node] < 0:
            raise LawBroken(
                f"node {worker.node!r}: expected claims of free GPUs only, got {-free[worker.node]} too many"
            )


def _check_claim(action: Grant | Grow, job: Job) -> None:
    used = [] if isinstance(action, Grant) else [worker.id for worker in job.workers]
    ids = used + [worker.id for worker in action.workers]
    if not action.workers or len(set(ids)) != len(ids):
        raise LawBroken(f"job {job.id!r}: expected new workers with ids not used before, got {ids}")
    if {worker.gpus for worker in action.workers} != {job.spec.gpus_per_worker}:
        raise LawBroken(f"job {job.id!r}: expected workers of {job.spec.gpus_per_worker} GPUs, got {action.workers}")
    gpus = sum(worker.gpus for worker in action.workers)
    if isinstance(action, Grant) and not job.spec.min_gpus <= gpus <= job.spec.max_gpus:
        raise LawBroken(f"job {job.id!r}: expected {job.spec.min_gpus}..{job.spec.max_gpus} GPUs granted, got {gpus}")


def _check_document(action: Publish | Stop, job: Job, num_documents: int) -> None:
    if num_documents > 1 or action.generation != job.generation + 1 or job.stop_written:
        raise LawBroken(
            f"job {job.id!r}: expected one document of generation {job.generation + 1} and none after a stop, "
            f"got number {num_documents} of generation {action.generation}"
        )
    if isinstance(action, Stop):
        return
    old, new = set(job.published), set(action.worker_ids)
    if len(new) != len(action.worker_ids):
        raise LawBroken(f"job {job.id!r}: expected every worker at most once in the document, got {action.worker_ids}")
    if job.published and not (old < new or new < old):
        raise LawBroken(
            f"job {job.id!r}: expected workers only added or only dropped, got {sorted(old)} -> {sorted(new)}"
        )
    workers = {worker.id: worker for worker in job.workers}
    strange = [name for name in action.worker_ids if name not in workers or _is_cold(workers[name], old)]
    if strange:
        raise LawBroken(f"job {job.id!r}: expected only ready workers to be added, got {strange}")
    gpus = sum(workers[name].gpus for name in action.worker_ids)
    if gpus < job.spec.min_gpus:
        raise LawBroken(f"job {job.id!r}: expected at least {job.spec.min_gpus} GPUs in the document, got {gpus}")


def _is_cold(worker: Worker, old: set[str]) -> bool:
    return worker.id not in old and worker.phase is not WorkerPhase.READY

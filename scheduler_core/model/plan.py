"""What to do about the difference between world and target: actions, releases before claims.

Every action is idempotent and guarded: the enforcer applies it only to the object version it was decided on, and a
conflict simply means that the next round looks again.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from scheduler_core.model.job import Role


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
class Refuse:
    """Fail the gate of a job whose request is not legal, with the text that submission would have given."""

    job_id: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Announce:
    """Show on a waiting job's gate where it stands in the queue."""

    job_id: str
    message: str


Action: TypeAlias = Grant | Grow | Publish | Stop | Release | Evict | Refuse | Announce


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """Actions in the order in which they are to be enforced."""

    actions: tuple[Action, ...] = ()

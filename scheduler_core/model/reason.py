"""A reason for programs and people: a code that does not change between versions, and a sentence."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Code(StrEnum):
    """Why a job has what the last decision gave it.

    GRANTED: it has GPUs. WAITING: others come before it. UNSCHEDULABLE: the nodes could not hold it were they empty.
    NO_NODES: GPUs are free, and its workers fit on no nodes. QUEUE_LIMIT: its queue may have no more. BORROWS: its
    queue has more than its own, which others may want back. SIZE_KEPT: another size is not worth the change.
    RATE_LIMIT: running jobs may not be disturbed yet. LEFT_OUT, SUSPENDED, STALLED, PINNED: it stays as it stands.
    """

    GRANTED = "granted"
    WAITING = "waiting"
    UNSCHEDULABLE = "unschedulable"
    NO_NODES = "no-nodes"
    QUEUE_LIMIT = "queue-limit"
    BORROWS = "borrows"
    SIZE_KEPT = "size-kept"
    RATE_LIMIT = "rate-limit"
    LEFT_OUT = "left-out"
    SUSPENDED = "suspended"
    STALLED = "stalled"
    PINNED = "pinned"


@dataclass(frozen=True, slots=True, kw_only=True)
class Reason:
    """One reason.

    Attributes:
        code: What kind it is; programs may rely on it.
        text: The same for people, with what is particular to this job.
    """

    code: Code
    text: str

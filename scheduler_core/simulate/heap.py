"""What happens next: events in a total order of time, then priority, then the order in which they were planned."""

from __future__ import annotations

import heapq
from dataclasses import dataclass
from enum import IntEnum
from math import isfinite

from scheduler_core.errors import InvalidValue


class EventKind(IntEnum):
    """Kinds of event; at one moment lower numbers happen first: nodes, then what frees GPUs, then what asks for them.

    NODE: a node is lost or comes back. END: a job's work is done. STOPPED: a checkpoint is written. ACKNOWLEDGED: a job
    trains by its newest document. ARRIVAL: a job is submitted. WAKE: the scheduler looks though nothing happened.
    """

    NODE = 0
    END = 1
    STOPPED = 2
    ACKNOWLEDGED = 3
    ARRIVAL = 4
    WAKE = 5


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Event:
    """One event; compares in the order in which events happen.

    Attributes:
        time_s: When, seconds.
        kind: What, and its priority among events of one moment.
        sequence: How many events were planned before it.
        subject: Id of the job or name of the node.
        version: Version of the job for which it was planned; of an older one it is void.
    """

    time_s: float
    kind: EventKind
    sequence: int
    subject: str = ""
    version: int = 0


class EventHeap:
    """Planned events, the next one first."""

    def __init__(self) -> None:
        self._events: list[tuple[float, int, int, Event]] = []
        self._planned = 0

    def plan(self, time_s: float, kind: EventKind, subject: str = "", version: int = 0) -> None:
        """Plan an event.

        Raises:
            InvalidValue: The time is not a finite number.
        """
        if not isfinite(time_s):
            raise InvalidValue(f"event {kind.name} of {subject!r}: expected a finite time, got {time_s} s")
        event = Event(time_s=time_s, kind=kind, sequence=self._planned, subject=subject, version=version)
        heapq.heappush(self._events, (time_s, int(kind), event.sequence, event))
        self._planned += 1

    def next_s(self) -> float | None:
        """When the next event happens, None when none is planned."""
        return self._events[0][0] if self._events else None

    def pop(self) -> Event:
        """Take the next event."""
        return heapq.heappop(self._events)[-1]

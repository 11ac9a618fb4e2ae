"""What happens to a driver, as values in one queue, so that all that follows from it is decided in one thread."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from queue import Empty, SimpleQueue
from typing import Callable, Union

from voda_flows.runtime.driver_link import Heard, LinkDown, LinkUp
from voda_flows.runtime.launch import Member


@dataclass(frozen=True)
class WorldDecided:
    """The launcher decided a world; its ranks are about to enter it."""

    members: tuple[Member, ...]


@dataclass(frozen=True)
class Admit:
    """A rank at the door may join."""

    host: str
    slot: int
    environment: Mapping[str, str]


@dataclass(frozen=True)
class ResetWanted:
    """The running ranks are to leave their world."""


@dataclass(frozen=True)
class Resetting:
    """A rank has left its world."""


@dataclass(frozen=True)
class LauncherEnded:
    """The launcher makes no more worlds."""

    message: str


@dataclass(frozen=True)
class Terminated:
    """SIGTERM."""


Event = Union[LinkUp, LinkDown, Heard, WorldDecided, Admit, ResetWanted, Resetting, LauncherEnded, Terminated]


class EventQueue:
    """The queue; anything may put into it, a signal handler too."""

    def __init__(self) -> None:
        self._queue: SimpleQueue[Event] = SimpleQueue()  # the one queue whose put may interrupt a get

    def put(self, event: Event) -> None:
        """Add an event."""
        self._queue.put(event)

    def next(self, timeout_s: float) -> Event | None:
        """The next event, None when there is none within the time."""
        try:
            return self._queue.get(timeout=timeout_s)
        except Empty:
            return None


class LauncherEvents:
    """A launcher's ``Events`` as values in the queue.

    A decided world is passed on at once as well, in the launcher's thread, because what follows from it must reach
    the agents before the ranks do.
    """

    def __init__(self, queue: EventQueue, before_world: Callable[[Sequence[Member]], None]) -> None:
        self._queue = queue
        self._before_world = before_world

    def world(self, members: Sequence[Member]) -> None:
        """See ``launch.Events``."""
        self._before_world(members)
        self._queue.put(WorldDecided(tuple(members)))

    def admit(self, host: str, slot: int, environment: Mapping[str, str]) -> None:
        """See ``launch.Events``."""
        self._queue.put(Admit(host, slot, environment))

    def reset(self, why: str) -> None:  # noqa: ARG002 - for adapters that say more
        """See ``launch.Events``."""
        self._queue.put(ResetWanted())

    def resetting(self) -> None:
        """See ``launch.Events``."""
        self._queue.put(Resetting())

    def ended(self, message: str) -> None:
        """See ``launch.Events``."""
        self._queue.put(LauncherEnded(message))

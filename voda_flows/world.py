"""What the command line asks of the world it works in: objects, logs, what is used, and whether jobs go on there.

``voda_flows/local/world.py`` is this machine, ``voda_flows/kube/world.py`` a cluster; ``worlds.open_world`` gives the
one that is meant. Nothing is opened or asked before it is needed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Protocol

from scheduler_core.errors import VodaError
from voda_flows.objects import Object
from voda_flows.store import ObjectStore


class NotGiven(VodaError):
    """What this way into a world does not give; the message says which way does."""


#: Asks whoever listens at a pod's address for a path, within so many seconds; raises ``OSError`` where nobody answers.
Fetch = Callable[[str, str, float], bytes]


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """A line of a log.

    Attributes:
        text: Without its end.
        from_s: It is not older, seconds since the epoch.
        until_s: It is not younger.
    """

    text: str
    from_s: float
    until_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Used:
    """What processes use; None where nobody can tell.

    Attributes:
        cpu_percent: Of one core, over the last interval.
        memory_bytes: Held by them.
        processes: How many there are.
    """

    cpu_percent: float | None = None
    memory_bytes: int | None = None
    processes: int | None = None


class PodLog(Protocol):
    """The log of one pod, and how far it was read."""

    def read(self, *, last: bool) -> list[Line]:
        """Lines that came since.

        Args:
            last: Whether nothing more is to come: a line without an end is a line then.
        """
        ...


class Logs(Protocol):
    """The logs of a world's pods."""

    def gone(self, workflow: Object, there: Sequence[Object]) -> Sequence[Object]:
        """Pods of a Workflow that are gone while their logs are still there; documents with their metadata only.

        Args:
            workflow: The Workflow.
            there: The pods that are not gone.
        """
        ...

    def open(self, workflow: Object, pod: Object, *, tail: int | None, follow: bool) -> PodLog:
        """The log of a pod, from its beginning or its last lines on.

        Args:
            workflow: The Workflow that it belongs to.
            pod: The pod.
            tail: How many of the lines that are there at first are wanted, None for all.
            follow: Whether it is to be read on as it grows.
        """
        ...

    def is_over(self) -> bool:
        """Whether no pod of this world can write any more."""
        ...

    def close(self) -> None:
        """Nothing more is wanted of them."""
        ...


class Reading(Protocol):
    """What a meter saw at one moment."""

    def of(self, pods: Sequence[Object]) -> Used:
        """What these pods use together."""
        ...


class Meter(Protocol):
    """Measures again and again what pods use."""

    def read(self) -> Reading:
        """Look now; CPU is of the time since the last look."""
        ...


class World(Protocol):
    """A world with jobs."""

    @property
    def store(self) -> ObjectStore:
        """The objects of the namespace that is meant, or of all.

        Raises:
            NotFound: Nothing was ever started there.
        """
        ...

    @property
    def whole(self) -> ObjectStore:
        """The objects of all namespaces, for who holds what."""
        ...

    @property
    def home(self) -> Path | None:
        """Folder of local mode's state; None on a cluster."""
        ...

    @property
    def namespace(self) -> str:
        """Namespace of jobs where none is named."""
        ...

    @property
    def scheduler_namespace(self) -> str:
        """Namespace of the scheduler's own objects."""
        ...

    @property
    def busy_s(self) -> float:
        """Seconds for which whoever runs Workflows may still be busy with one that has ended."""
        ...

    def note(self) -> str:
        """What is to be said where jobs cannot go on, in a line; empty while they can, or where nobody can tell."""
        ...

    def now(self) -> datetime:
        """The moment by which limits of Workflows are judged."""
        ...

    def logs(self) -> Logs:
        """The logs of pods."""
        ...

    def meter(self) -> Meter:
        """Measures what pods use."""
        ...

    @property
    def fetch(self) -> Fetch | None:
        """How a driver is asked; None where it is reached at its own address."""
        ...

    def check(self, document: Object) -> None:
        """Ask the world whether it would take a document; nothing is created.

        Raises:
            InvalidValue: It would not.
            Forbidden: One may not create it there.
        """
        ...

    def remarks(self) -> Sequence[str]:
        """What could not be known on the way, and why; a line each, to be said in the end."""
        ...

    def close(self) -> None:
        """Let go of connections."""
        ...

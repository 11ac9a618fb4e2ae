"""The driver's workers and their lives: who is being started, who is ready, who trains, who is on the way out.

Pure bookkeeping: the loop tells what happened, and asks what follows. A *life* is one start of a worker's ranks under
a host id of its own (``w1``, after a crash ``w1.2``), because a launcher may never take a failed host back.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from voda_flows.runtime.document import Allocation, Worker
    from voda_flows.runtime.driver_link import AgentLink

# Phases of a life, in the order in which they are passed; any of them may go straight to GONE.
CONNECTING = "connecting"  # to the agent
STARTING = "starting"  # ranks set themselves up
READY = "ready"  # ranks stand at the door
RUNNING = "running"  # in a world, or just being let into one
DRAINING = "draining"  # left out of the world that was decided; its ranks end
GONE = "gone"

_UNRESOLVED = (CONNECTING, STARTING)
_WANTED = (READY, RUNNING)
_FAILED = "failed"  # given up by the driver
_WORD = {CONNECTING: "restarting", STARTING: "restarting", READY: "restarting"}


@dataclass
class Life:
    """One life of one worker; changes only through ``Roster``.

    Attributes:
        worker: The worker as the document names it.
        host: The life's host id.
        number: 1 for the first.
        after_crash: Whether it stands in for one that failed.
        link: Connection to its agent.
        phase: One of the phases above.
        ready: Slots whose ranks stand at the door.
        said_end: Slots whose ranks have said how they end.
        ended: Exit code by slot, of ranks that have ended.
        cause_s: Since when it is wanted: its document or the crash before it was seen then (seconds since the epoch).
        started_s: When its ranks were started (monotonic seconds).
        in_time: Whether they came to the door before their limit; nobody starts what hung once more.
        failure: How it failed, empty while it has not.
    """

    worker: Worker
    host: str
    number: int
    after_crash: bool = False
    link: AgentLink | None = None
    phase: str = CONNECTING
    ready: set[int] = field(default_factory=set)
    said_end: set[int] = field(default_factory=set)
    ended: dict[int, int] = field(default_factory=dict)
    cause_s: float = 0.0
    started_s: float = 0.0
    in_time: bool = True
    failure: str = ""

    @property
    def slots(self) -> range:
        """Its ranks' slots."""
        return range(self.worker.slots)

    @property
    def living(self) -> list[int]:
        """Slots whose ranks were started and have not ended."""
        return [slot for slot in self.slots if slot not in self.ended] if self.phase != CONNECTING else []


class Roster:
    """All workers of the segment.

    Invariant: at most one life per worker is not GONE or DRAINING, and no host id is used twice.
    """

    def __init__(self, restart_limit: int) -> None:
        self._restart_limit = restart_limit
        self._lives: dict[str, Life] = {}  # the latest of each worker id
        self._leaving: list[Life] = []  # of workers that have a newer life or none
        self._numbers: dict[str, int] = {}
        self.restarts: dict[str, int] = {}
        self._dropped: set[str] = set()

    def __iter__(self) -> Iterator[Life]:
        """The latest life of each worker, in order of their first document."""
        return iter(list(self._lives.values()))

    def begin(self, worker: Worker, now_s: float, *, after_crash: bool = False) -> Life:
        """A new life of a worker."""
        old = self._lives.get(worker.id)
        if old is not None and old.phase != GONE:
            self._leaving.append(old)
        number = self._numbers[worker.id] = self._numbers.get(worker.id, 0) + 1
        host = worker.id if number == 1 else f"{worker.id}.{number}"
        self._dropped.discard(worker.id)
        self.restarts.setdefault(worker.id, 0)
        life = self._lives[worker.id] = Life(
            worker=worker, host=host, number=number, after_crash=after_crash, cause_s=now_s
        )
        return life

    def may_restart(self, life: Life) -> bool:
        """Count a failure of a life; whether its worker gets another one."""
        if self._lives.get(life.worker.id) is not life or life.worker.id in self._dropped:
            return False
        self.restarts[life.worker.id] += 1
        return self.restarts[life.worker.id] <= self._restart_limit

    def drop(self, worker_id: str) -> Life | None:
        """The worker is not wanted any more; its life, which stays until it is out of the world."""
        self._dropped.add(worker_id)
        return self._lives.get(worker_id)

    def by_host(self, host: str) -> Life | None:
        """The life with a host id, unless it is over."""
        for life in (*self._lives.values(), *self._leaving):
            if life.host == host and life.phase != GONE:
                return life
        return None

    def on_link(self, link: AgentLink) -> list[Life]:
        """The lives that hang on a connection."""
        return [life for life in (*self._lives.values(), *self._leaving) if life.link is link and life.phase != GONE]

    def unresolved(self) -> list[Life]:
        """Wanted lives that are not at the door yet."""
        return [life for life in self if life.phase in _UNRESOLVED and life.worker.id not in self._dropped]

    def wanted(self) -> dict[str, int]:
        """Slots by host of the lives that the next world is made of."""
        return {
            life.host: life.worker.slots
            for life in self
            if life.phase in _WANTED and not life.ended and life.worker.id not in self._dropped
        }

    def late(self, before_s: float) -> list[Life]:
        """Lives whose ranks were started before a moment (monotonic seconds) and are not all at the door."""
        lives = (*self._lives.values(), *self._leaving)
        return [life for life in lives if life.phase == STARTING and life.in_time and life.started_s < before_s]

    def failures(self) -> list[str]:
        """How the workers that were given up failed."""
        return [life.failure for life in self if life.phase == GONE and life.failure]

    def most_restarts(self) -> int:
        """Failures of the worker that failed most often."""
        return max(self.restarts.values(), default=0)

    def why_stop(self, allocation: Allocation, *, begun: bool) -> str | None:
        """Why a document is obeyed by a checkpoint and an end; None when it can be followed in place.

        Args:
            allocation: the document.
            begun: whether there was a world already.
        """
        if allocation.stop:
            return "the document says so"
        if len(allocation.workers) < allocation.min_workers:
            return "the document names fewer workers than the job's least"
        named = {worker.id for worker in allocation.workers}
        if begun and not any(life.phase == RUNNING and life.worker.id in named for life in self):
            return "no rank would stay that has the state"
        return None

    def num_standing(self) -> int:
        """Workers that train or may still come to it."""
        return sum(life.phase not in (DRAINING, GONE) and life.worker.id not in self._dropped for life in self)

    def leave_out(self, hosts: set[str]) -> list[Life]:
        """A world without some hosts was decided: lives that were in the last one and are not in this now drain.

        One with a crashed rank does not drain: its other ranks are being ended, and then its next life begins.
        """
        left_out = [life for life in (*self._lives.values(), *self._leaving)
                    if life.phase == RUNNING and life.host not in hosts and not any(life.ended.values())]  # fmt: skip
        for life in left_out:
            life.phase = DRAINING
        return left_out

    def arrivals(self, allocation: Allocation) -> list[Worker]:
        """Workers of a document that have to begin: new ones, dropped ones, and those whose agent is another now."""
        return [worker for worker in allocation.workers if self._is_arrival(worker)]

    def _is_arrival(self, worker: Worker) -> bool:
        life = self._lives.get(worker.id)
        if life is None or worker.id in self._dropped:
            return True
        return life.phase == GONE and life.worker != worker

    def departures(self, allocation: Allocation) -> list[str]:
        """Ids that a document does not name any more."""
        named = {worker.id for worker in allocation.workers}
        return [life.worker.id for life in self if life.worker.id not in named | self._dropped]

    def describe(self) -> dict[str, dict[str, object]]:
        """For the status: state and restarts of every worker that was ever named; why, of one that was given up."""
        return {life.worker.id: self._describe(life) for life in self}

    def _describe(self, life: Life) -> dict[str, object]:
        said: dict[str, object] = {"state": self._word(life), "restarts": self.restarts[life.worker.id]}
        return {**said, "why": life.failure} if said["state"] == _FAILED else said

    def _word(self, life: Life) -> str:
        if life.phase == GONE and life.failure and life.worker.id not in self._dropped:
            return _FAILED
        if life.worker.id in self._dropped and life.phase != GONE:
            return "draining"
        return _WORD.get(life.phase, life.phase)

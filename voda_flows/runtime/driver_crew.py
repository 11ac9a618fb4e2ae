"""The driver's hands: connects to agents, has ranks started, spoken to and ended.

What is to be done is decided in ``driver_loop``; who is in which state is written in ``driver_roster``.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Callable

from voda_flows.runtime.driver_link import AgentLink, LinkTerms
from voda_flows.runtime.driver_roster import DRAINING, GONE, RUNNING, STARTING, Life, Roster
from voda_flows.runtime.log import open_log

if TYPE_CHECKING:
    from voda_flows.runtime.document import Worker
    from voda_flows.runtime.lines import Message

LOG = open_log("driver")


class Crew:
    """The workers of a segment, with the connections to their agents."""

    def __init__(
        self, roster: Roster, terms: LinkTerms, command: str, environment: Callable[[str, int], Mapping[str, str]]
    ) -> None:
        self._roster, self._terms = roster, terms
        self._command, self._environment = command, environment

    def begin(self, worker: Worker, cause_s: float) -> None:
        """Begin a life of a worker that a document names, over a connection of its own."""
        self._connect(self._roster.begin(worker, cause_s))

    def begin_again(self, failed: Life) -> None:
        """Begin the next life of a worker, over the connection of the failed one while that is good."""
        life = self._roster.begin(failed.worker, time.time(), after_crash=True)
        if failed.link is not None and failed.link.alive:
            life.link = failed.link
            self.start_ranks(life)
        else:
            self._connect(life)

    def _connect(self, life: Life) -> None:
        life.link = AgentLink(life.worker, self._terms)
        life.link.open()

    def start_ranks(self, life: Life) -> None:
        """Have the ranks of a life started; they come to the door by themselves."""
        life.phase, life.started_s = STARTING, time.monotonic()
        for slot in life.slots:
            environment = dict(self._environment(life.host, slot))
            order = {"type": "run", "host": life.host, "slot": slot, "command": self._command}
            self.send(life, {**order, "environment": environment})

    def drop(self, worker_id: str) -> None:
        """Want a worker no more: at once when it is in no world, else by a world without it."""
        life = self._roster.drop(worker_id)
        if life is not None and life.phase not in (RUNNING, DRAINING, GONE):
            self.dismiss(life)

    def dismiss(self, life: Life) -> None:
        """Let the agent of a life go, with what ranks it has left."""
        life.phase = GONE
        self.send(life, {"type": "bye"})
        if life.link is not None:
            life.link.close()

    def never_reached(self, life: Life, reason: str) -> None:
        """The agent of a life does not answer: a newcomer has failed, one that stands in is as gone as its pod."""
        if not life.after_crash:
            life.failure = f"{life.host}'s agent could not be reached ({reason})"
        self.dismiss(life)

    def end_late(self, now_s: float, limit_s: float) -> None:
        """End the lives whose ranks are not at the door so long after their start (seconds); none follows them.

        Whoever waits for them, a first world or a change, goes on without.
        """
        for life in self._roster.late(now_s - limit_s):
            life.failure = f"{life.host} did not come to the door within {limit_s:g} s (VODA_SETUP_TIMEOUT)"
            LOG.warning("%s: its ranks are ended", life.failure)
            life.in_time = False
            self.send(life, {"type": "kill", "host": life.host})

    def over(self, life: Life) -> None:
        """All ranks of a life have ended: begin the worker's next one, or let its agent go.

        A life that ended well in its world stays as it is: the segment is about to end.
        """
        if life.phase == DRAINING:
            LOG.info("drained host=%s", life.host)
            self.dismiss(life)
        elif not any(life.ended.values()):
            return
        elif self._roster.may_restart(life) and life.in_time:
            life.phase = GONE
            self.begin_again(life)
        else:
            LOG.error("worker given up id=%s restarts=%d because=%s",
                      life.worker.id, self._roster.restarts[life.worker.id], life.failure)  # fmt: skip
            self.dismiss(life)

    def send(self, life: Life, message: Message) -> None:
        """Send an order to the agent of a life."""
        if life.link is not None:
            life.link.send(message)

    def tell(self, life: Life, message: Message) -> None:
        """Tell every rank of a life."""
        for slot in life.living:
            self.send(life, {"type": "tell", "host": life.host, "slot": slot, "message": message})

    def tell_running(self, message: Message) -> None:
        """Tell every rank that is in a world."""
        for life in self._roster:
            if life.phase == RUNNING:
                self.tell(life, message)

    def say_goodbye(self, limit_s: float) -> None:
        """End all agents, and wait until they have ended their side, each for so many seconds at most."""
        links = [life.link for life in self._roster if life.link is not None]
        for life in self._roster:
            self.dismiss(life)
        for link in links:
            link.wait_closed(limit_s)

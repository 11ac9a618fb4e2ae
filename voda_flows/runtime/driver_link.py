"""The driver's connection to one worker's agent: a thread that connects, proves, listens; a lock that orders sends.

In: messages to send. Out: events, put into the driver's queue. A connection that breaks is told once; the agent has
then ended the ranks that were started over it, so a new connection begins with none.
"""

from __future__ import annotations

import contextlib
import socket
import threading
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Callable, Union

from voda_flows.runtime.channel import SEALED_LINE_BYTES, Channel, DriverHandshake, Party
from voda_flows.runtime.environment import AGENT_PORT
from voda_flows.runtime.errors import RuntimeFault
from voda_flows.runtime.lines import LineBuffer, Message

if TYPE_CHECKING:
    from voda_flows.runtime.document import Worker

CONNECT_RETRY_S = 0.1
SEND_TIMEOUT_S = 5.0
_RECEIVE_BYTES = 65_536


@dataclass(frozen=True)
class LinkUp:
    """The agent of a worker has proved itself and takes orders."""

    link: AgentLink


@dataclass(frozen=True)
class LinkDown:
    """The connection is over, or never came to be; ``reason`` says why."""

    link: AgentLink
    reason: str


@dataclass(frozen=True)
class Heard:
    """The agent said something."""

    link: AgentLink
    message: Message


LinkEvent = Union[LinkUp, LinkDown, Heard]


@dataclass(frozen=True)
class LinkTerms:
    """What all links of a driver share.

    Attributes:
        key: The job's key.
        party: Job, segment and driver.
        timeout_s: How long to try to connect, and how long silence is taken for life.
        tell: Takes the events, from the link's thread.
    """

    key: bytes
    party: Party
    timeout_s: float
    tell: Callable[[LinkEvent], None]


class AgentLink:
    """One conversation with one agent."""

    def __init__(self, worker: Worker, terms: LinkTerms) -> None:
        self.worker = worker
        self._terms = terms
        self._sending = threading.Lock()
        self._channel: Channel | None = None
        self._connection: socket.socket | None = None
        self._closed = threading.Event()
        self._thread = threading.Thread(target=self._live, name=f"link-{worker.id}", daemon=True)

    def open(self) -> None:
        """Begin to connect; ``LinkUp`` or ``LinkDown`` follows."""
        self._thread.start()

    def send(self, message: Message) -> None:
        """Send, or do nothing when the connection is broken: its end is told as ``LinkDown``."""
        with self._sending:
            if self._channel is None or self._connection is None:
                return
            line = self._channel.seal(message)
            with contextlib.suppress(OSError):
                self._connection.sendall(line)

    def close(self) -> None:
        """End the connection; what was sent before still arrives."""
        self._closed.set()
        connection = self._connection
        if connection is not None:
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_WR)

    @property
    def alive(self) -> bool:
        """Whether messages may still be sent."""
        return self._thread.is_alive() and not self._closed.is_set()

    def wait_closed(self, timeout_s: float) -> None:
        """Wait until the agent has ended its side too."""
        self._thread.join(timeout_s)

    def _live(self) -> None:
        reason = "closed by this driver"
        try:
            self._connection = self._connect()
            lines = LineBuffer(SEALED_LINE_BYTES)
            with self._sending:
                self._channel, waiting = self._prove(self._connection, lines)
            self._terms.tell(LinkUp(self))
            self._listen(self._connection, lines, waiting)
        except (OSError, RuntimeFault) as fault:
            reason = f"{type(fault).__name__}: {fault}"
        finally:
            if self._connection is not None:
                self._connection.close()
        self._terms.tell(LinkDown(self, reason))

    def _connect(self) -> socket.socket:
        """Connect; an agent that is only just coming up is tried again until the time is over."""
        deadline_s = time.monotonic() + self._terms.timeout_s
        while True:
            try:
                connection = socket.create_connection((self.worker.address, AGENT_PORT), self._terms.timeout_s)
            except OSError:
                if time.monotonic() > deadline_s or self._closed.wait(CONNECT_RETRY_S):
                    raise
            else:
                connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                return connection

    def _prove(self, connection: socket.socket, lines: LineBuffer) -> tuple[Channel, list[bytes]]:
        handshake = DriverHandshake(self._terms.key, self._terms.party, worker=self.worker.id)
        waiting: list[bytes] = []
        connection.sendall(handshake.answer(_next_line(connection, lines, waiting)))
        return handshake.finish(_next_line(connection, lines, waiting)), waiting

    def _listen(self, connection: socket.socket, lines: LineBuffer, waiting: list[bytes]) -> None:
        """Take messages until the end; give and ask for signs of life."""
        channel = self._channel
        assert channel is not None, "the handshake is over"
        quiet_s = self._terms.timeout_s / 3
        connection.settimeout(quiet_s)
        heard_s = pinged_s = time.monotonic()
        while True:
            for line in waiting:
                self._terms.tell(Heard(self, channel.open(line)))
            waiting = []
            try:
                received = connection.recv(_RECEIVE_BYTES)
            except socket.timeout:
                if time.monotonic() - heard_s > self._terms.timeout_s:
                    raise ConnectionError(f"silent for {self._terms.timeout_s:g} s") from None
            else:
                if not received:
                    return
                heard_s = time.monotonic()
                waiting = lines.feed(received)
            # However much the agent says: it must hear from us too, or takes us for dead.
            if time.monotonic() - pinged_s >= quiet_s:
                self.send({"type": "ping"})
                pinged_s = time.monotonic()


def _next_line(connection: socket.socket, lines: LineBuffer, waiting: list[bytes]) -> bytes:
    while not waiting:
        received = connection.recv(_RECEIVE_BYTES)
        if not received:
            raise ConnectionError("the agent ended the connection instead of proving itself")
        waiting.extend(lines.feed(received))
    return waiting.pop(0)

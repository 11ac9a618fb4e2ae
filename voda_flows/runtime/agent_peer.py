"""A TCP connection to the agent: first a stranger that must prove itself, then perhaps the driver."""

from __future__ import annotations

import contextlib
import socket
from typing import TYPE_CHECKING

from voda_flows.runtime.channel import SEALED_LINE_BYTES, AgentHandshake, Channel, Party
from voda_flows.runtime.lines import LineBuffer, Message

if TYPE_CHECKING:
    from voda_flows.runtime.environment import AgentEnvironment

SEND_TIMEOUT_S = 5.0
_RECEIVE_BYTES = 65_536


class Peer:
    """One connection and how far it has come.

    Attributes:
        connection: Its socket.
        address: Where it comes from.
        heard_s: When something came from it last (monotonic seconds).
        party: Whose it is once it has proved itself, else None.
    """

    def __init__(self, connection: socket.socket, address: str, now_s: float) -> None:
        connection.settimeout(SEND_TIMEOUT_S)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.connection = connection
        self.address = address
        self.heard_s = now_s
        self.party: Party | None = None
        self._lines = LineBuffer(SEALED_LINE_BYTES)
        self._handshake: AgentHandshake | None = None
        self._channel: Channel | None = None

    def greet(self, environment: AgentEnvironment, key: bytes) -> None:
        """Say hello; the peer has to answer with its proof."""
        self._handshake = AgentHandshake(
            key, job=environment.job, segment=environment.segment, worker=environment.worker
        )
        self.connection.sendall(self._handshake.hello())

    def receive(self, now_s: float) -> list[bytes] | None:
        """The lines that have come; None at the end of the connection.

        Raises:
            BadMessage: A line without end.
        """
        try:
            received = self.connection.recv(_RECEIVE_BYTES)
        except OSError:
            return None
        if not received:
            return None
        self.heard_s = now_s
        return self._lines.feed(received)

    def prove(self, line: bytes) -> tuple[Party, bytes]:
        """Check the proof of a stranger; who it is and the answer, which is sent only when it is let in.

        Raises:
            Refused: It does not hold.
        """
        assert self._handshake is not None, "a peer is greeted before it is heard"
        self.party, answer, self._channel = self._handshake.accept(line)
        return self.party, answer

    def open(self, line: bytes) -> Message:
        """The message of a line from the driver.

        Raises:
            Refused, BadMessage: It is not authentic.
        """
        assert self._channel is not None, "only a peer that has proved itself is heard"
        return self._channel.open(line)

    def send(self, message: Message) -> bool:
        """Send a message; False when the connection is broken (its end will be read next)."""
        assert self._channel is not None, "only a peer that has proved itself is spoken to"
        try:
            self.connection.sendall(self._channel.seal(message))
        except OSError:
            return False
        return True

    def close(self) -> None:
        """End the connection."""
        with contextlib.suppress(OSError):
            self.connection.close()

"""What the agent waits for: connections, each with what is to be done when something comes from it."""

from __future__ import annotations

import selectors
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import socket
    from typing import Callable


class Watch:
    """The connections that are watched."""

    def __init__(self) -> None:
        self._selector = selectors.DefaultSelector()

    def fileno(self) -> int:
        """Its own descriptor, which a fork is not to keep."""
        return self._selector.fileno()

    def begin(self, connection: socket.socket, act: Callable[[], None]) -> None:
        """Have ``act`` called whenever something comes from this connection, its end included."""
        self._selector.register(connection, selectors.EVENT_READ, act)

    def end(self, connection: socket.socket) -> None:
        """Watch it no longer; before it is closed, or never after. Nothing happens where it is not watched."""
        if connection.fileno() >= 0 and connection in self._selector.get_map():
            self._selector.unregister(connection)

    def turn(self, limit_s: float) -> None:
        """Wait for so many seconds at most, and do what is to be done.

        One that ends another's watch, whose turn would be next, has that one left out: it is closed by then, and its
        descriptor may be a new connection's.
        """
        for ready, _ in self._selector.select(limit_s):
            if ready in self._selector.get_map().values():
                ready.data()

"""The rank's end of the socket to its agent (docs/contracts.md, section 12).

Out go what the driver wants to know (`ready`, `joined`, `progress`, `row`, ...), in come `join`, `reset` and `stop`.
A reading thread turns the latter into flags that the training loop looks at between steps. When the agent is gone
the rank ends at once: nobody could stop it any more, and its peers wait for it in a collective.

Without `VODA_RANK_FD` nothing is sent and only SIGTERM can stop the rank.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import threading
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

FD_VARIABLE = "VODA_RANK_FD"
EXIT_ORPHAN = 71  # EX_OSERR of sysexits.h: the agent has gone


class Link:
    """Messages to and from the agent.

    Attributes:
        stop: set when the job is to checkpoint and end.
        reset: set when the world is to be left for a new one; cleared by who leaves it.
        on_broken: called, in the reading thread, when another rank is gone.
    """

    def __init__(self, connection: socket.socket | None = None) -> None:
        self.stop = threading.Event()
        self.reset = threading.Event()
        self.on_broken: Callable[[], None] = lambda: None
        self._called = threading.Event()  # by `join`, or by a stop that comes before it
        self._join_given = False
        self._closing = False
        self._connection = connection
        self._sending = threading.Lock()
        if connection is not None:
            threading.Thread(target=self._listen, args=(connection,), name="voda-link", daemon=True).start()

    def send(self, kind: str, **fields: object) -> None:
        """Tell the agent; nothing happens when there is none."""
        if self._connection is None:
            return
        line = json.dumps({"type": kind, **fields}, separators=(",", ":"), allow_nan=False) + "\n"
        with self._sending:
            self._connection.sendall(line.encode())

    def await_join(self) -> bool:
        """Say that this rank has set itself up and wait until it may join the world.

        Returns:
            False when it was stopped instead.
        """
        if self._connection is not None:
            self.send("ready")
            self._called.wait()
        return self._connection is None or self._join_given

    def ask_to_stop(self) -> None:
        """Set `stop`; a rank that still waits to join is not going to."""
        self.stop.set()
        self._called.set()

    def stop_on_sigterm(self) -> None:
        """Treat SIGTERM as `stop`; only the main thread may ask for it, others leave the signal alone."""
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGTERM, lambda _number, _frame: self.ask_to_stop())

    def close(self) -> None:
        """Say no more; the agent's end of the socket sees the end of the stream."""
        self._closing = True
        if self._connection is not None:
            with contextlib.suppress(OSError):  # the agent may have closed first
                self._connection.shutdown(socket.SHUT_RDWR)  # wakes the reading thread, which `close` would not

    def _listen(self, connection: socket.socket) -> None:
        with connection.makefile("r", encoding="utf-8") as lines:
            try:
                for line in lines:
                    self._take(json.loads(line))
            except (OSError, ValueError):
                pass  # a broken stream is the end of it, as below
        if not self._closing:
            os._exit(EXIT_ORPHAN)  # from a thread: no clean-up may wait for peers that wait for us

    def _take(self, message: Mapping[str, object]) -> None:
        kind = message.get("type")
        if kind == "join":
            environment = message.get("environment")
            if isinstance(environment, dict):
                os.environ.update({str(name): str(value) for name, value in environment.items()})
            self._join_given = True
            self._called.set()
        elif kind == "stop":
            self.ask_to_stop()
        elif kind == "reset":
            self.reset.set()
        elif kind == "broken":
            self.on_broken()


def open_link() -> Link:
    """The link of this process; its socket is kept from any process it starts."""
    number = os.environ.pop(FD_VARIABLE, None)
    if number is None:
        return Link()
    connection = socket.socket(fileno=int(number))
    connection.set_inheritable(False)
    return Link(connection)

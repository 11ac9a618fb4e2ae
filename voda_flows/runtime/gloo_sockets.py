"""The TCP connections that Gloo made for the present world, so that they can be cut.

When a rank dies, those that were just receiving from it fail at once. They leave their world, but Horovod keeps what
belonged to it open, so ranks that wait for *them* would notice only after Gloo's time limit (30 s). Cutting a failed
world's connections passes the news on in a millisecond.
"""

from __future__ import annotations

import contextlib
import os
import socket
from collections.abc import Iterator
from pathlib import Path

_FOLDER = Path("/proc/self/fd")
_FAMILIES = (socket.AF_INET, socket.AF_INET6)


class GlooSockets:
    """Sockets that were opened while a world was entered."""

    def __init__(self) -> None:
        self._before: frozenset[str] = frozenset()
        self._mine: tuple[tuple[int, str], ...] = ()

    @contextlib.contextmanager
    def opened_here(self) -> Iterator[None]:
        """Around the entering of a world."""
        self._mine = ()
        self._before = frozenset(name for _, name in _sockets())
        yield
        self._mine = tuple(pair for pair in _sockets() if pair[1] not in self._before)

    def cut(self) -> None:
        """End the connections of the world that was entered; their descriptors stay Gloo's to close."""
        mine, self._mine = self._mine, ()
        for descriptor, name in mine:
            if _name(descriptor) == name:
                _shut_down(descriptor)


def _sockets() -> list[tuple[int, str]]:
    """Descriptors of this process that are sockets, with the kernel's name for each."""
    found = ((int(entry.name), _name(int(entry.name))) for entry in _FOLDER.iterdir())
    return [(descriptor, name) for descriptor, name in found if name.startswith("socket:")]


def _name(descriptor: int) -> str:
    try:
        return os.readlink(_FOLDER / str(descriptor))  # noqa: PTH115 - no path, a name such as socket:[4711]
    except OSError:
        return ""  # closed meanwhile


def _shut_down(descriptor: int) -> None:
    with contextlib.suppress(OSError):  # closed meanwhile, or not connected
        copy = socket.socket(fileno=os.dup(descriptor))
        with copy:
            if copy.family in _FAMILIES and copy.type == socket.SOCK_STREAM:
                copy.shutdown(socket.SHUT_RDWR)

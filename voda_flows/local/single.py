"""One ``up`` or ``down`` of a home at a time: a lock that goes with its holder, however that ends."""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from scheduler_core.errors import Unreachable
from voda_flows.local.trouble import trouble

LOCK = "up.lock"
LIMIT_S = 120.0
"""Longer than the longest ``down`` with its default drain."""
LOOK_S = 0.05


@contextmanager
def only_one(home: Path, *, must_lock: bool = True) -> Iterator[None]:
    """Wait until no other ``up`` or ``down`` of this home is at work, and keep others waiting.

    Args:
        home: Folder of the state; made where it is not there.
        must_lock: Whether a home in which no lock can be made (read-only, full) is an error, or is gone on with.

    Raises:
        Unreachable: The other one does not come to its end.
        VodaError: The home cannot be written.
    """
    path, lock, end_s = home / LOCK, None, time.monotonic() + LIMIT_S
    try:
        with trouble(path):
            home.mkdir(parents=True, exist_ok=True)
            while (lock := _try(path)) is None and time.monotonic() < end_s:
                time.sleep(LOOK_S)
    except Exception:
        if must_lock:
            raise
    else:
        if lock is None:
            raise Unreachable(
                f"{path}: expected another 'voda up' or 'voda down' to end within {LIMIT_S:.0f} s, it has not\n"
                f"see who it is with 'fuser {path}', end it and try again"
            )
    try:
        yield
    finally:
        if lock is not None:
            os.close(lock)


def _try(path: Path) -> int | None:
    """The open lock, or none where another has it (or has just purged the file away)."""
    lock = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if os.fstat(lock).st_ino == path.stat().st_ino:
            return lock
    except (BlockingIOError, FileNotFoundError):
        pass
    os.close(lock)
    return None

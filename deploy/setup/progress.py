"""What a long set-up step tells its user: one line while it runs, one line with its time when it ends.

Imported by the set-up steps of ``make setup``; stdlib only, because it runs before anything is installed.
"""

from __future__ import annotations

import contextlib
import fcntl
import sys
import threading
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from typing_extensions import Self

REDRAW_S = 0.5
PLAIN_LINE_EVERY_S = 20.0
INTERRUPTED = 130


class Progress:
    """A line on stderr: redrawn on a terminal, repeated now and then in a log."""

    def __init__(self, what: str) -> None:
        self._what = what
        self._detail = ""
        self._start_s = time.monotonic()
        self._ended = threading.Event()
        self._terminal = sys.stderr.isatty()
        self._thread = threading.Thread(target=self._draw_until_ended, daemon=True)

    def __enter__(self) -> Self:
        self._write(f"{self._what} ...", ended=not self._terminal)
        self._thread.start()
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        self._ended.set()
        self._thread.join()
        outcome = self._detail if kind is None else "not finished"
        self._write(f"{self._what}: {outcome or 'done'} ({self.elapsed_s:.0f} s)", ended=True)

    @property
    def elapsed_s(self) -> float:
        """Seconds since the step began."""
        return time.monotonic() - self._start_s

    def detail(self, text: str) -> None:
        """Say what the step is doing now; the last text is the step's result."""
        self._detail = text

    def _draw_until_ended(self) -> None:
        every_s = REDRAW_S if self._terminal else PLAIN_LINE_EVERY_S
        while not self._ended.wait(every_s):
            self._write(f"{self._what}: {self._detail} ({self.elapsed_s:.0f} s)", ended=not self._terminal)

    def _write(self, text: str, *, ended: bool) -> None:
        start = "\r\033[K" if self._terminal else ""
        sys.stderr.write(f"{start}{text}" + ("\n" if ended else ""))
        sys.stderr.flush()


@contextlib.contextmanager
def one_at_a_time(lock_path: Path, what: str) -> Iterator[None]:
    """Hold a lock on a file; a second process waits, and is told for what. The system frees it if we are killed."""
    lock_path.parent.mkdir(parents=True, exist_ok=True)
    with lock_path.open("a", encoding="ascii") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            with Progress(f"waiting: another process is at {what}"):
                fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def interrupted() -> int:
    """What a set-up step says when its user stops it; returns the exit code."""
    sys.stderr.write("stopped; what is done already is kept, the same command goes on from there\n")
    return INTERRUPTED

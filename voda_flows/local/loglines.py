"""Lines of one log file as it grows: each once, whole, with the time that it is known to be from.

Pods write without times; what begins with a stamp (a driver, an agent, Python's logging) is known to the moment, the
lines between two stamps lie between their times, and none is younger than the file.
"""

from __future__ import annotations

import io
import os
import re
from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path
from typing import BinaryIO, Final

from voda_flows.world import Line

_STAMP: Final = re.compile(
    r"\[?(?:(\d{4}-\d\d-\d\d)[T ])?([01]\d|2[0-3]):([0-5]\d):([0-5]\d)(?:[.,](\d{1,6}))?(Z|[+-]\d\d:?\d\d)?"
)
_HALF_A_DAY: Final = timedelta(hours=12)
_CLOCKS_S: Final = 1.0
_BLOCK: Final = 65536


class LogFile:
    """A log file and how far it was read; once open it is read to its end, also when somebody takes it away.

    Args:
        find: Says where the file is now, which need not exist yet.
        born_s: When its pod was made, seconds since the epoch.
        tail: How many of the lines that are there at first are wanted, None for all.
    """

    def __init__(self, find: Callable[[], Path], born_s: float, tail: int | None = None) -> None:
        self._find = find
        self._tail = tail
        self._stream: BinaryIO | None = None
        self._rest = b""
        self._time_s = born_s

    @property
    def is_there(self) -> bool:
        """Whether the file was found."""
        return self._stream is not None

    def read(self, *, last: bool) -> list[Line]:
        """Lines that were written since.

        Args:
            last: Whether nothing more is to come: a line without an end is a line then.
        """
        stream = self._open()
        if stream is None:
            return []
        changed_s, size = _status(stream)
        if size < stream.tell():  # somebody emptied it
            stream.seek(0)
            self._rest = b""
        *whole, self._rest = (self._rest + stream.read()).split(b"\n")
        if last and self._rest:
            whole, self._rest = [*whole, self._rest], b""
        return self._timed([line.decode(errors="replace").rstrip("\r") for line in whole], changed_s)

    def close(self) -> None:
        """Nothing more is wanted of it."""
        if self._stream is not None:
            self._stream.close()

    def _open(self) -> BinaryIO | None:
        """The file, at the first line that is wanted when it was not open yet."""
        if self._stream is None:
            try:
                self._stream = self._find().open("rb")
            except OSError:
                return None
            if self._tail is not None:
                self._stream.seek(start_of_last(self._stream, self._tail))
        return self._stream

    def _timed(self, texts: list[str], changed_s: float) -> list[Line]:
        """Lines with their times: a stamp holds until the next one."""
        starts: list[tuple[float, bool]] = []
        for text in texts:
            stamp_s = stamp(text, self._time_s)
            # A log goes forward and is no younger than its file: other digits are a program's own, as `00:01:30 left`.
            known = stamp_s is not None and self._time_s - _CLOCKS_S <= stamp_s <= changed_s + _CLOCKS_S
            self._time_s = max(self._time_s, stamp_s) if known and stamp_s is not None else self._time_s
            starts.append((self._time_s, known))
        lines, until_s = [], changed_s
        for text, (from_s, is_stamped) in zip(reversed(texts), reversed(starts), strict=True):
            lines.append(Line(text=text, from_s=from_s, until_s=from_s if is_stamped else max(from_s, until_s)))
            until_s = from_s if is_stamped else until_s
        return lines[::-1]


def stamp(text: str, after_s: float) -> float | None:
    """The time that a line begins with.

    Args:
        text: The line.
        after_s: When the line before it was written: a time of day is taken to be of that day, or of the next.

    Returns:
        Seconds since the epoch, None for a line that begins otherwise.

    >>> stamp("1970-01-01T00:01:00.5Z driver began", 0.0)
    60.5
    >>> stamp("epoch 3", 0.0) is None
    True
    """
    found = _STAMP.match(text)
    if found is None:
        return None
    day, hour, minute, second, fraction, zone = found.groups()
    clock = f"{hour}:{minute}:{second}.{(fraction or '0').ljust(6, '0')}"
    before = datetime.fromtimestamp(after_s).astimezone()
    try:
        moment = datetime.fromisoformat(f"{day or before.date().isoformat()}T{clock}{zone or ''}").astimezone()
    except ValueError:  # digits that look like a date and are none
        return None
    if day is None and moment < before - _HALF_A_DAY:
        moment += timedelta(days=1)
    return moment.timestamp()


def start_of_last(stream: BinaryIO, lines: int) -> int:
    r"""Where the last lines of a file begin; one without an end counts.

    >>> start_of_last(io.BytesIO(b"a\nb\nc"), 2)
    2
    """
    place = stream.seek(0, io.SEEK_END)
    if lines == 0:
        return place
    wanted = lines + (_at(stream, place - 1) == b"\n")
    while place > 0:
        start = max(0, place - _BLOCK)
        stream.seek(start)
        block = stream.read(place - start)
        if block.count(b"\n") >= wanted:
            for _ in range(wanted):
                block = block[: block.rindex(b"\n")]
            return start + len(block) + 1
        wanted, place = wanted - block.count(b"\n"), start
    return 0


def _status(stream: BinaryIO) -> tuple[float, int]:
    """When an open file was last changed, and its size."""
    status = os.fstat(stream.fileno())
    return status.st_mtime, status.st_size


def _at(stream: BinaryIO, place: int) -> bytes:
    """The byte at a place, none before the start."""
    if place < 0:
        return b""
    stream.seek(place)
    return stream.read(1)

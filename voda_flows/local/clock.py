"""The engine's clock: time of day that goes on evenly when somebody sets the machine's clock.

Limits of Workflows (deadlines, durations, back-offs) are differences between moments that were written down at
different times, by the engine and by the pods' parent processes. All of them take the moment from here: seconds since
the machine was booted, which never jump, plus an offset that is kept in the home. A clock that was set is followed as
soon as no Workflow of a user is open, and at the next boot. Only cron schedules go by the machine's clock at once.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

from voda_flows.local.pod import write_whole

JUMP_S = 2.0
"""A smaller difference is an ordinary correction, and is followed at the next start."""
BOOT_ID = Path("/proc/sys/kernel/random/boot_id")


def since_boot_s() -> float:
    """Seconds since the machine was booted, sleep included."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


class EvenClock:
    """Time of day without jumps.

    Args:
        file: Where the offset is kept.
        wall: The machine's clock, seconds since the epoch.
        even: Seconds on a clock that never jumps.

    Attributes:
        offset_s: What is added to the seconds since boot.
    """

    def __init__(
        self, file: Path, wall: Callable[[], float] = time.time, even: Callable[[], float] = since_boot_s
    ) -> None:
        self._file = file
        self._wall = wall
        self._even = even
        self._seen_s = self.offset_s = self._wall_offset_s()
        kept_s = self._kept_s()
        if kept_s is not None and abs(kept_s - self.offset_s) > JUMP_S:
            self.offset_s = kept_s

    def now(self) -> datetime:
        """The moment by which limits are judged."""
        return datetime.fromtimestamp(self._even() + self.offset_s, UTC)

    def wall(self) -> datetime:
        """The moment by the machine's clock."""
        return datetime.fromtimestamp(self._wall(), UTC)

    def was_set(self) -> bool:
        """Whether somebody set the machine's clock since this was asked last."""
        before_s, self._seen_s = self._seen_s, self._wall_offset_s()
        return abs(self._seen_s - before_s) > JUMP_S

    def is_apart(self) -> bool:
        """Whether this clock and the machine's differ by a jump."""
        return abs(self._wall_offset_s() - self.offset_s) > JUMP_S

    def follow(self) -> None:
        """Show the machine's time from now on; for a moment in which no limit is being waited for."""
        self.offset_s = self._wall_offset_s()
        self.keep()

    def keep(self) -> None:
        """Keep the offset for the next engine of this boot."""
        write_whole(self._file, {"boot": _boot_id(), "offset_s": self.offset_s})

    def _wall_offset_s(self) -> float:
        return self._wall() - self._even()

    def _kept_s(self) -> float | None:
        """The offset of the engine before, where it ran since the same boot."""
        try:
            kept = json.loads(self._file.read_text())
            return float(kept["offset_s"]) if kept["boot"] == _boot_id() else None
        except (OSError, KeyError, TypeError, ValueError):
            return None


def _boot_id() -> str:
    try:
        return BOOT_ID.read_text().strip()
    except OSError:
        return ""

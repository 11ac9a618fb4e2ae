"""Time for the scheduler's limits: judged by its own clock, as a Lease's expiry is, whatever other clocks say.

Objects carry moments that others wrote by their clocks, and any of these clocks may be set by an hour. So seconds since
the epoch go on evenly in one process (``now_s``), and what others have written is taken at most for as old as it can be
by what this process has seen itself (``Sightings``).
"""

from __future__ import annotations

import math
import time
from collections.abc import Hashable
from dataclasses import dataclass, field


def _since_boot_s() -> float:
    return time.clock_gettime(time.CLOCK_BOOTTIME)


_OFFSET_S = time.time() - _since_boot_s()


def now_s() -> float:
    """Seconds since the epoch, going on evenly when the machine's clock is set."""
    return _since_boot_s() + _OFFSET_S


@dataclass(slots=True)
class Sightings:
    """Since when things are so, by our own clock.

    A thing that is new between two looks began between them, whatever its stamp says; at the first look of a process a
    stamp is believed unless it is of the future. So a limit begins anew, at worst, with a new process.
    """

    _since_s: dict[Hashable, float] = field(default_factory=dict)
    _looked_s: float = -math.inf
    _found: set[Hashable] = field(default_factory=set)

    def since_s(self, thing: Hashable, stamp_s: float, at_s: float) -> float:
        """Since when this is so.

        Args:
            thing: What is seen; with its stamp, since another stamp is another thing.
            stamp_s: What is written down, seconds since the epoch.
            at_s: The moment of the look by our clock.
        """
        key = (thing, stamp_s)
        self._found.add(key)
        if key not in self._since_s:
            self._since_s[key] = min(max(stamp_s, self._looked_s), at_s)
        return self._since_s[key]

    def end_look(self, at_s: float) -> None:
        """All of one look was seen: what was not is forgotten."""
        self._since_s = {key: since_s for key, since_s in self._since_s.items() if key in self._found}
        self._found.clear()
        self._looked_s = at_s

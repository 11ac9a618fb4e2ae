"""Throws one target's cases for a time, in a process of its own: ``python -m tests.show.fuzzer TARGET SECONDS SEED``.

Whoever started it watches it: before each case it writes the case into a file, and how many there were so far, so that
one at which it hangs is known.
"""

from __future__ import annotations

import os
import struct
import sys
import time
import traceback
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, Phase, given, seed, settings

from tests.laws.fuzzing import TARGETS

COUNT = struct.Struct("<Q")
ROUND = 200  # cases of one seed
SHOWN = 100_000


def main() -> int:
    """Throw until the time is over; 1 at the first case that is neither read nor refused."""
    target, seconds, first_seed, journal = sys.argv[1], float(sys.argv[2]), int(sys.argv[3]), Path(sys.argv[4])
    strategy, law = TARGETS[target]
    file, count, end_s = os.open(journal, os.O_RDWR | os.O_CREAT), 0, time.monotonic() + seconds

    def thrown(case: Any) -> None:
        nonlocal count
        if time.monotonic() >= end_s:
            return
        count += 1
        os.pwrite(file, COUNT.pack(count) + repr(case)[:SHOWN].encode(errors="replace") + b"\n", 0)
        law(case)

    number = first_seed
    while time.monotonic() < end_s:
        checks = settings(
            max_examples=ROUND,
            deadline=None,
            database=None,
            derandomize=False,
            phases=[Phase.generate, Phase.shrink],
            suppress_health_check=list(HealthCheck),
        )
        try:
            seed(number)(checks(given(strategy())(thrown)))()
        except Exception:  # noqa: BLE001 - whatever it is, it is what was looked for
            traceback.print_exc()
            return 1
        number += 1
    return 0


if __name__ == "__main__":
    sys.exit(main())

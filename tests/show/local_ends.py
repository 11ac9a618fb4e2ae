"""Area local, ends: of a job whose script always fails, of one that hangs, of one that is deleted as it trains."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from tests.e2e.local_ends import Ending, always_fails, hangs, is_deleted
from tests.e2e.local_world import local_world, of_home
from tests.show.registry import Row, exactly, figure, information

DEADLINE_S = 30
RETRY_LIMIT, RETRY_LIMIT_QUICK = 3, 1


@figure(area="local")
def ends(quick: bool) -> Iterator[Row]:
    """A script that always fails, one that hangs, a job that is deleted."""
    limit = RETRY_LIMIT_QUICK if quick else RETRY_LIMIT
    with tempfile.TemporaryDirectory(prefix="voda-ends-") as scratch:
        home = Path(scratch, "home")
        with local_world(home, "1x2") as world:
            began_s = time.monotonic()
            failed = always_fails(world, limit)
            took_s = time.monotonic() - began_s
            hung = hangs(world, DEADLINE_S, "hangs" if quick else "hangs-training")
            deleted = is_deleted(world)
        left = len(of_home(home))
    yield exactly(f"ends: phase of a script that always fails (retry-limit {limit})", failed.phase, "Failed")
    yield information(
        "ends: of that script, segments, and how long until it failed", f"{failed.segments} {took_s:.0f} s"
    )
    yield exactly(f"ends: phase of a script that hangs, deadline {DEADLINE_S} s", hung.phase, "Failed")
    yield exactly("ends: phase of a job that was deleted as it trained", deleted.phase or "gone", "gone")
    for name, found in {"that failed": failed, "that hung": hung, "deleted": deleted}.items():
        yield exactly(f"ends: left of the job {name}", _left(found), "nothing")
    yield exactly("ends: processes left of that world", left, 0)


def _left(found: Ending) -> str:
    names = [*found.pods, *found.slots, *map(str, found.processes), *found.secrets]
    return ", ".join(names) or "nothing"

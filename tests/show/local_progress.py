"""Area local, progress: it does not go back while a job is grown, shrunk, stopped at a checkpoint and resumed.

One elastic job, watched through every change of the store; a guest takes one of its two slots for a while, then an
urgent job both.
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from tests.e2e.job_record import verdicts
from tests.e2e.local_world import LIFE, LocalWorld, local_world
from tests.e2e.progress_watch import ProgressWatch
from tests.show.registry import Row, at_least, exactly, figure, information
from voda_flows.objects import WORKFLOW_ENDED

SAMPLES, STEP_S = 1200, 0.03
EPOCHS = 24
SHORT = {"epochs": "1", "checkpoint-steps": "50"}
LIMIT_S = 400.0


@figure(area="local")
def progress(quick: bool) -> Iterator[Row]:
    """Graceful resizes, in place and by a checkpoint."""
    command = f"{LIFE} {SAMPLES} {STEP_S}"
    with (
        tempfile.TemporaryDirectory(prefix="voda-progress-") as scratch,
        local_world(Path(scratch, "home"), "1x2") as world,
        ProgressWatch(world) as seen,
    ):
        long = world.submit("long", {"command": command, "epochs": str(EPOCHS), "max-gpus": "2"})
        _until(world, long, grow=0)
        world.submit("guest", {"command": command, **SHORT})
        _until(world, long, shrink=1)
        _until(world, long, grow=1)
        urgent = {"command": command, **SHORT, "min-gpus": "2", "max-gpus": "2", "priority": "high"}
        world.submit("urgent", urgent)
        world.until(world.have_ended, LIMIT_S)
        phases, done, stops = world.phases(), _kinds(world, long), verdicts(world.root(long)).count("resize")
    for line in (*seen.back, *seen.argo_back):
        sys.stderr.write(f"went back: {line}\n")
    yield exactly("progress: jobs that succeeded", list(phases.values()).count("Succeeded"), 3)
    yield at_least("progress: of one job, resizes in place", done["grow"] + done["shrink"], 2, "resizes")
    yield at_least("progress: of one job, checkpoints and resumes", stops, 1, "resumes")
    yield information("progress: looks at a job", str(seen.looks))
    yield exactly("progress: times that voda's share went back", len(seen.back), 0)
    yield exactly("progress: times that what Argo's field counts as done went back", len(seen.argo_back), 0)


def _until(world: LocalWorld, uid: str, **least: int) -> None:
    """Wait until a job trains and has had so many resizes of these kinds, or has ended."""

    def holds() -> bool:
        kinds = _kinds(world, uid)
        return kinds["start"] > 0 and all(kinds[kind] >= count for kind, count in least.items())

    world.until(lambda: holds() or world.phases()["long"] in WORKFLOW_ENDED, LIMIT_S)


def _kinds(world: LocalWorld, uid: str) -> Counter[str]:
    """A job's resizes by kind, of all its segments."""
    paths = world.root(uid).glob("segment-*/resizes.jsonl")
    return Counter(json.loads(line)["kind"] for path in paths for line in path.read_text().splitlines())

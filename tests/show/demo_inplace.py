"""Area demo, resizes and crashes in place: how long training stands still, and where that time goes.

Real Horovod on loopback, 20 ms steps of a tiny model, one job whose document is changed by hand. Ranks commit every
step. Agents are forks of one warm process, which is what an agent is once it listens.
"""

from __future__ import annotations

import os
import signal
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.e2e.agents import WarmAgents
from tests.e2e.rig import FOREVER, TRAIN, Job, Pod, job, until_acknowledged, until_status
from tests.show.registry import Row, at_most, exactly, figure, information, median_and_p95, percentile

SAMPLES = 20
SAMPLES_QUICK = 3
STILL_S = 0.3
REACHED_S = 1.0
NEXT_STEP_S = 0.5
BACK_S = 2.0
LOOK_S = 0.2  # the driver keeps the times itself; asking it a hundred times a second would take a core from the ranks

Record = dict[str, Any]


@figure(area="demo")
def resizes_in_place(quick: bool) -> Iterator[Row]:
    """Two workers to three and back."""
    with tempfile.TemporaryDirectory() as folder, _warm() as agents, job(agents, Path(folder), FOREVER) as made:
        driver = made.started("w0", "w1")
        grown, shrunk = [], []
        for number in range(SAMPLES_QUICK if quick else SAMPLES):
            newcomer = f"n{number}"
            made.agent(newcomer)
            made.await_warm(newcomer)
            grown.append(_change(made, driver, "w0", "w1", newcomer))
            shrunk.append(_change(made, driver, "w0", "w1"))
            made.workers.pop(newcomer).wait()
    yield from _resize_rows("2 -> 3", grown)
    yield from _resize_rows("3 -> 2", shrunk)
    lost = sum(record["steps_lost"] for record in (*grown, *shrunk))
    yield exactly("steps lost in these resizes", lost, 0)


@figure(area="demo")
def crashes_in_place(quick: bool) -> Iterator[Row]:
    """SIGKILL to one of three ranks, rank 0 in every second case."""
    survived, back = [], []
    with (
        tempfile.TemporaryDirectory() as folder,
        _warm() as agents,
        job(agents, Path(folder), FOREVER, VODA_RESTART_LIMIT="100") as made,
    ):
        driver = made.started("w0", "w1", "w2")
        for number in range(SAMPLES_QUICK if quick else SAMPLES):
            killed_s, records = _crash(made, driver, rank=0 if number % 2 == 0 else 1 + number // 2 % 2)
            survived.append({**records[0], "killed_s": killed_s})
            back.append({**records[1], "killed_s": killed_s})
    next_step = [record["first_step_s"] - record["killed_s"] for record in survived]
    returned = [record["first_step_s"] - record["killed_s"] for record in back]
    lost = max(record["steps_lost"] for record in survived)
    yield from median_and_p95("SIGKILL of a rank, to the others' next step", next_step, NEXT_STEP_S, "s")
    parts = {
        "until the driver knows": ("killed_s", "document_s"),
        "until the others have left the world": ("document_s", "decided_s"),
        "until the first step of the new one": ("decided_s", "first_step_s"),
    }
    yield from _parts("SIGKILL of a rank", survived, parts)
    yield from median_and_p95("SIGKILL of a rank, until it is back in place", returned, BACK_S, "s")
    yield at_most("steps lost in a crash, most", lost, 1, "steps")


def _warm() -> WarmAgents:
    return WarmAgents(TRAIN)


def _change(made: Job, driver: Pod, *workers: str) -> Record:
    """Write a document, wait until it is in effect; the resize's record with the time of the writing."""
    written_s = made.allocate(*workers)
    status = until_acknowledged(driver, made.generation, look_s=LOOK_S)
    record: Record = status["resizes"][-1]
    return {**record, "written_s": written_s}


def _crash(made: Job, driver: Pod, *, rank: int) -> tuple[float, list[Record]]:
    """Kill a rank, wait until it is back; when it was killed, and the two records."""
    before = len(until_status(driver, lambda _found: True, "a status")["resizes"])
    life = driver.text().rsplit("ranks=", 1)[1].split()[0].split(",")[rank]
    victim = made.pids(life.split(".")[0])[0]
    os.kill(victim, signal.SIGKILL)
    killed_s = time.time()
    status = until_status(
        driver,
        lambda found: len(found["resizes"]) == before + 2 and found["state"] == "training",
        "the rank is back",
        look_s=LOOK_S,
    )
    return killed_s, status["resizes"][-2:]


def _resize_rows(what: str, records: list[Record]) -> Iterator[Row]:
    yield from median_and_p95(f"{what}, standing still", [record["still_s"] for record in records], STILL_S, "s")
    reached = [record["first_step_s"] - record["written_s"] for record in records]
    yield from median_and_p95(f"{what}, document to first step at the new size", reached, REACHED_S, "s")
    parts = {
        "until the document is seen": ("written_s", "document_s"),
        "until newcomers are at the door and the old world is left": ("document_s", "decided_s"),
        "until the first step of the new world": ("decided_s", "first_step_s"),
    }
    yield from _parts(what, records, parts)


def _parts(what: str, records: list[Record], parts: dict[str, tuple[str, str]]) -> Iterator[Row]:
    """The medians of what lies between two moments."""
    for name, (begin, end) in parts.items():
        median_s = percentile([record[end] - record[begin] for record in records], 0.5)
        yield information(f"{what}, of which {name}", f"{1000 * median_s:.0f} ms")

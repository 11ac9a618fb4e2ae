"""Jobs as a store and their volume tell of them together."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.unit.report.world import Building
from voda_flows.local.store import LocalStore
from voda_flows.report import jobs
from voda_flows.report.files import job_folder
from voda_flows.report.lives import JobLife


class Looks:
    """A job in a store, and the progress that was shown of it."""

    def __init__(self, home: Path, job: Building) -> None:
        self._home, self._job, self._store = home, job, LocalStore(home)
        self._store.create(job.workflow())
        self.shown: list[tuple[int, int]] = []

    def look(self) -> JobLife:
        """Keep the job as it is now, and see how far it is."""
        kept = self._store.get("Workflow", "default", self._job.name)
        self._store.replace({**kept, "status": self._job.workflow()["status"]})
        (life,) = jobs.find(self._store, "default", self._job.name).lives
        self.shown.append((life.done, life.total))
        return life

    def end(self, segment: int, outcome: str, epoch: float) -> None:
        """A driver writes down how its segment ended."""
        folder = job_folder(self._home, self.look()) / f"segment-{segment}"
        folder.mkdir(parents=True)
        (folder / "end.json").write_text(json.dumps({"outcome": outcome, "epoch": epoch, "message": "why"}))


@pytest.mark.parametrize(("done", "epoch", "phase"), [(780, 8.0, "Succeeded"), (500, 5.2, "Failed")])
def test_a_driver_that_began_anew_after_a_loss_takes_nothing_back_at_its_end(
    tmp_path: Path, done: int, epoch: float, phase: str
) -> None:
    """At its end it says what it did, not since when: the first one was lost at 30, and its checkpoint was at 20."""
    job = Building(name="one", asked={"epochs": "8"}).grant(1, ("w0", "n0")).publish("w0").progress(30, 800)
    looks = Looks(tmp_path, job)
    job.stop(9, "lost", "w0").nodes[f"{job.name}.segment.train.driver"]["phase"] = "Failed"
    looks.look()
    job.grant(20, ("w0", "n0")).publish("w0").progress(min(done, 779), 780)
    looks.end(1, "done" if phase == "Succeeded" else "failed", epoch)
    job.progress(done, done)
    looks.look()
    job.end(f"{job.train}.driver", 40, phase)
    looks.look()
    job.finish(41, phase)
    last = looks.look()

    assert [row[0] for row in looks.shown] == [30, 20 + min(done, 779), *[20 + done] * 2, last.done]
    assert (last.fraction, last.total) == (epoch / 8, 800)
    assert last.message == ("why" if phase == "Failed" else "")


def test_what_a_driver_kept_tells_where_its_node_does_not(tmp_path: Path) -> None:
    """A driver was cut off before anybody saw it, the one after it was stopped and lost before it handed out a word."""
    job = Building(name="one", asked={"epochs": "8"}).grant(1, ("w0", "n0")).publish("w0")
    looks = Looks(tmp_path, job)
    job.stop(9, "resize", "w0").nodes[f"{job.name}.segment.train.driver"]["phase"] = "Failed"
    job.grant(20, ("w0", "n0")).publish("w0").progress(30, 30).end(f"{job.train}.driver", 30, "Failed")
    unknown = looks.look()
    folder = job_folder(tmp_path, unknown) / "segment-1"
    folder.mkdir(parents=True)
    (folder / "progress.json").write_text(json.dumps({"begin": 0.4, "furthest": 0.7}))
    known = looks.look()

    assert (unknown.share, known.share, known.done, known.total) == ("-", "9%", 70, 800)

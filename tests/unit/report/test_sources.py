"""What is told of a job where its volume cannot be seen, next to what its files say."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path

from tests.unit.report.five_jobs import jobs
from tests.unit.report.world import START_S, Building, node, resize, row
from voda_flows.local.store import LocalStore
from voda_flows.objects import Object
from voda_flows.report.files import SegmentFiles
from voda_flows.report.lives import JobLife, lives
from voda_flows.report.record import Record, Sources, record
from voda_flows.report.sources import Volumes, Workflows, source_of


@dataclass
class Pods:
    """A way to drivers' HTTP servers; notes who was asked."""

    answers: dict[tuple[tuple[str, str], str], Object] = field(default_factory=dict)
    asked: list[tuple[tuple[str, str], int, str]] = field(default_factory=list)

    def ask_pod(self, key: tuple[str, str], port: int, path: str) -> Object | None:
        """One of the answers."""
        self.asked.append((key, port, path))
        return self.answers.get((key, path))


def lives_of(*made: Building) -> list[JobLife]:
    """The jobs' lives."""
    return [life for job in made for life in lives(job.workflow(), job.pods.values())]


def told(made: list[Building], files: dict[str, object]) -> Record:
    """The record of jobs with what was told of their segments."""
    sources = Sources(now_s=START_S + 175, nodes=(node("n0", 2), node("n1", 2)), files=files)  # type: ignore[arg-type]
    return record(lives_of(*made), sources)


def test_workflows_tell_the_same_story_as_files() -> None:
    """Events and numbers are the same, to the digits that a record keeps; rows are the same where there are few."""
    made = list(jobs())
    found = lives_of(*made)
    written = told(made, {life.id: job.files for job, life in zip(made, found, strict=True)})
    spoken = told(made, dict(Workflows(pods=None).files(found)))

    assert [job.happened for job in spoken.jobs] == [job.happened for job in written.jobs]
    assert [replace(job.numbers, value=None) for job in spoken.jobs] == [
        replace(job.numbers, value=None) for job in written.jobs
    ]
    assert [round(job.numbers.value or 0, 4) for job in spoken.jobs] == [
        round(job.numbers.value or 0, 4) for job in written.jobs
    ]
    assert [len(job.rows) for job in spoken.jobs] == [len(job.rows) for job in written.jobs]


def test_a_segment_that_goes_on_is_told_by_its_driver() -> None:
    """Only drivers that live are asked; what they answer stands beside the records of segments that have ended."""
    job = Building(name="a").grant(1, ("w0", "n0")).publish("w0").stop(9, "resize", "w0").judged(0, 20)
    job.grant(20, ("w0", "n1")).publish("w0")
    ended = Building(name="b", uid="u2").grant(1, ("w0", "n0")).publish("w0").stop(9, "done", "w0")
    found = lives_of(job, ended)
    rows, resizes = [row(25, 1, 40, segment=1, accuracy=0.5)], [resize("start", 0, 1, 22)]
    driver = ("default", "a-driver-1")
    pods = Pods({(driver, "reports"): {"next": 1, "rows": rows}, (driver, "status"): {"resizes": resizes}})

    files = Workflows(pods=pods).files(found)

    assert sorted(pods.asked) == [(driver, 7071, "reports"), (driver, 7071, "status")]
    assert {number: (one.rows, one.resizes) for number, one in files[found[0].id].items()} == {
        0: ((), ()),
        1: (tuple(rows), tuple(resizes)),
    }
    assert files[found[0].id][0].verdict["step"] == 20
    assert list(files[found[1].id]) == [0]


def test_a_driver_that_does_not_answer_is_no_error() -> None:
    """The Workflow tells what it can: what is not known is left out."""
    (life,) = lives_of(Building(name="a").grant(1, ("w0", "n0")).publish("w0"))

    assert Workflows(pods=Pods()).files([life]) == {life.id: {}}
    assert Workflows(pods=Pods()).ends(life) == {}


def test_a_failed_segment_says_where_it_ended() -> None:
    """A record has its driver's last word: how far a job is does not depend on its volume."""
    job = Building(name="a").grant(1, ("w0", "n0")).publish("w0").stop(9, "lost", "w0")
    job.files[0] = SegmentFiles(end={"epoch": 4.25})
    (life,) = lives_of(job)

    assert Workflows(pods=None).ends(life) == {0: {"epoch": 4.25}}


def test_the_source_is_that_of_the_world(tmp_path: Path) -> None:
    """Local mode has files, a cluster's store leads to drivers."""
    store = LocalStore(tmp_path)

    assert source_of(store, tmp_path) == Volumes(home=tmp_path)
    assert source_of(store, None) == Workflows(pods=None)
    store.close()

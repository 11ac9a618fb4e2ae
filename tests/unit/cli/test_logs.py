"""Following what many pods print: each line once, whole, marked, in order of time, until the jobs have ended."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.unit.cli.test_verbs import running
from tests.unit.cli.world import World
from tests.unit.report.world import Building
from voda_flows.cli import tails
from voda_flows.local import logs
from voda_flows.local.loglines import LogFile
from voda_flows.local.world import LocalWorld

START_S = 1_800_000_000.0


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A log that is empty."""
    path = tmp_path / "main.log"
    path.touch()
    return path


def append(path: Path, text: str) -> None:
    """What a pod writes."""
    with path.open("a", encoding="utf-8") as stream:
        stream.write(text)


def read(log: LogFile, *, last: bool = False) -> list[str]:
    """The texts of new lines."""
    return [line.text for line in log.read(last=last)]


def test_half_a_line_waits_for_its_end_and_is_said_once(file: Path) -> None:
    """Nor is a letter of several bytes torn apart; what has no end is said when nothing more comes."""
    log = LogFile(lambda: file, START_S)
    with file.open("ab") as stream:
        stream.write("one\ntwö".encode()[:-1])
    assert read(log) == ["one"]
    with file.open("ab") as stream:
        stream.write("ö".encode()[-1:])
    append(file, "!\nthree")

    assert (read(log), read(log, last=True), read(log, last=True)) == (["twö!"], ["three"], [])


def test_a_log_that_is_taken_away_is_read_to_its_end(file: Path) -> None:
    """A deleted pod's last words are not lost."""
    log = LogFile(lambda: file, START_S)
    append(file, "one\n")
    assert read(log) == ["one"]
    append(file, "two\nthree")
    file.unlink()

    assert read(log, last=True) == ["two", "three"]


@pytest.mark.parametrize(("tail", "lines"), [(0, []), (1, ["c"]), (2, ["b", "c"]), (9, ["a", "b", "c"])])
@pytest.mark.parametrize("text", ["a\nb\nc\n", "a\nb\nc"])
def test_a_tail_is_the_last_lines(file: Path, tail: int, lines: list[str], text: str) -> None:
    """A line without an end is one of them."""
    append(file, text)

    assert read(LogFile(lambda: file, START_S, tail), last=True) == lines


def test_lines_without_a_stamp_lie_between_those_that_have_one(file: Path) -> None:
    """Digits that go back, or beyond the file's own time, are a program's and no stamp."""
    append(file, "2027-01-15T08:00:10Z a\nb\n00:00:01 left\n2027-01-15T08:00:20Z c\nd\n")
    os.utime(file, (START_S + 30, START_S + 30))

    spans = [(line.text[-1], line.from_s - START_S, line.until_s - START_S)
             for line in LogFile(lambda: file, START_S).read(last=True)]  # fmt: skip

    assert spans == [("a", 10, 10), ("b", 10, 20), ("t", 10, 20), ("c", 20, 20), ("d", 20, 30)]


def test_lines_of_several_pods_are_in_order_of_time(world: World) -> None:
    """As far as stamps tell."""
    world.add(running())
    world.log("digits-driver-0", "2099-01-31T10:00:01Z a\n2099-01-31T10:00:05Z d\n")
    world.log("digits-worker-0w0", "2099-01-31T10:00:03Z b\ntraceback\n")
    for log in (world.home / "pods").glob("*/main.log"):
        os.utime(log, (4_100_000_000, 4_100_000_000))

    texts = [line.split(" ", 2)[0] + line[-1] for line in world.voda("logs", "digits").out.splitlines()]

    assert texts == ["drivera", "w0b", "w0k", "driverd"]


def test_since_leaves_out_what_is_known_to_be_older_only(world: World) -> None:
    """A line of which nobody knows is kept."""
    world.add(running())
    world.log("digits-driver-0", "2020-01-31T10:00:01Z old\nolder than the next\n")
    world.log("digits-worker-0w0", "no stamp\n")

    said = world.voda("logs", "digits", "--since", "1h", "--worker", "w0")

    assert said.out == "no stamp\n"


def test_following_goes_across_segments_and_deletions(world: World) -> None:
    """Workers of a new segment are taken in; a pod that was deleted is read where its log was put aside."""
    job = running()
    made = world.add(job)
    world.log("digits-worker-0w0", "first\n")
    reader = tails.Reader(LocalWorld(world.home), [tails.Source(workflow=made)], marked=True)
    reader.look()
    pod = world.store.get("Pod", "default", "digits-worker-0w0")
    logs.keep(world.home, pod, made["metadata"]["uid"])
    later = Building(name="digits").grant(1, ("w0", "n0")).publish("w0").stop(9, "resize", "w0")
    later.grant(20, ("w0", "n1"))
    world.store.create(later.pods["digits-worker-1w0"])
    world.log("digits-worker-1w0", "second\n")
    reader.look()

    said = {tail.mark: [line.text for line in tail.log.read(last=True)] for tail in reader.tails.values()}

    assert (said["w0 |"], said["1/w0 |"]) == (["first"], ["second"])


def test_several_jobs_are_told_apart(world: World) -> None:
    """The name of the Workflow stands before the pod's."""
    for name in ("a", "b"):
        world.add(running(name))
        world.log(f"{name}-driver-0", f"I am {name}\n")

    assert world.voda("logs", "a", "b", "--driver").out == "a/driver | I am a\nb/driver | I am b\n"

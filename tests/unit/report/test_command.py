"""`voda report` on hand-made worlds in which nothing runs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.unit.cli.world import World
from tests.unit.report.five_jobs import act, decision
from tests.unit.report.world import START_S, Building, resize
from voda_flows.report import jobs
from voda_flows.report.gather import gather
from voda_flows.report.times import text


def ended(name: str, submitted: float, ends: float) -> Building:
    """A job that ran on one slot of n0 to its end."""
    job = Building(name=name, submitted=submitted).grant(submitted + 10, ("w0", "n0")).publish("w0")
    return job.stop(ends, "done", "w0").wrote(0, resize("start", 0, 1, submitted + 14))


@pytest.fixture
def two(world: World) -> World:
    """A world of two jobs, an hour apart."""
    for job in (ended("early", 0, 100), ended("late", 3600, 3700)):
        uid = world.add(job)["metadata"]["uid"]
        folder = world.home / "volumes" / "voda" / "default" / uid / "train" / "segment-0"
        folder.mkdir(parents=True)
        (folder / "resizes.jsonl").write_text(json.dumps(job.files[0].resizes[0]) + "\n", encoding="utf-8")
    return world


def test_a_report_over_a_span_has_the_jobs_that_lived_in_it(two: World) -> None:
    """With times as objects have them, in any of the forms of a result."""
    from_, to = text(START_S + 3000), text(START_S + 3650)

    assert two.voda("report", "--from", from_, "--to", to, "-o", "name").out == "late\n"
    made = two.json("report", "--from", from_, "--to", to)
    assert [job["phase"] for job in made["jobs"]] == ["Running"]


def test_a_day_is_meant_from_its_beginning_to_its_end(two: World) -> None:
    """The day of both jobs has both, the day before has none, and the story says what there is."""
    assert two.voda("report", "--from", "2027-01-15", "--to", "2027-01-15", "-o", "name").out == "early\nlate\n"

    before = two.voda("report", "--from", "2026-01-14", "--to", "2026-01-14")

    assert (before.code, before.out) == (0, "")
    assert before.err == (
        "no job lived between 2026-01-14T00:00:00Z and 2026-01-15T00:00:00Z; "
        "those that are kept lived from 2027-01-15T08:00:00Z to 2027-01-15T09:01:41Z\n"
    )


def test_a_report_of_an_empty_world_says_so(world: World, tmp_path: Path) -> None:
    """A page is written all the same."""
    said = world.voda("report", "--html", str(tmp_path / "r.html"))

    assert said.err.splitlines()[0] == "there is no job yet; submit one with `voda submit FILE`"
    assert "No job lived in this span" in (tmp_path / "r.html").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (("--since", "2h", "--from", "2h"), "expected one beginning, found --since and --from"),
        (("--from", "yesterday"), "--from: expected a time such as"),
        (("--to", "2026-02-30"), "--to: expected a time such as"),
        (("--from", "2026-02-02", "--to", "2026-02-01T00:00:00Z"), "expected a span that begins before it ends"),
    ],
)
def test_a_span_that_is_none_is_refused(two: World, options: tuple[str, ...], expected: str) -> None:
    """Exit 2, one line that says what was expected."""
    said = two.voda("report", *options)

    assert (said.code, expected in said.err) == (2, True)


def test_a_page_that_cannot_be_written_is_one_clear_error(two: World, tmp_path: Path) -> None:
    """The folder is not there."""
    said = two.voda("report", "--html", str(tmp_path / "nowhere" / "r.html"))

    assert said.code == 2
    assert "expected a file that can be written" in said.err


def test_the_wide_table_has_the_parts_of_waiting_and_running(two: World) -> None:
    """And beneath it, how long jobs took."""
    lines = [line.split() for line in two.voda("report", "-o", "wide").out.splitlines()]

    assert lines[0][:7] == ["JOB", "STATUS", "QUEUED", "PREEMPTED", "STARTING", "TRAINING", "JCT"]
    assert lines[1][:7] == ["early", "Succeeded", "10s", "-", "4s", "1m27s", "1m41s"]
    assert lines[5] == ["whole", "(JCT)", "1m41s", "1m41s", "1m41s", "1m41s"]


def test_reasons_reach_back_beyond_the_history_in_the_store(world: World) -> None:
    """Rounds that the store has forgotten are read from the records on disk; torn ones are passed over."""
    made = world.add(ended("early", 0, 100))
    job_id = f"{made['metadata']['uid']}/train"
    rows = json.dumps([decision(500, 9, {}, act("other", "Stop"))])
    metadata = {"name": "voda-history", "namespace": "voda"}
    world.store.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"rows": rows}})
    target = {"decision": 1, "policy": "fifo", "allocation": {"gpus_by_job": {job_id: 1, "gone/train": 1}}}
    done = [
        {"action": "Announce", "job_id": job_id, "message": "queued: place 1"},
        {"action": "Grant", "job_id": job_id, "segment": 0, "workers": []},
    ]
    for number, body in ((1, {"time_s": START_S + 9, "decision": {"target": target}, "done": done}), (2, {"done": 1})):
        folder = world.home / "records" / f"{number:08d}"
        folder.mkdir(parents=True)
        (folder / "decision.json").write_text(json.dumps(body), encoding="utf-8")

    (job,) = gather(world.store, world.home, jobs.everything(world.store, "default")).jobs
    said = {event.kind: (event.text, event.reason) for event in job.happened}

    assert said["queue"] == ("queued: place 1; waited 10s", "")
    assert said["grant"] == ("granted 1 GPU on n0", "decision 1, fifo: 1 for this job")

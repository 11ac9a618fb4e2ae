"""What was decided is written down: whole rounds on disk for replay, rows for people, both bounded."""

from __future__ import annotations

import json
import os
from pathlib import Path

from scheduler_core.cycle import decide
from scheduler_core.errors import NotFound
from scheduler_core.model.decision import CycleResult
from scheduler_core.model.observation import Observation
from scheduler_core.model.target import Target
from tests.unit.control.world import PARAMS, World
from voda_flows.config import Settings
from voda_flows.control.explain import explain
from voda_flows.control.records import Records, bounded
from voda_flows.report.history import history
from voda_flows.wire import decode, from_json


def kept(world: World, records: Records) -> CycleResult:
    """One round of the scheduler, kept."""
    result = world.round()
    records.keep(result, world.targets.loaded, PARAMS)
    return result


def test_a_record_can_be_replayed(tmp_path: Path) -> None:
    """The same observation, target and settings give the decision that is in the record."""
    world = World(tmp_path / "home")
    world.submit("digits", max_gpus="4")
    result = kept(world, Records(world.store, Settings(), tmp_path / "records"))
    (folder,) = (tmp_path / "records").iterdir()
    observation = from_json((folder / "observation.json").read_text(), Observation)
    record = json.loads((folder / "decision.json").read_text())

    assert observation == result.observation
    assert decide(observation, decode(Target, record["before"]), PARAMS) == result.decision
    assert decode(Target, record["decision"]["target"]) == result.decision.target


def test_rounds_in_which_nothing_happens_leave_nothing(tmp_path: Path) -> None:
    """A cycle that changes nothing must be the cheapest cycle."""
    world = World(tmp_path / "home")
    world.submit("digits")
    records = Records(world.store, Settings(), tmp_path / "records")
    kept(world, records)
    kept(world, records)
    before = world.store.revision()
    for _ in range(3):
        assert not records.keep(world.round(), world.targets.loaded, PARAMS)

    assert world.store.revision() == before


def test_the_oldest_records_go(tmp_path: Path) -> None:
    """Disk use is bounded."""
    world = World(tmp_path / "home", gpus=(8,))
    records = Records(world.store, Settings(records=2), tmp_path / "records")
    for number in range(4):
        world.submit(f"j{number}", job_name=f"j{number}")
        kept(world, records)

    assert sorted(path.name for path in (tmp_path / "records").iterdir()) == ["00000003", "00000004"]


def test_old_records_go(tmp_path: Path) -> None:
    """However few they are: a record older than the limit goes when the next is written."""
    world = World(tmp_path / "home", gpus=(8,))
    records = Records(world.store, Settings(records_age_s=3_600.0), tmp_path / "records")
    for number in range(3):
        world.submit(f"j{number}", job_name=f"j{number}")
        kept(world, records)
        if number == 0:
            os.utime(tmp_path / "records" / "00000001", (0, 0))

    assert sorted(path.name for path in (tmp_path / "records").iterdir()) == ["00000002", "00000003"]


def test_a_disk_that_is_full_stops_nothing(tmp_path: Path) -> None:
    """Records are for people; scheduling goes on without them, and the history is kept."""
    world = World(tmp_path / "home")
    world.submit("digits")
    (tmp_path / "file").write_text("no folder")
    kept(world, Records(world.store, Settings(), tmp_path / "file" / "records"))

    assert [row["decision"] for row in history(world.store, "voda")] == [1]


def test_the_history_tells_what_was_done(tmp_path: Path) -> None:
    """A row names jobs as people do, what each has, and the actions taken; words on gates are left out."""
    world = World(tmp_path / "home")
    world.submit("digits", max_gpus="2")
    records = Records(world.store, Settings(), None)
    kept(world, records)
    (row,) = history(world.store, "voda")

    assert {key: row[key] for key in ("decision", "kind", "policy", "gpus", "disturbed", "conflicts", "fault")} == {
        "decision": 1,
        "kind": "Full",
        "policy": "elastic_fifo",
        "gpus": {"digits/train": 2},
        "disturbed": [],
        "conflicts": {},
        "fault": "",
    }
    assert [(action["job"], action["action"]) for action in row["actions"]] == [("digits/train", "Grant")]


def test_the_history_is_bounded_by_rows_and_bytes() -> None:
    """A ConfigMap holds 1 MB at most; the newest rows stay."""
    assert json.loads(bounded([1, 2, 3], 2)) == [2, 3]
    rows = json.loads(bounded(["x" * 100_000 for _ in range(10)] + ["newest"], 100))
    assert rows[-1] == "newest"
    assert len(json.dumps(rows)) <= 500_000


def test_people_are_told_why(tmp_path: Path) -> None:
    """A job that waits is told for what, one that runs is told what it has and what was done."""
    world = World(tmp_path / "home")
    records = Records(world.store, Settings(), None)
    world.submit("first", min_gpus="3", max_gpus="3", job_name="first")
    kept(world, records)
    world.submit("second", min_gpus="2", max_gpus="2", job_name="second")
    kept(world, records)
    first = explain(world.store, Settings(), "first")
    second = explain(world.store, Settings(), "second/second")

    assert first[0].startswith("first/first starts on 3 GPUs, granted ")
    assert "2 on n0, 1 on n1" in first[1]
    assert "w0 on n0 (Pending)" in first[2]
    assert first[-1].endswith("Z: starts on 2 on n0, 1 on n1")
    assert second[0].startswith("second/second waits at its gate (queue default, submitted 0.")
    assert "waits for 2 GPUs" in second[1]


def test_bounds_are_told_where_a_size_may_change(tmp_path: Path) -> None:
    """An elastic job is told between which sizes it is."""
    world = World(tmp_path / "home")
    world.submit("one", min_gpus="1", max_gpus="3", job_name="one")
    kept(world, Records(world.store, Settings(), None))

    assert explain(world.store, Settings(), "one")[0].startswith("one/one starts on 3 GPUs of 1..3, granted ")


def test_a_job_that_is_not_there_is_named_with_what_is(tmp_path: Path) -> None:
    """A typing error is answered with the nearest name."""
    world = World(tmp_path / "home")
    world.submit("digits")
    try:
        explain(world.store, Settings(), "digit/train")
    except NotFound as fault:
        text = str(fault)

    assert text == ("job 'digit/train': expected a live job in namespace 'default'; did you mean 'digits/train'?")

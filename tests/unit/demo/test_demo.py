"""The demo's script, what it holds its record against, and its folder; the demo itself runs in tests/e2e."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from scheduler_core.errors import Conflict, VodaError
from tests.unit.cli.world import World
from tests.unit.report.five_jobs import five_jobs
from tests.unit.report.world import Building
from voda_flows.demo import run as demo
from voda_flows.demo.script import ACTS
from voda_flows.demo.verify import checks
from voda_flows.report.lives import lives
from voda_flows.report.record import Record


def test_a_record_that_shows_everything_holds() -> None:
    """Growth, shrinking, preemption and resumption, nothing lost, accuracy reached: all but the jobs that failed."""
    found = {check.figure: (check.value, check.holds) for check in checks(five_jobs(), 5)}

    assert found == {
        "jobs succeeded": ("3 of 5", False),
        "in-place growths": ("1", True),
        "in-place shrinks": ("2", True),
        "preempted to zero and resumed": ("digits, text", True),
        "steps lost in graceful changes": ("0", True),
        "accuracy of digits": ("0.978", True),
    }


def test_a_step_lost_in_a_graceful_change_does_not_hold() -> None:
    """Whoever lost it is named."""
    made = five_jobs()
    text = made.jobs[1]
    happened = tuple(replace(event, steps_lost=2) if event.kind == "preempt" else event for event in text.happened)
    worse = replace(made, jobs=(made.jobs[0], replace(text, happened=happened)))

    lost = next(check for check in checks(worse, 5) if check.figure.startswith("steps lost"))

    assert (lost.value, lost.holds) == ("text 2", False)


def test_an_empty_record_holds_nothing() -> None:
    """No jobs, no figures."""
    empty = Record(taken_s=0.0, nodes=(), jobs=())

    assert [check.holds for check in checks(empty, 5)] == [False, False, False, False, True, False]


def test_acts_wait_for_events_of_the_jobs_before_them() -> None:
    """Text comes when digits has grown and trains on four, pipeline when text trains."""
    digits = Building(name="digits", uid="1").grant(1, ("w0", "n0"), ("w1", "n0"), ("w2", "n1"), ("w3", "n1"))
    text_act, pipeline_act = ACTS[2], ACTS[3]

    def seen(*jobs: Building) -> dict[str, object]:
        found = [life for job in jobs for life in lives(job.workflow(), job.pods.values())]
        return {life.workflow: life for life in found}

    assert not text_act.when(seen(digits))  # type: ignore[arg-type]
    digits.publish("w0", "w1", "w2", "w3").progress(10, 900)
    assert text_act.when(seen(digits))  # type: ignore[arg-type]
    text = Building(name="text", uid="2").grant(5, ("w0", "n1"))
    assert not pipeline_act.when(seen(digits, text))  # type: ignore[arg-type]
    text.publish("w0").progress(1, 9)
    assert pipeline_act.when(seen(digits, text))  # type: ignore[arg-type]


def test_the_director_submits_when_it_is_time_and_knows_the_end(world: World) -> None:
    """Each example once, in order; the demo is over when all were submitted and have ended."""
    now = [0.0]
    director = demo.Director(store=world.store, root=demo.root_folder(), clock=lambda: now[0])

    assert not director.act()
    assert [body["metadata"]["name"] for body in world.store.list("Workflow")] == ["rigid"]
    for _ in ACTS:
        now[0] += demo.PATIENCE_S + 1
        assert not director.act()
    assert director.submitted == [act.example for act in ACTS]
    assert "not seen in" in director.note
    for name in director.submitted:
        world.store.merge_patch("Workflow", "default", name, {"status": {"phase": "Succeeded"}})
    assert director.act()


def test_the_director_gives_up_in_the_end(world: World) -> None:
    """A demo that does not end is a failure, not a wait."""
    now = [0.0]
    director = demo.Director(store=world.store, root=demo.root_folder(), clock=lambda: now[0])
    now[0] = demo.LIMIT_S + 1

    with pytest.raises(VodaError, match="expected the demo to end within"):
        director.act()


def test_the_folder_of_an_earlier_demo_is_used_again_and_no_other(tmp_path: Path) -> None:
    """State of an earlier demo goes; a folder with something else in it is left alone."""
    folder = tmp_path / "demo"
    home = demo.prepare_folder(folder)
    (home / "old").touch()
    (folder / "record.json").touch()

    assert list(demo.prepare_folder(folder).iterdir()) == []

    (folder / "thesis.tex").touch()
    with pytest.raises(Conflict, match=r"found thesis\.tex"):
        demo.prepare_folder(folder)
    assert (folder / "thesis.tex").exists()

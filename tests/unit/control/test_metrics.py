"""The scheduler's metrics: counted by what happened, written as a whole, seldom."""

from __future__ import annotations

from pathlib import Path

import pytest

from scheduler_core.cycle import run_cycle
from scheduler_core.model.observation import Observation
from scheduler_core.model.params import Params
from tests.unit.core.builders import cluster, queued, seen, spec
from tests.unit.core.test_cycle import Fixed
from tests.unit.core.test_fence import Poisoned
from voda_flows.control.metrics import FILE_VARIABLE, Metrics, metrics_file

PARAMS = Params()


def world() -> Fixed:
    """Three jobs that wait."""
    found: Observation = seen(cluster(4), *[queued(spec(name)) for name in "abc"])
    return Fixed(observation=found)


def rounds(metrics: Metrics, there: Fixed, decider: Poisoned, count: int) -> None:
    """So many rounds of a quarter of a second each."""
    for _ in range(count):
        before = there.target
        metrics.note(run_cycle(there, there, there, PARAMS, decider), before, 0.25)


def test_rounds_are_counted_by_what_they_decided(tmp_path: Path) -> None:
    """A kept round is no decision, one job is left out, and the time of all rounds is summed up."""
    file = tmp_path / "metrics" / "scheduler.prom"
    moments = iter(range(0, 1_000, 20))
    metrics = Metrics(file, clock=lambda: float(next(moments)))

    rounds(metrics, world(), Poisoned(poison="b"), 3)

    assert [line for line in file.read_text().splitlines() if not line.startswith("#")] == [
        'voda_scheduler_decisions_total{kind="Fenced"} 0',
        'voda_scheduler_decisions_total{kind="Full"} 1',
        'voda_scheduler_decisions_total{kind="Waiting"} 0',
        "voda_scheduler_plans_fenced_total 0",
        'voda_scheduler_quarantined_jobs{stage="decide"} 1',
        'voda_scheduler_quarantined_jobs{stage="plan"} 0',
        "voda_scheduler_fenced_since_seconds 0.000",
        "voda_scheduler_round_seconds_sum 0.750000",
        "voda_scheduler_round_seconds_count 3",
    ]
    assert [path.name for path in file.parent.iterdir()] == ["scheduler.prom"]


def test_a_fence_is_counted_when_it_was_tried(tmp_path: Path) -> None:
    """Rounds that wait for the next try count nothing; since when decisions fail is told."""
    file = tmp_path / "scheduler.prom"

    rounds(Metrics(file), world(), Poisoned(poison="abc"), 3)

    lines = file.read_text().splitlines()
    assert 'voda_scheduler_decisions_total{kind="Fenced"} 1' in lines
    assert "voda_scheduler_fenced_since_seconds 1000.000" in lines


def test_rounds_in_which_nothing_happens_are_written_seldom(tmp_path: Path) -> None:
    """Idle, the file is written once in fifteen seconds."""
    file, now_s = tmp_path / "scheduler.prom", [0.0]
    metrics, there = Metrics(file, clock=lambda: now_s[0]), world()
    rounds(metrics, there, Poisoned(poison=""), 1)
    file.unlink()

    now_s[0] = 14.0
    rounds(metrics, there, Poisoned(poison=""), 1)
    assert not file.exists()
    now_s[0] = 15.0
    rounds(metrics, there, Poisoned(poison=""), 1)
    assert file.exists()


def test_a_disk_that_takes_nothing_stops_nothing(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """It is said once."""
    (tmp_path / "file").write_text("no folder")
    moments = iter(range(0, 1_000, 20))
    metrics = Metrics(tmp_path / "file" / "scheduler.prom", clock=lambda: float(next(moments)))

    rounds(metrics, world(), Poisoned(poison=""), 3)

    assert caplog.text.count("metrics=lost") == 1


def test_where_metrics_go() -> None:
    """Beside the state, unless said otherwise; nowhere without either."""
    assert metrics_file({"VODA_HOME": "/h"}) == Path("/h/metrics/scheduler.prom")
    assert metrics_file({"VODA_HOME": "/h", FILE_VARIABLE: "/m/x.prom"}) == Path("/m/x.prom")
    assert metrics_file({}) is None

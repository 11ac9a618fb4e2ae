"""Figures that only count are measured at the same time; those that take time on the clock, before and alone."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.show import record
from tests.show.__main__ import Run
from tests.show.registry import Figure, Row, information


@pytest.fixture(autouse=True)
def scratch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Records go where nobody else's are."""
    monkeypatch.setattr(record, "FOLDER", tmp_path)


def test_lanes_run_at_once_after_what_is_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """The rows come in that order, lane by lane."""
    both, done = threading.Barrier(2, timeout=60), []

    def measured(name: str, *, meets: bool) -> Figure:
        def measure(_: bool) -> list[Row]:
            if meets:
                both.wait()
            done.append(name)
            return [information(name, "1")]

        return Figure(area="x", name=name, measure=measure, in_quick=True, lane=name[0] if meets else "")

    run = Run(state="s", quick=True, again=False)

    def in_a_thread(self: Run, figures: Sequence[Figure]) -> list[Row]:
        return self._in_turn(figures)

    monkeypatch.setattr(Run, "_in_a_process", in_a_thread)
    rows = run.rows([measured("a1", meets=True), measured("alone", meets=False), measured("b1", meets=True)])

    assert done[0] == "alone"
    assert [row.figure for row in rows] == ["alone", "a1", "b1"]


def test_a_lane_whose_process_tells_nothing_does_not_hold(capfd: pytest.CaptureFixture[str]) -> None:
    """It ended before it could: here there is no such area."""
    lost = Figure(area="no such area", name="lost", measure=lambda _: [], in_quick=True, lane="b")
    kept = Figure(area="x", name="kept", measure=lambda _: [information("kept", "1")], in_quick=True, lane="a")

    kept_row, lost_row = Run(state="s", quick=True, again=False).rows([kept, lost])

    assert (kept_row.holds, lost_row) == (
        True,
        Row(figure="lost", value="ended with 2", must_be="measured", holds=False),
    )
    assert "expected an area that has figures" in capfd.readouterr().err

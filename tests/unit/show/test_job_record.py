"""What a job left, held against the bounds: the judge of the kill runs is judged here."""

from __future__ import annotations

import json
from pathlib import Path

from tests.e2e.job_record import Loss, epochs, loss, verdicts


def _leave(root: Path, segment: int, rows: list[tuple[str, int, int, int]], *, lost: tuple[int, ...] = ()) -> None:
    """A segment's rows, each (kind, step, epoch, samples), and the losses that its driver wrote down."""
    folder = root / f"segment-{segment}"
    folder.mkdir()
    keys = ("kind", "step", "epoch", "samples")
    lines = [json.dumps(dict(zip(keys, row, strict=True))) + "\n" for row in rows]
    (folder / "reports.jsonl").write_text("".join(lines) + '{"kind": "st')  # cut where its writer was killed
    (folder / "resizes.jsonl").write_text("".join(json.dumps({"steps_lost": steps}) + "\n" for steps in lost))
    (folder / "verdict.json").write_text(json.dumps({"state": "lost" if segment < 10 else "done"}))


def test_a_job_without_a_loss(tmp_path: Path) -> None:
    """Steps go on by one, within a segment and from one to the next; a segment without steps is passed over."""
    _leave(tmp_path, 0, [("step", 1, 0, 10), ("step", 2, 0, 20), ("epoch", 2, 0, 20)])
    _leave(tmp_path, 1, [])
    _leave(tmp_path, 10, [("step", 3, 1, 30), ("step", 4, 1, 40), ("epoch", 4, 1, 40)])

    assert loss(tmp_path) == Loss(in_place=0, between=0)
    assert epochs(tmp_path, 20) == [0, 1]
    assert verdicts(tmp_path) == ["lost", "lost", "done"]


def test_losses_are_seen_where_they_were(tmp_path: Path) -> None:
    """By rows that come again, and by what the driver says; from one segment to the next by rows alone."""
    _leave(tmp_path, 0, [("step", 1, 0, 10), ("step", 2, 0, 20), ("step", 1, 0, 10), ("step", 2, 0, 20)], lost=(0, 1))
    _leave(tmp_path, 1, [("step", 3, 0, 30), ("step", 4, 0, 40), ("step", 5, 0, 50)])
    _leave(tmp_path, 2, [("step", 3, 0, 30)])

    assert loss(tmp_path) == Loss(in_place=2, between=3)


def test_an_epoch_counts_by_its_last_row(tmp_path: Path) -> None:
    """One whose last row tells of too few or too many samples was not done once."""
    _leave(tmp_path, 0, [("epoch", 2, 0, 20), ("epoch", 4, 1, 41)])
    _leave(tmp_path, 1, [("epoch", 2, 0, 19), ("epoch", 4, 1, 40), ("epoch", 6, 2, 60)])

    assert epochs(tmp_path, 20) == [1, 2]

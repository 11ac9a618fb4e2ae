"""What a job left on its volume, held against the design's bounds: epochs done once, steps lost.

In: the folder of a job's checkpoints. Out: a ``Verdict`` in numbers. Rows are those of ``train_life.py``: one for each
step, one for each epoch.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

Row = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Loss:
    """Steps that were made again.

    Attributes:
        in_place: most at once where a rank survived.
        between: most from one segment to the next.
    """

    in_place: int
    between: int


def loss(root: Path) -> Loss:
    """The worst loss of a job."""
    steps = [[row["step"] for row in rows if row["kind"] == "step"] for rows in _segments(root)]
    steps = [of_segment for of_segment in steps if of_segment]
    within = [before + 1 - after for of_segment in steps for before, after in pairwise(of_segment)]
    told = [int(record["steps_lost"]) for path in root.glob("segment-*/resizes.jsonl") for record in _lines(path)]
    across = [before[-1] + 1 - after[0] for before, after in pairwise(steps)]
    return Loss(in_place=max([0, *within, *told]), between=max([0, *across]))


def epochs(root: Path, samples: int) -> list[int]:
    """Epochs of which the last row says that each of the samples was trained on once, and no epoch before was left out.

    A crash makes steps again, and rows too: of two rows for one epoch the later one counts.
    """
    rows = [row for rows in _segments(root) for row in rows if row["kind"] == "epoch"]
    last = {row["epoch"]: row["samples"] for row in rows}
    return sorted(epoch for epoch, seen in last.items() if seen == (epoch + 1) * samples)


def verdicts(root: Path) -> list[str]:
    """What the checkpoint step made of its segments: ``done``, ``resize``, ``lost`` or ``failed``."""
    paths = [folder / "verdict.json" for folder in _folders(root)]
    return [json.loads(path.read_text())["state"] for path in paths if path.exists()]


def last_words(root: Path) -> str:
    """What the checkpoint step said of its last segment."""
    found = [json.loads((folder / "verdict.json").read_text()) for folder in _folders(root)[-1:]]
    return str(found[0]["message"]) if found else ""


def _folders(root: Path) -> list[Path]:
    return sorted(root.glob("segment-*"), key=lambda path: int(path.name.split("-")[1]))


def _segments(root: Path) -> list[list[Row]]:
    return [_lines(folder / "reports.jsonl") for folder in _folders(root)]


def _lines(path: Path) -> list[Row]:
    """Whole lines; the last one may be cut where its writer was killed."""
    if not path.exists():
        return []
    return [json.loads(line) for line in path.read_text().splitlines(keepends=True) if line.endswith("\n")]

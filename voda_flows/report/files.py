"""What was left beside a job's checkpoints: report rows, resize records, how each segment ended and its verdict.

Reads files only. A line that was torn by a crash is left out: the rest still counts.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from voda_flows.objects import Object
from voda_flows.report.lives import JobLife


@dataclass(frozen=True, slots=True, kw_only=True)
class SegmentFiles:
    """The files of one segment.

    Attributes:
        rows: Report rows, oldest first (schema in workloads/README.md).
        resizes: Resize records, oldest first (docs/contracts.md, section 5).
        end: What the driver said at its end, empty before.
        verdict: What the checkpoint step made of it, empty before.
    """

    rows: tuple[Object, ...] = ()
    resizes: tuple[Object, ...] = ()
    end: Mapping[str, object] = field(default_factory=dict)
    verdict: Mapping[str, object] = field(default_factory=dict)


def job_folder(home: Path, life: JobLife) -> Path:
    """Where local mode keeps a job's checkpoints."""
    uid = life.id.removesuffix(f"/{life.name}")
    return home / "volumes" / life.asked.get("volume", "voda") / life.namespace / uid / life.name


def read_files(folder: Path) -> dict[int, SegmentFiles]:
    """The files of every segment by its number; empty where there are none yet."""
    found = {}
    for path in folder.glob("segment-*"):
        number = path.name.removeprefix("segment-")
        if number.isdigit():
            found[int(number)] = SegmentFiles(
                rows=_lines(path / "reports.jsonl"),
                resizes=_lines(path / "resizes.jsonl"),
                end=_document(path / "end.json"),
                verdict=_document(path / "verdict.json"),
            )
    return dict(sorted(found.items()))


def read_ends(folder: Path) -> dict[int, Object]:
    """What drivers said at the ends of their segments, by number; only of those that have ended, and said something."""
    found = {}
    for path in folder.glob("segment-*/end.json"):
        number = path.parent.name.removeprefix("segment-")
        if number.isdigit() and (end := _document(path)):
            found[int(number)] = end
    return dict(sorted(found.items()))


def read_furthest(folder: Path) -> dict[int, float]:
    """Epochs done at the furthest point of each segment, as its driver keeps them before it shows them, by number."""
    found = {}
    for path in folder.glob("segment-*/progress.json"):
        number, furthest = path.parent.name.removeprefix("segment-"), _document(path).get("furthest")
        if number.isdigit() and isinstance(furthest, int | float):
            found[int(number)] = float(furthest)
    return dict(sorted(found.items()))


def _lines(path: Path) -> tuple[Object, ...]:
    """The whole JSON objects of a file of lines."""
    try:
        text = path.read_text(encoding="utf-8", errors="replace")
    except FileNotFoundError:
        return ()
    return tuple(document for line in text.splitlines() if (document := _parsed(line)))


def _document(path: Path) -> Object:
    """The JSON object in a file, empty where there is none."""
    try:
        return _parsed(path.read_text(encoding="utf-8", errors="replace"))
    except FileNotFoundError:
        return {}


def _parsed(text: str) -> Object:
    """A JSON object, empty for anything else."""
    try:
        document = json.loads(text)
    except ValueError:
        return {}
    return document if isinstance(document, dict) else {}

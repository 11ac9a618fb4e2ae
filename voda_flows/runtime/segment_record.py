"""A segment told in one small text, for who has no access to the job's volume: an output of the checkpoint step.

    the segment's folder (end.json, resizes.jsonl, reports.jsonl) + verdict -> record text -> the same, thinned

A Workflow's status must stay below Argo's 1 MB, and an output stands in it twice (on the step's Retry node and on its
try's), so a record never takes more than ``RECORD_BYTES`` there: words are cut, resizes and report rows are thinned
evenly, their first and last always kept. Tables name their columns once; moments count from ``from_s``.
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from voda_flows.runtime.driver_progress import UNITS_PER_EPOCH

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

T = TypeVar("T")
Document = dict[str, Any]

VERSION = 1
#: As it stands in a status: quotes doubled by JSON within JSON. 30 segments have 144 kB of records so.
RECORD_BYTES = 2400
_RESIZES_BYTES = 1100
_WORDS_BYTES = 300
_NAME_LENGTH = 40
_MOST_METRICS = 4
_MOST_ROWS = 64
#: The metric that people look at first, where a script has several.
_FIRST_METRIC = "accuracy"
_METRIC = "metrics."
#: Whole numbers up to here are the same in every JSON reader.
_EXACT = 2**53
_LARGEST = 1e300
_MOST_EPOCHS = 1e10
_END = ("outcome", "step", "epoch", "message", "failed_starts")
_VERDICT = ("state", "step", "counted", "message", "failures")
_MOMENTS = ("time_s", "document_s", "last_step_s", "first_step_s")
_RESIZE_COLUMNS = (
    *("kind", "from_size", "to_size", "document_s", "last_step_s", "first_step_s"),
    *("still_s", "steps_lost"),
)
_ROW_COLUMNS = (
    *("kind", "time_s", "epoch", "step", "samples", "world_size"),
    *("loss", "validation_loss", "learning_rate"),
)


@dataclass(frozen=True)
class Told:
    """What a segment left.

    Attributes:
        segment: its number.
        end: the driver's last word, empty where there is none.
        verdict: what the checkpoint step made of it.
        progress: epochs done where it began and at its furthest point (``begin``, ``furthest``), empty where nobody
            kept them.
        resizes: resize records, oldest first.
        rows: report rows, oldest first.
        left_out: how many resizes and rows were not kept, by ``resizes`` and ``rows``.
    """

    segment: int
    end: Mapping[str, Any] = field(default_factory=dict)
    verdict: Mapping[str, Any] = field(default_factory=dict)
    progress: Mapping[str, Any] = field(default_factory=dict)
    resizes: tuple[Document, ...] = ()
    rows: tuple[Document, ...] = ()
    left_out: Mapping[str, int] = field(default_factory=dict)


def lines_of(path: Path) -> tuple[Document, ...]:
    """The whole JSON objects of a file of lines; none where there is no such file, a torn line is passed over."""
    try:
        text = path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ()
    return tuple(found for line in text.splitlines() if (found := _parsed(line)))


def record_text(told: Told) -> str:
    """A segment's record, of at most ``RECORD_BYTES`` in a status.

    Args:
        told: what is to be told; what does not fit is left out evenly, and counted.
    """
    moments = [row[name] for row in (*told.resizes, *told.rows) for name in _MOMENTS if _is_number(row.get(name))]
    from_s = math.floor(min(moments)) if moments else 0
    fixed = {
        "version": VERSION,
        "segment": told.segment,
        "from_s": from_s,
        "end": _chosen(told.end, _END),
        "verdict": _chosen(told.verdict, _VERDICT),
        **_progress(told.progress),
    }

    def resizes(count: int) -> Document:
        return _table(_thinned(told.resizes, count), _RESIZE_COLUMNS, from_s)

    def with_rows(count: int) -> Document:
        rows = _table(_thinned_rows(told.rows, count), _columns_of(told.rows), from_s)
        left_out = {"resizes": len(told.resizes) - kept, "rows": len(told.rows) - len(rows.get("values", ()))}
        return {**fixed, "resizes": resizes(kept), "rows": rows, "left_out": left_out}

    kept = _most(len(told.resizes), lambda count: stored_bytes(_text(resizes(count))) <= _RESIZES_BYTES)
    most_rows = min(len(told.rows), _MOST_ROWS)
    return _text(with_rows(_most(most_rows, lambda count: stored_bytes(_text(with_rows(count))) <= RECORD_BYTES)))


def told_by(text: str) -> Told | None:
    """What a record tells; None where it is none, or of a version that is not known here."""
    record = _parsed(text)
    if record.get("version") != VERSION or not isinstance(record.get("segment"), int):
        return None
    from_s = float(record["from_s"]) if _is_number(record.get("from_s")) else 0.0
    own = {"segment": record["segment"]}
    return Told(
        segment=record["segment"],
        end=_object(record.get("end")),
        verdict=_object(record.get("verdict")),
        resizes=tuple(_untabled(record.get("resizes"), from_s)),
        rows=tuple({**row, **own} for row in _untabled(record.get("rows"), from_s)),
        left_out=_object(record.get("left_out")),
    )


def stored_bytes(text: str) -> int:
    """How many bytes a text takes as a value in a JSON document, by Go's escapes, which are the longest.

    >>> stored_bytes('{"a":1}')
    11
    """
    return len(json.dumps(text)) + 5 * sum(text.count(mark) for mark in "<>&")


def _progress(kept: Mapping[str, Any]) -> Document:
    """From where to where the segment came, in whole hundredths: five digits are too few for long jobs."""
    found: list[Any] = [kept.get("begin"), kept.get("furthest")]
    if not all(_is_number(epochs) and 0 <= epochs < _MOST_EPOCHS for epochs in found):
        return {}
    return {"progress": [round(epochs * UNITS_PER_EPOCH) for epochs in found]}


def _most(count: int, fits: Callable[[int], bool]) -> int:
    """How many fit, near enough to the most that would."""
    while count > 0 and not fits(count):
        count -= max(1, count // 8)
    return count


def _thinned(rows: Sequence[T], count: int) -> list[T]:
    """So many of the rows, evenly chosen; the first and the last among them, the last where it is only one."""
    if count >= len(rows):
        return list(rows)
    if count <= 1:
        return list(rows[-1:]) if count else []
    return [rows[round(index * (len(rows) - 1) / (count - 1))] for index in range(count)]


def _thinned_rows(rows: Sequence[Document], count: int) -> list[Document]:
    """So many report rows in their order: those of epochs before those of steps, which cover the same."""
    epochs = [index for index, row in enumerate(rows) if row.get("kind") == "epoch"]
    others = [index for index, row in enumerate(rows) if row.get("kind") != "epoch"]
    kept = _thinned(epochs, count) + _thinned(others, max(0, count - len(epochs)))
    return [rows[index] for index in sorted(kept)]


def _columns_of(rows: Iterable[Document]) -> tuple[str, ...]:
    """The columns of report rows, the script's metrics last."""
    names = {name for row in rows for name in _object(row.get("metrics")) if len(name) <= _NAME_LENGTH}
    chosen = sorted(names, key=lambda name: (name != _FIRST_METRIC, name))[:_MOST_METRICS]
    return (*_ROW_COLUMNS, *(f"{_METRIC}{name}" for name in chosen))


def _table(rows: Sequence[Document], columns: Sequence[str], from_s: float) -> Document:
    """Rows as a table; columns in which nothing stands are left out."""
    values = [[_cell(row, name, from_s) for name in columns] for row in rows]
    used = [index for index in range(len(columns)) if any(line[index] is not None for line in values)]
    if not used:
        return {}
    return {
        "columns": [columns[index] for index in used],
        "values": [[line[index] for index in used] for line in values],
    }


def _untabled(table: object, from_s: float) -> Iterable[Document]:
    """The rows of a table."""
    found = _object(table)
    columns, values = found.get("columns") or [], found.get("values") or []
    for line in values:
        row: Document = {}
        for name, value in zip(columns, line):
            if name.startswith(_METRIC):
                row.setdefault("metrics", {})[name[len(_METRIC) :]] = value
            else:
                row[name] = round(value + from_s, 3) if name in _MOMENTS and _is_number(value) else value
        yield row


def _cell(row: Document, name: str, from_s: float) -> object:
    """One value, as short as it may be without becoming another to people."""
    is_metric = name.startswith(_METRIC)
    value: Any = _object(row.get("metrics")).get(name[len(_METRIC) :]) if is_metric else row.get(name)
    if isinstance(value, str):
        return value[:_NAME_LENGTH]
    if not _is_number(value):
        return None
    return round(value - from_s, 3) if name in _MOMENTS else _number(value)


def _chosen(document: Mapping[str, Any], names: Sequence[str]) -> Document:
    """What is known by these names; words are cut where they are long."""
    found = {name: document[name] for name in names if name in document}
    told = {name: _cut(value) if isinstance(value, str) else _number(value) for name, value in found.items()}
    return {name: value for name, value in told.items() if value is not None}


def _cut(text: str) -> str:
    """A text's beginning, of a bounded size."""
    cut = text
    while stored_bytes(_text(cut)) > _WORDS_BYTES:
        cut = cut[: len(cut) * 7 // 8]
    return cut if cut == text else f"{cut[:-1]}\u2026"


def _number(value: Any) -> object:  # noqa: ANN401 - any JSON
    """A number in few digits, a truth as it is, None for anything else."""
    if isinstance(value, bool) or (isinstance(value, int) and abs(value) < _EXACT):
        return value
    return float(f"{value:.5g}") if _is_number(value) else None


def _text(value: object) -> str:
    return json.dumps(value, separators=(",", ":"), allow_nan=False)


def _parsed(text: str) -> Document:
    """A JSON object, empty for anything else."""
    try:
        found = json.loads(text)
    except ValueError:
        return {}
    return _object(found)


def _object(value: object) -> Document:
    return value if isinstance(value, dict) else {}


def _is_number(value: Any) -> bool:  # noqa: ANN401 - any JSON
    return isinstance(value, (int, float)) and not isinstance(value, bool) and -_LARGEST < value < _LARGEST

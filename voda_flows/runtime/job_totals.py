"""What a job has come to so far, in three words: its last metric, its resizes, its GPU seconds. Argo's UI shows them.

In: the job's folder. The checkpoint step leaves them as outputs, so those of the last one are the job's own.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from voda_flows.runtime import checkpoints
from voda_flows.runtime.driver_resizes import STOP
from voda_flows.runtime.reports import REPORTS, last_metric
from voda_flows.runtime.segment_record import lines_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

Document = dict[str, Any]

RESIZES = "resizes.jsonl"
END = "end.json"
#: What a change is called that ends one segment, and what one that begins a later segment.
_PREEMPT, _RESUME, _START = "preempt", "resume", "start"
NONE = "none"


@dataclass(frozen=True)
class Totals:
    """A job so far.

    Attributes:
        metric: the most telling metric and its last value, ``none`` before the first.
        resizes: changes of its size by kind, ``none`` where there was none.
        gpu_seconds: ranks times seconds of training; standing still is part of it, waiting for pods is not.
    """

    metric: str
    resizes: str
    gpu_seconds: float


def totals(root: Path) -> Totals:
    """Sum up a job.

    Args:
        root: its folder, with one for each segment.
    """
    folders = {number: checkpoints.segment_folder(root, number) for number in checkpoints.segments(root)}
    records = {number: lines_of(folder / RESIZES) for number, folder in folders.items()}
    counted = Counter(kind for number, found in records.items() for kind in _kinds(number, found))
    return Totals(
        metric=_metric([folders[number] for number in sorted(folders, reverse=True)]),
        resizes=", ".join(f"{count} {kind}" for kind, count in sorted(counted.items())) or NONE,
        gpu_seconds=sum(_gpu_seconds(found, _end_s(folders[number])) for number, found in records.items()),
    )


def _metric(newest_first: Sequence[Path]) -> str:
    """The last metric that any segment reported."""
    for folder in newest_first:
        name, value = last_metric(lines_of(folder / REPORTS))
        if value is not None:
            return f"{name} {value:.4g}"
    return NONE


def _kinds(segment: int, records: Sequence[Document]) -> Iterator[str]:
    """The changes of size in one segment, as people count them."""
    for record in records:
        kind = str(record.get("kind"))
        if kind == STOP:
            yield _PREEMPT
        elif kind != _START:
            yield kind
        elif segment > 0:
            yield _RESUME


def _gpu_seconds(records: Sequence[Document], end_s: float | None) -> float:
    """Ranks times seconds between one change and the next; the last one holds until the segment's end."""
    total, size, since_s = 0.0, 0, 0.0
    for record in records:
        at_s = _moment(record)
        if at_s is None:
            continue
        total += size * max(0.0, at_s - since_s)
        size, since_s = int(record.get("to_size") or 0), at_s
    return total if end_s is None else total + size * max(0.0, end_s - since_s)


def _moment(record: Document) -> float | None:
    """When a change took effect: its first step, or the last one before a stop."""
    names = ("last_step_s", "document_s") if record.get("kind") == STOP else ("first_step_s", "document_s")
    return next((float(record[name]) for name in names if isinstance(record.get(name), (int, float))), None)


def _end_s(folder: Path) -> float | None:
    """When a segment ended: its driver's last word, else its last report row; None where nobody knows."""
    try:
        return (folder / END).stat().st_mtime
    except OSError:
        times = [row.get("time_s") for row in lines_of(folder / REPORTS)[-1:]]
        return next((float(time_s) for time_s in times if isinstance(time_s, (int, float))), None)

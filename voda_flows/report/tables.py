"""The record's tables as HTML: jobs, times, what broke, everything that happened. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from typing import Final

from voda_flows.report import table
from voda_flows.report.events import RESIZES, Event
from voda_flows.report.record import JobRecord, Record
from voda_flows.report.times import moment

#: With more jobs than this only what is out of the ordinary is listed, and the newest of it.
_FEW: Final = 60
_MOST: Final = 1000
_TELLING: Final = (*RESIZES, "crash", "evict", "refuse", "lost", "retry")
_BROKEN: Final = ("crash", "evict", "refuse", "lost", "retry")

_Row = tuple[int, JobRecord, Event]


def jobs(made: Record) -> str:
    """One line per job."""
    rows = []
    for number, (job, cells) in enumerate(zip(made.jobs, table.rows(made, wide=True), strict=True)):
        _, phase, *rest = map(escape, cells)
        mood = "good" if job.life.phase == "Succeeded" else "bad" if job.life.phase in ("Failed", "Error") else ""
        rows.append(_line(number, job, [f'<td class="{mood}">{phase}</td>', *(f"<td>{cell}</td>" for cell in rest)]))
    heads = [name if name == "JCT" else name.capitalize() for name in table.WIDE]
    return f"<section><h2>Jobs</h2>{_table(heads, rows, 'A line for each job')}</section>"


def times(made: Record) -> str:
    """How long jobs took, in all and in parts."""
    rows = ["<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in cells) + "</tr>" for cells in table.times(made)]
    heads = [name if name == "P95" else name.capitalize() for name in table.TIME_HEADERS]
    return _table(heads, rows, "How long jobs took") if rows else "<p>No job succeeded in this span.</p>"


def broken(made: Record) -> str:
    """What went wrong, empty where nothing did."""
    found = [row for row in _happened(made) if row[2].kind in _BROKEN or _has_failed(row)]
    if not found:
        return ""
    rows = _lines(found[-_MOST:])
    note = _note(len(found), len(rows))
    heads = ("At (UTC)", "Job", "What", "Steps lost", "Why")
    return f"<section><h2>What went wrong</h2>{note}{_table(heads, rows, 'What went wrong')}</section>"


def happened(made: Record) -> str:
    """Everything that happened, in order; with many jobs, the changes of their sizes and what went wrong."""
    few = len(made.jobs) <= _FEW
    found = [row for row in _happened(made) if few or row[2].kind in _TELLING]
    rows = _lines(found[-_MOST:])
    title = "Everything that happened" if few else "Resizes and what went wrong"
    heads = ("At (UTC)", "Job", "What", "Stood still, steps lost", "Why")
    return (
        f"<section><details{' open' if few else ''}><summary>{title}</summary>"
        f"{_note(len(found), len(rows))}{_table(heads, rows, title)}</details></section>"
    )


def _happened(made: Record) -> list[_Row]:
    """Events of the span with their jobs, in order."""
    found = [
        (number, job, event)
        for number, job in enumerate(made.jobs)
        for event in job.happened
        if made.from_s <= event.at_s <= made.to_s
    ]
    return sorted(found, key=lambda row: (row[2].at_s, row[0]))


def _has_failed(row: _Row) -> bool:
    """Whether this is the end of a job that did not succeed."""
    _, job, event = row
    return event.kind == "end" and job.life.phase != "Succeeded"


def _lines(found: Iterable[_Row]) -> list[str]:
    """A line per event."""
    rows = []
    for number, job, event in found:
        costs = [f"{event.still_s:.2f} s"] if event.still_s is not None else []
        costs += [f"{event.steps_lost} steps lost"] if event.steps_lost else []
        cells = [f"<td>{escape(event.text)}</td>", f"<td>{', '.join(costs)}</td>", f"<td>{escape(event.reason)}</td>"]
        rows.append(_line(number, job, cells, before=f"<td>{moment(event.at_s)}</td>"))
    return rows


def _note(count: int, shown: int) -> str:
    """What was left out."""
    return f"<p>The last {shown} of {count}; <code>voda report -o json</code> has all.</p>" if shown < count else ""


def _line(number: int, job: JobRecord, cells: Sequence[str], *, before: str = "") -> str:
    """A line of a job, which the filter finds by the job's name."""
    name = f'<td class="job{number % 8}"><i></i>{escape(job.life.label)}</td>'
    return f'<tr data-of="{number}">{before}{name}{"".join(cells)}</tr>'


def _table(heads: Iterable[str], rows: Sequence[str], title: str) -> str:
    """A table in a box of its own that scrolls where it is long."""
    head = "".join(f'<th scope="col">{escape(name)}</th>' for name in heads)
    return (
        f'<div class="box" tabindex="0" role="region" aria-label="{escape(title)}">'
        f"<table><thead><tr>{head}</tr></thead><tbody>{''.join(rows)}</tbody></table></div>"
    )

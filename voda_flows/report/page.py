"""The record as one HTML page that needs no network: numbers, GPU timeline, jobs over time, curves, every event.

Pure, but for the two files of style and script that are read from this folder.
"""

from __future__ import annotations

from html import escape
from pathlib import Path
from typing import Final

from voda_flows.report import table, timeline
from voda_flows.report.curves import chart, curves
from voda_flows.report.record import JobRecord, Record
from voda_flows.report.svg import clock
from voda_flows.report.times import short, text

_FOLDER: Final = Path(__file__).parent
_CHARTS: Final = (
    ("accuracy", ("accuracy",), 1.0),
    ("loss", ("validation_loss", "loss"), None),
    ("samples/s", ("samples_per_s",), None),
)
_PATTERNS: Final = """<svg width="0" height="0" style="position:absolute;min-width:0" aria-hidden="true"><defs>
<pattern id="wait" width="6" height="6" patternUnits="userSpaceOnUse" patternTransform="rotate(45)">
<rect width="6" height="6" fill="var(--row)"/>
<rect width="2" height="6" fill="var(--soft)" opacity=".55"/></pattern>
<pattern id="warming" width="6" height="6" patternUnits="userSpaceOnUse" patternTransform="rotate(45)">
<rect width="6" height="6" fill="var(--sheet)" opacity=".45"/>
<rect width="2.5" height="6" fill="var(--sheet)" opacity=".55"/></pattern></defs></svg>"""


def page(made: Record, title: str) -> str:
    """The page.

    Args:
        made: The record.
        title: What it is about.

    Returns:
        HTML with style and script inside.
    """
    style, script = ((_FOLDER / name).read_text(encoding="utf-8") for name in ("page.css", "page.js"))
    body = "\n".join([_head(made, title), _facts(made), _timeline(made), _table(made), _curves(made), _events(made)])
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>{escape(title)}</title>\n'
        f'<meta name="viewport" content="width=device-width, initial-scale=1">\n<style>\n{style}</style></head>\n'
        f'<body>{_PATTERNS}<main>\n{body}\n</main><div id="tip" role="tooltip"></div>\n'
        f"<script>\n{script}</script></body></html>\n"
    )


def _head(made: Record, title: str) -> str:
    """Title and when."""
    about = f"{text(made.from_s)}, {short(made.to_s - made.from_s)}"
    return f'<header><h1>{escape(title)}</h1><p>{about}</p><button id="theme">Light / dark</button></header>'


def _facts(made: Record) -> str:
    """The few numbers that say it all."""
    numbers = [job.numbers for job in made.jobs]
    done = sum(job.life.phase == "Succeeded" for job in made.jobs)
    in_place = sum(count for one in numbers for kind, count in one.resizes.items() if kind in ("grow", "shrink"))
    preempted = sum(one.resizes.get("preempt", 0) for one in numbers)
    facts = {
        "Jobs succeeded": f"{done} of {len(made.jobs)}",
        "GPUs held": f"{made.utilisation:.0%}",
        "Resized in place": f"{in_place}×",
        "Preempted, resumed": f"{preempted}×",
        "Stood still in place": f"{sum(one.still_s for one in numbers):.2f} s",
        "Steps lost": str(sum(one.steps_lost for one in numbers)),
    }
    rows = "".join(f"<div><dt>{name}</dt><dd>{value}</dd></div>" for name, value in facts.items())
    return f'<dl class="facts">{rows}</dl>'


def _timeline(made: Record) -> str:
    """Slots, jobs, and how much was held, under each other on one time axis."""
    legend = "".join(
        f'<li class="job{number % 8}" data-job="{number}"><i></i>{escape(job.life.label)}</li>'
        for number, job in enumerate(made.jobs)
    )
    signs = "▲ grown &nbsp;▼ shrunk &nbsp;■ preempted &nbsp;▶ resumed &nbsp;✔ done; hatched: warming up or waiting"
    return (
        "<section><h2>Who had which GPU when</h2>"
        "<p>Each row is a GPU slot of a node. Point at a bar or a mark for more.</p>"
        f'<ul class="legend">{legend}<li class="signs">{signs}</li></ul>'
        f"{timeline.slots(made)}{timeline.lanes(made)}{timeline.held(made)}</section>"
    )


def _table(made: Record) -> str:
    """One line per job."""
    head = "".join(f"<th>{escape(name if name == 'JCT' else name.capitalize())}</th>" for name in table.HEADERS)
    rows = []
    for number, (job, cells) in enumerate(zip(made.jobs, table.rows(made), strict=True)):
        first, phase, *rest = map(escape, cells)
        mood = "good" if job.life.phase == "Succeeded" else "bad" if job.life.phase in ("Failed", "Error") else ""
        rows.append(
            f'<tr><td class="job{number % 8}"><i></i>{first}</td><td class="{mood}">{phase}</td>'
            + "".join(f"<td>{cell}</td>" for cell in rest)
            + "</tr>"
        )
    return (
        f"<section><h2>Jobs</h2><table><thead><tr>{head}</tr></thead><tbody>{''.join(rows)}</tbody></table></section>"
    )


def _curves(made: Record) -> str:
    """What the jobs reported."""
    charts = [chart(made, curves(made, names), title, top=top) for title, names, top in _CHARTS]
    drawn = "".join(charts)
    note = "<p>On the same time axis: a gap is a job that waited at its checkpoint.</p>"
    return f"<section><h2>What the jobs reported</h2>{note}{drawn}</section>" if drawn else ""


def _events(made: Record) -> str:
    """Everything that happened, in order."""
    happened = sorted(
        ((event.at_s, number, job, event) for number, job in enumerate(made.jobs) for event in job.happened),
        key=lambda row: row[:2],
    )
    rows = "".join(
        f"<tr><td>{clock(at_s - made.from_s)}</td>{_job(job, number)}<td>{escape(event.text)}</td>"
        f"<td>{'' if event.still_s is None else f'{event.still_s:.2f} s'}</td><td>{escape(event.reason)}</td></tr>"
        for at_s, number, job, event in happened
    )
    head = "<tr><th>At</th><th>Job</th><th>What</th><th>Stood still</th><th>Why</th></tr>"
    return (
        "<section><details open><summary>Everything that happened</summary>"
        f"<table><thead>{head}</thead><tbody>{rows}</tbody></table></details></section>"
    )


def _job(job: JobRecord, number: int) -> str:
    """A cell with a job's name and colour."""
    return f'<td class="job{number % 8}"><i></i>{escape(job.life.label)}</td>'

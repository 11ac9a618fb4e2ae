"""The record as one HTML page that needs no network: numbers, GPU timeline, jobs over time, times, curves, events.

Pure, but for the two files of style and script that are read from this folder. With hundreds of jobs lanes are low,
curves are those of the longest jobs, and lists hold what is out of the ordinary: the page stays small and readable.
"""

from __future__ import annotations

from html import escape
from pathlib import Path
from typing import Final

from voda_flows.objects import WORKFLOW_ENDED
from voda_flows.report import lanes, spread, tables, timeline
from voda_flows.report.curves import MOST, chart, curves
from voda_flows.report.frame import unit
from voda_flows.report.record import Record
from voda_flows.report.times import short, text

_FOLDER: Final = Path(__file__).parent
#: More colours than this are no legend.
_NAMES: Final = 12
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
    sections = (_timeline, _lanes, _times, _curves, tables.jobs, tables.broken, tables.happened)
    body = "\n".join(
        [_head(made, title), _facts(made), *((part(made) for part in sections) if made.jobs else [_EMPTY])]
    )
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>{escape(title)}</title>\n'
        f'<meta name="viewport" content="width=device-width, initial-scale=1">\n<style>\n{style}</style></head>\n'
        f'<body>{_PATTERNS}<main>\n{body}\n</main><div id="tip" role="status"></div>\n'
        f"<script>\n{script}</script></body></html>\n"
    )


_EMPTY: Final = "<section><p>No job lived in this span: nothing waited, ran or ended.</p></section>"


def _head(made: Record, title: str) -> str:
    """Title, from when to when, and what the reader can set."""
    about = f"{text(made.from_s)} to {text(made.to_s)}, {short(made.to_s - made.from_s)}"
    names = "".join(
        f'<option value="{escape(job.life.label)}" data-job="{n}"></option>' for n, job in enumerate(made.jobs)
    )
    return (
        f'<header><h1>{escape(title)}</h1><p>{about}</p><label class="find">Find a job '
        f'<input id="find" type="search" list="names"></label><datalist id="names">{names}</datalist>'
        '<button id="theme" type="button">Light / dark</button></header>'
    )


def _facts(made: Record) -> str:
    """The few numbers that say it all."""
    numbers = [job.numbers for job in made.jobs]
    phases = [job.life.phase for job in made.jobs]
    in_place = sum(count for one in numbers for kind, count in one.resizes.items() if kind in ("grow", "shrink"))
    waiting = phases.count("Queued")
    facts = {
        "Jobs succeeded": f"{phases.count('Succeeded')} of {len(phases)}",
        "Failed": str(phases.count("Failed") + phases.count("Error")),
        "Still running": str(sum(phase not in WORKFLOW_ENDED for phase in phases) - waiting),
        "Still waiting": str(waiting),
        "GPUs held": f"{made.utilisation:.0%}",
        "Resized in place": f"{in_place}×",
        "Preempted": f"{sum(one.resizes.get('preempt', 0) for one in numbers)}×",
        "Stood still in place": f"{sum(one.still_s for one in numbers):.2f} s",
        "Steps lost": str(sum(one.steps_lost for one in numbers)),
    }
    rows = "".join(f"<div><dt>{name}</dt><dd>{value}</dd></div>" for name, value in facts.items())
    return f'<dl class="facts">{rows}</dl>'


def _timeline(made: Record) -> str:
    """Slots, how much of them was held, and who waited, under each other on one time axis."""
    return (
        "<section><h2>Who had which GPU when</h2>"
        f"<p>A row is a GPU slot of a node, a bar a worker; hatched while it warms up. Across: {unit(made)}.</p>"
        f"{_legend(made)}{timeline.slots(made)}{timeline.held(made)}{timeline.waiting(made)}</section>"
    )


def _legend(made: Record) -> str:
    """Which colour is which job, while colours are enough."""
    if len(made.jobs) > _NAMES:
        return '<p class="soft">Colours repeat: point at a bar, or use the arrow keys in a picture, for its job.</p>'
    items = "".join(
        f'<li class="job{number % 8}" data-job="{number}"><i></i>{escape(job.life.label)}</li>'
        for number, job in enumerate(made.jobs)
    )
    return f'<ul class="legend">{items}</ul>'


def _lanes(made: Record) -> str:
    """A lane for each job."""
    few = len(made.jobs) <= lanes.FEW
    signs = (
        "▲ grown, ▼ shrunk, ■ preempted, ▶ resumed, ↻ crashed rank replaced, ✔ done, ✖ failed or lost"
        if few
        else '<span class="key grow"></span>grown or shrunk <span class="key preempt"></span>preempted, failed or lost '
        '<span class="key end"></span>done <span class="key"></span>resumed'
    )
    return (
        "<section><h2>Each job</h2><p>Height: how many GPUs it had. Hatched: waiting at its gate. "
        f'Dashed line: progress from 0 % (foot) to 100 % (top).</p><p class="signs">{signs}</p>'
        f'<div class="{"" if few else "scrolls"}">{lanes.lanes(made)}</div></section>'
    )


def _times(made: Record) -> str:
    """How long jobs took."""
    return (
        "<section><h2>How long jobs took</h2><p>Of those that succeeded in this span: from submission to end (JCT), "
        "which is the sum of queueing, time preempted, starting and training.</p>"
        f'<div class="pair">{tables.times(made)}{spread.spread(made.ended)}</div></section>'
    )


def _curves(made: Record) -> str:
    """What jobs reported, empty when none did."""
    pictures = "".join(chart(made, curves(made, names), title, top=top) for title, names, top in _CHARTS)
    which = f" The {MOST} that trained longest." if len(made.jobs) > MOST else ""
    return (
        f"<section><h2>What they reported</h2><p>Across: {unit(made)}.{which}</p>{pictures}</section>"
        if pictures
        else ""
    )

"""The live view as rich draws it: nodes and slots, jobs, queue, last decisions; whole on 80x24, useful on 45x16. Pure.

Only what is shown on a terminal imports this module, and with it rich.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from voda_flows.cli.columns import COLOURS, cut
from voda_flows.cli.snapshot import NodeView, Snapshot
from voda_flows.objects import WORKFLOW_ENDED
from voda_flows.report.lives import JobLife
from voda_flows.report.times import short

#: A progress bar beside its number, where there is room.
_BAR: Final = 14
_WIDE_BAR: Final = 40
#: Columns of the jobs with their least width, so that they stay where they are while jobs come and go.
_COLUMNS: Final = {"job": 10, "status": 9, "gpus": 5, "done": 4, "waited": 6, "age": 6}
#: Which of them are left out first where there is no room.
_GIVE_WAY: Final = ("waited", "age", "gpus", "done", "status")
_NODE: Final = 10
_SLOT, _LEAST_SLOT = 16, 4
_PALETTE: Final = ("cyan", "magenta", "yellow", "green", "blue", "red", "bright_cyan", "bright_magenta")


def picture(
    now: Snapshot, waiting: Sequence[JobLife], *, note: str = "", height: int = 24, width: int = 80
) -> RenderableType:
    """The live view.

    Args:
        now: The world.
        waiting: Jobs in the queue, in their order.
        note: What else is to be said, in a line.
        height: Lines there are; parts that would not fit are shortened, ended jobs first.
        width: Columns there are; what matters least is left out where there are few.

    Returns:
        Something that rich draws.
    """
    colours = {life.label: _PALETTE[number % len(_PALETTE)] for number, life in enumerate(now.lives)}
    room = max(4, height - len(now.nodes) - min(len(waiting), 4) - min(len(now.decisions), 3) - 8)
    head = [_head(now), *([Text(note, style="italic", no_wrap=True, overflow="ellipsis")] if note else [])]
    parts: list[RenderableType] = [*head, *(_node(node, colours, width) for node in now.nodes), Text()]
    parts.append(_jobs(now, colours, room, width))
    if waiting:
        parts += [
            Text("queue", style="bold"),
            *(_waits(life, place, now, width) for place, life in enumerate(waiting[:4], 1)),
        ]
    if now.decisions:
        parts += [
            Text("decisions", style="bold"),
            *(Text(f"  {text}", no_wrap=True, overflow="ellipsis") for text in now.decisions[-3:]),
        ]
    return Group(*parts)


def _head(now: Snapshot) -> Text:
    """The first line."""
    slots = sum(len(node.holders) for node in now.nodes)
    held = sum(holder != "" for node in now.nodes for holder in node.holders)
    return Text.assemble(("voda ", "bold"), now.clock, f"   {held} of {slots} slots held")


def _node(node: NodeView, colours: dict[str, str], width: int) -> Text:
    """A node's lines: its slots in the colours of their jobs, as wide as there is room."""
    name = cut(node.name, _NODE)
    room = max(1, width - _NODE - 1)
    each = max(_LEAST_SLOT, min(_SLOT, room // max(1, len(node.holders)) - 3))
    a_line = max(1, room // (each + 3))
    text = Text(f"{name:<{_NODE}}", no_wrap=True, overflow="ellipsis")
    for number, holder in enumerate(node.holders):
        if number and number % a_line == 0:
            text.append("\n" + " " * _NODE)
        style = f"black on {colours.get(holder, 'white')}" if holder else "dim"
        text.append(" ").append(f" {cut(holder or 'free', each):<{each}} ", style=style)
    return text if node.ready else text.append(" (takes nothing new)", style="dim")


def _jobs(now: Snapshot, colours: dict[str, str], room: int, width: int) -> Table:
    """The jobs' lines; those that go on first when there is not room for all."""
    shown = list(now.lives)
    for life in [one for one in now.lives if one.phase in WORKFLOW_ENDED]:
        if len(shown) > room:
            shown.remove(life)
    names = max([len(life.label) for life in shown[:room]], default=0)
    widths = _widths(width, names)
    table = Table(box=None, padding=(0, 1, 0, 0), pad_edge=False, show_edge=False)
    for header, size in widths.items():
        table.add_column(header, no_wrap=True, overflow="ellipsis", header_style="bold", width=size)
    for life in shown[:room]:
        cells = _cells(now, life, colours[life.label], widths)
        table.add_row(*(cells[header] for header in widths))
    return table


def _widths(width: int, names: int) -> dict[str, int]:
    """The columns that there is room for, each with its width; names have what is left.

    >>> list(_widths(45, 6)), _widths(45, 6)["job"] + 1 + sum(_COLUMNS[name] + 1 for name in ("status", "gpus", "done"))
    (['job', 'status', 'gpus', 'done', 'waited', 'age'], 32)
    """
    widths = dict(_COLUMNS)
    used = sum(widths.values()) + len(widths) - 1
    if used + _BAR + 1 <= width:
        widths["done"] += min(_WIDE_BAR, _BAR + max(0, width - used - _BAR - 40)) + 1
    for header in _GIVE_WAY:
        if sum(widths.values()) + len(widths) - 1 > width:
            del widths[header]
    left = width - (sum(widths.values()) + len(widths) - 1)
    widths["job"] = max(1, widths["job"] + min(left, max(0, names - widths["job"])))
    return widths


def _cells(now: Snapshot, life: JobLife, colour: str, widths: dict[str, int]) -> dict[str, RenderableType]:
    """A job's cells by column."""
    age_s = (life.ended_s or now.now_s) - life.submitted_s
    return {
        "job": Text(cut(life.label, widths["job"], middle=True), style=colour),
        "status": Text(life.phase, style=COLOURS.get(life.phase, "")),
        "gpus": life.has_of_asked,
        "done": _bar(life, colour, widths.get("done", 0)),
        "waited": short(life.waited_s(now.now_s)),
        "age": short(age_s),
    }


def _bar(life: JobLife, colour: str, width: int) -> Text:
    """A progress bar that needs no animation; where there is no room, its number alone."""
    number = f"{life.share:>4}"
    bar = width - len(number) - 1
    if bar <= 0:
        return Text(number)
    full = round(life.fraction * bar)
    return Text.assemble(("━" * full, colour), ("─" * (bar - full), "dim"), f" {number}")


def _waits(life: JobLife, place: int, now: Snapshot, width: int) -> Text:
    """A line of the queue."""
    why = life.message or "waits for its first decision"
    text = f"  {place}. {life.label} wants {life.asks}, waits {short(now.now_s - life.queued_s)}: {why}"
    if len(text) > width:  # why is worth more than what its line above says too
        text = f"  {place}. {cut(life.label, _COLUMNS['job'], middle=True)}: {why}"
    return Text(text, no_wrap=True, overflow="ellipsis")

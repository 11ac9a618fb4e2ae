"""The live view: nodes and slots, jobs, queue, last decisions; whole on 80x24, in lines where there is no terminal.

``picture`` is pure: from a snapshot to what rich draws. ``watch`` draws it again after every change.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final

import click
from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.table import Table
from rich.text import Text

from voda_flows.cli import snapshot
from voda_flows.cli.columns import COLOURS
from voda_flows.cli.snapshot import NodeView, Snapshot
from voda_flows.control.settings import settings
from voda_flows.local.store import LocalStore
from voda_flows.objects import WORKFLOW_ENDED
from voda_flows.report.lives import JobLife
from voda_flows.report.times import short

#: Progress files grow without a change of the store; and ages go on.
_LOOK_S: Final = 1.0
_BLINK_S: Final = 0.25
#: Where stdout is no terminal, a line at most this often while nothing else happens.
_LINE_S: Final = 10.0
_BAR: Final = 14
#: Columns of the jobs with their least width, so that they stay where they are while jobs come and go.
_COLUMNS: Final = {"job": 10, "status": 9, "gpus": 5, "progress": 19, "waited": 6, "age": 6}
_PALETTE: Final = ("cyan", "magenta", "yellow", "green", "blue", "red", "bright_cyan", "bright_magenta")


Note = Callable[[], str]


def watch(store: LocalStore, namespace: str | None, *, until: Callable[[], bool], note: Note = str) -> None:
    """Show the world until ``until`` says that it is enough.

    Args:
        store: The world.
        namespace: Of the jobs shown; None for all.
        until: Asked after every change.
        note: What else is to be said, in a line.
    """
    show = _draw if sys.stdout.isatty() else _tell
    show(_moments(store, namespace, until), store, note)


def _moments(store: LocalStore, namespace: str | None, until: Callable[[], bool]) -> Iterator[tuple[Snapshot, bool]]:
    """The world after changes, never more often than eyes can follow, and whether this is the last look."""
    while True:
        revision, enough = store.revision(), until()
        yield snapshot.take(store, namespace), enough
        if enough:
            return
        time.sleep(_BLINK_S)
        store.wait(revision, _LOOK_S - _BLINK_S)


def _draw(moments: Iterable[tuple[Snapshot, bool]], store: LocalStore, note: Note) -> None:
    """On a terminal."""
    console = Console()
    with Live(console=console, auto_refresh=False, vertical_overflow="crop") as live:
        for now, _ in moments:
            waiting = snapshot.in_order(now.lives, settings(store))
            live.update(picture(now, waiting, note=note(), height=console.height), refresh=True)


def _tell(moments: Iterable[tuple[Snapshot, bool]], _store: LocalStore, note: Note) -> None:
    """In lines: one when something changed that a reader would notice, and one now and then."""
    said, said_s, noted = "", 0.0, ""
    for now, last in moments:
        news, moment_s, text = standing(now), time.monotonic(), note()
        if text != noted:
            click.echo(f"{_clock(now)} {text}")
            noted = text
        if news != said or moment_s - said_s >= _LINE_S or last:
            click.echo(line(now))
            said, said_s = news, moment_s
        sys.stdout.flush()


def standing(now: Snapshot) -> str:
    """Who has what: changes only when a reader would call it news."""
    return " ".join(f"{life.label}={life.phase}:{life.gpus}" for life in now.lives)


def line(now: Snapshot) -> str:
    """The world in one line."""
    slots = " ".join(f"{node.name}[{'|'.join(holder or '-' for holder in node.holders)}]" for node in now.nodes)
    jobs = ", ".join(f"{life.label} {_state(life)}" for life in now.lives)
    return f"{_clock(now)} {slots}  {jobs or 'no jobs'}"


def picture(now: Snapshot, waiting: Sequence[JobLife], *, note: str = "", height: int = 24) -> RenderableType:
    """The live view.

    Args:
        now: The world.
        waiting: Jobs in the queue, in their order.
        note: What else is to be said, in a line.
        height: Lines there are; parts that would not fit are shortened, ended jobs first.

    Returns:
        Something that rich draws.
    """
    colours = {life.label: _PALETTE[number % len(_PALETTE)] for number, life in enumerate(now.lives)}
    room = max(4, height - len(now.nodes) - min(len(waiting), 4) - min(len(now.decisions), 3) - 8)
    head = [_head(now), *([Text(note, style="italic", no_wrap=True, overflow="ellipsis")] if note else [])]
    parts: list[RenderableType] = [*head, *(_node(node, colours) for node in now.nodes), Text()]
    parts.append(_jobs(now, colours, room))
    if waiting:
        parts += [Text("queue", style="bold"), *(_waits(life, place, now) for place, life in enumerate(waiting[:4], 1))]
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
    return Text.assemble(("voda ", "bold"), _clock(now), f"   {held} of {slots} slots held")


def _node(node: NodeView, colours: dict[str, str]) -> Text:
    """A node's line: its slots in the colours of their jobs."""
    text = Text(f"{node.name:<10} ", no_wrap=True, overflow="ellipsis")
    for holder in node.holders:
        text.append(
            f" {holder or 'free':<10.10} ", style=f"black on {colours.get(holder, 'white')}" if holder else "dim"
        )
        text.append(" ")
    return text if node.ready else text.append("(takes nothing new)", style="dim")


def _jobs(now: Snapshot, colours: dict[str, str], room: int) -> Table:
    """The jobs' lines; those that go on first when there is not room for all."""
    shown = list(now.lives)
    for life in [one for one in now.lives if one.phase in WORKFLOW_ENDED]:
        if len(shown) > room:
            shown.remove(life)
    table = Table(box=None, padding=(0, 1), pad_edge=False, show_edge=False)
    for header, width in _COLUMNS.items():
        table.add_column(header, no_wrap=True, overflow="ellipsis", header_style="bold", min_width=width)
    for life in shown[:room]:
        age = (life.ended_s or now.now_s) - life.submitted_s
        table.add_row(
            Text(life.label, style=colours[life.label]),
            Text(life.phase, style=COLOURS.get(life.phase, "")),
            life.has_of_asked,
            _bar(life, colours[life.label]),
            short(life.waited_s(now.now_s)),
            short(age),
        )
    return table


def _bar(life: JobLife, colour: str) -> Text:
    """A progress bar that needs no animation."""
    full = round(life.fraction * _BAR)
    return Text.assemble(("━" * full, colour), ("─" * (_BAR - full), "dim"), f" {life.fraction:4.0%}")


def _waits(life: JobLife, place: int, now: Snapshot) -> Text:
    """A line of the queue."""
    why = life.message or "waits for its first decision"
    text = f"  {place}. {life.label} wants {life.asks}, waits {short(now.now_s - life.queued_s)}: {why}"
    return Text(text, no_wrap=True, overflow="ellipsis")


def _state(life: JobLife) -> str:
    """A job's state in a line."""
    if life.phase in (*WORKFLOW_ENDED, "Queued"):
        return life.phase
    return f"{life.phase} on {life.gpus} {life.fraction:.0%}"


def _clock(now: Snapshot) -> str:
    """The time of day of a snapshot."""
    return time.strftime("%H:%M:%S", time.localtime(now.now_s))

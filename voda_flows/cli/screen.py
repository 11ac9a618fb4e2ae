"""The live view: a picture that is drawn again after every change; in lines where there is no terminal to draw on."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterable, Iterator
from typing import Final

import click

from voda_flows.cli import snapshot
from voda_flows.cli.columns import is_smart
from voda_flows.cli.snapshot import Snapshot
from voda_flows.objects import WORKFLOW_ENDED
from voda_flows.report.jobs import Named
from voda_flows.report.lives import JobLife
from voda_flows.store import ObjectStore
from voda_flows.world import World

#: Progress files grow without a change of the store; and ages go on.
_LOOK_S: Final = 1.0
_BLINK_S: Final = 0.25
#: Where stdout is no terminal, a line at most this often while nothing else happens.
_LINE_S: Final = 10.0


Note = Callable[[], str]
Meant = Callable[[Named], bool]


def watch(
    world: World,
    namespace: str | None,
    *,
    until: Callable[[], bool],
    note: Note = str,
    meant: Meant = snapshot.all_of,
) -> None:
    """Show the world until ``until`` says that it is enough.

    Args:
        world: The world.
        namespace: Of the jobs shown; None for all.
        until: Asked after every change.
        note: What else is to be said, in a line.
        meant: Which jobs are shown.
    """
    show = _draw if is_smart() else _tell
    show(_moments(world.store, until, lambda: snapshot.take(world, namespace, meant)), world, note)


def _moments(
    store: ObjectStore, until: Callable[[], bool], take: Callable[[], Snapshot]
) -> Iterator[tuple[Snapshot, bool]]:
    """The world after changes, never more often than eyes can follow, and whether this is the last look."""
    while True:
        revision, enough = store.revision(), until()
        yield take(), enough
        if enough:
            return
        time.sleep(_BLINK_S)
        store.wait(revision, _LOOK_S - _BLINK_S)


def _draw(moments: Iterable[tuple[Snapshot, bool]], world: World, note: Note) -> None:
    """On a terminal."""
    from rich.console import Console  # noqa: PLC0415 - a pipe needs none of it
    from rich.live import Live  # noqa: PLC0415

    from voda_flows.cli.picture import picture  # noqa: PLC0415

    console = Console()
    with Live(console=console, auto_refresh=False, vertical_overflow="crop") as live:
        for now, _ in moments:
            waiting = snapshot.in_order(now.lives, snapshot.settings_of(world))
            drawn = picture(now, waiting, note=note(), height=console.height, width=console.width)
            live.update(drawn, refresh=True)


def _tell(moments: Iterable[tuple[Snapshot, bool]], _world: World, note: Note) -> None:
    """In lines: one when something changed that a reader would notice, and one now and then."""
    said, said_s, noted = "", 0.0, ""
    for now, last in moments:
        news, moment_s, text = standing(now), time.monotonic(), note()
        if text != noted:
            click.echo(f"{now.clock} {text}")
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
    return f"{now.clock} {slots}  {jobs or 'no jobs'}"


def _state(life: JobLife) -> str:
    """A job's state in a line."""
    if life.phase in (*WORKFLOW_ENDED, "Queued"):
        return life.phase
    return f"{life.phase} on {life.gpus} {life.share}"

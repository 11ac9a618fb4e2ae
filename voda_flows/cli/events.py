"""``voda events``: jobs' lives as stories, a line per event: when, what, and why."""

from __future__ import annotations

import json
import sys
import textwrap
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

import click

from voda_flows.cli import following, output
from voda_flows.cli.choosing import choose
from voda_flows.cli.columns import click_width, cut
from voda_flows.cli.moments import SINCE
from voda_flows.cli.options import Shared, job_names, shared_options
from voda_flows.cli.verbs import verb
from voda_flows.objects import WORKFLOW_ENDED, Object
from voda_flows.report.events import KINDS, Event
from voda_flows.report.gather import gather
from voda_flows.report.jobs import Named
from voda_flows.report.lives import JobLife
from voda_flows.report.times import text
from voda_flows.store import ObjectStore

#: Drivers write beside the store, so a follower looks this often, and never more often than eyes can follow.
_LOOK_S: Final = 1.0
_BLINK_S: Final = 0.25
_KIND: Final = max(map(len, KINDS))
_DAY_S: Final = 86400.0
#: A terminal that leaves less than this for words has them on lines of their own.
_LEAST_WORDS: Final = 20
_SHORT: Final = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """An event and whose it is."""

    life: JobLife
    event: Event

    @property
    def place(self) -> tuple[float, str, int]:
        """Where it stands among the others."""
        return self.event.at_s, self.life.id, KINDS.index(self.event.kind)

    @property
    def identity(self) -> tuple[str, str, int, float]:
        """By which it is known again; its words may come to know more."""
        return self.life.id, self.event.kind, self.event.segment, self.event.at_s


@verb(
    "voda events digits",
    "voda events @latest -f",
    "voda events -l team=vision --since 2h -o json",
)
@job_names
@click.option("-f", "--follow", is_flag=True, help="Go on until the jobs named have ended, else until Ctrl-C.")
@click.option("--since", type=SINCE, metavar="TIME", help="Only what happened since, such as 2h.")
@shared_options(many=True)
def command(shared: Shared, names: tuple[str, ...], *, follow: bool, since: float | None) -> None:
    """Tell jobs' lives as stories: all of them where none is named, an event a line, with the reason where it is known.

    With `-f` and `-o json`, each event is one line of JSON.
    """
    store = shared.store()
    chosen = choose(shared, store, names, everything=not (names or shared.narrows))
    if shared.output == "name":
        for life in (life for one in chosen for life in one.lives):
            click.echo(life.label)
        return
    found = _told(store, shared, chosen, since)
    if shared.is_data and not follow:
        output.data({"items": [_document(told) for told in found]}, shared.output)
        return
    _show(found, shared, chosen)
    if follow:
        shared.warn_if_down()
        _follow(store, shared, names, found, since)
    elif not found:
        output.story(_nothing(shared, chosen))


def _nothing(shared: Shared, chosen: Iterable[Named]) -> str:
    """Why there is no event."""
    if chosen:
        return "nothing has happened"
    return "no job fits these options" if shared.narrows else "no jobs; submit one with `voda submit FILE`"


def _follow(
    store: ObjectStore, shared: Shared, names: tuple[str, ...], found: Iterable[Told], since: float | None
) -> None:
    """Show what happens next."""
    said = {told.identity for told in found}
    for _ in following.changes(store, look_s=_LOOK_S - _BLINK_S):
        chosen = choose(shared, store, names, everything=not (names or shared.narrows))
        fresh = [told for told in _told(store, shared, chosen, since) if told.identity not in said]
        said |= {told.identity for told in fresh}
        _show(fresh, shared, chosen)
        sys.stdout.flush()
        if names and all(life.phase in WORKFLOW_ENDED for one in chosen for life in one.lives):
            return
        time.sleep(_BLINK_S)


def _told(store: ObjectStore, shared: Shared, chosen: Iterable[Named], since: float | None) -> list[Told]:
    """The events of jobs, in order."""
    lives = [life for one in chosen for life in one.lives]
    jobs = gather(store, shared.world.home, lives).jobs
    found = [Told(life=job.life, event=event) for job in jobs for event in job.happened]
    return sorted((told for told in found if since is None or told.event.at_s >= since), key=lambda told: told.place)


def _show(found: Iterable[Told], shared: Shared, chosen: Iterable[Named]) -> None:
    """Print events as asked for."""
    if shared.is_data:
        for told in found:
            click.echo(json.dumps(_document(told), ensure_ascii=False))
        return
    labels = [life.label for one in chosen for life in one.lives]
    width = max(map(len, labels), default=0) if len(labels) != 1 else 0
    for told in found:
        for line in _lines(told, width):
            click.echo(line)


def _lines(told: Told, width: int) -> Iterator[str]:
    """An event as a line; on a terminal that is too narrow, its words go on below."""
    event = told.event
    name = f"{told.life.label:<{width}}  " if width else ""
    head = f"{_clock(event.at_s)}  {name}{event.kind:<{_KIND}}  "
    if not sys.stdout.isatty():
        yield f"{head}{words(event)}"
        return
    room = click_width() - len(head)
    if room < _LEAST_WORDS:
        who = f"{cut(told.life.label, _SHORT, middle=True)} " if width else ""
        yield f"{_clock(event.at_s)[-8:]} {who}{event.kind}"
        head, room = "  ", click_width() - 2
    first, *more = textwrap.wrap(words(event), max(1, room)) or [""]
    yield f"{head}{first}"
    for line in more:
        yield f"{'':{len(head)}}{line}"


def words(event: Event) -> str:
    """An event in words: what, what it cost, and why."""
    costs = [] if event.still_s is None else [f"stood still {event.still_s:.2f}s"]
    costs += [f"{event.steps_lost} {'step' if event.steps_lost == 1 else 'steps'} lost"] if event.steps_lost else []
    what = ", ".join([event.text, *costs])
    return f"{what}: {event.reason}" if event.reason else what


def _document(told: Told) -> Object:
    """An event for programs."""
    event = told.event
    return {
        "time": text(event.at_s),
        "at_s": event.at_s,
        "namespace": told.life.namespace,
        "job": told.life.label,
        "kind": event.kind,
        "segment": event.segment,
        "from_size": event.from_size,
        "to_size": event.to_size,
        "still_s": event.still_s,
        "steps_lost": event.steps_lost,
        "step": event.step,
        "text": event.text,
        "reason": event.reason,
    }


def _clock(at_s: float) -> str:
    """The time of day here, with the date where it is not of the last day."""
    form = "%H:%M:%S" if abs(time.time() - at_s) < _DAY_S else "%Y-%m-%d %H:%M:%S"
    return time.strftime(form, time.localtime(at_s))

"""``voda report``: what jobs did over a span of time, as a table, a record or a page."""

from __future__ import annotations

from pathlib import Path

import click

from scheduler_core.errors import InvalidValue
from voda_flows.cli import columns, output
from voda_flows.cli.moments import BEGINNING, END, SINCE
from voda_flows.cli.options import Shared, job_names, shared_options
from voda_flows.cli.verbs import verb
from voda_flows.report import jobs, table
from voda_flows.report.gather import gather
from voda_flows.report.lives import JobLife
from voda_flows.report.page import page
from voda_flows.report.record import Record, document
from voda_flows.report.span import Span
from voda_flows.report.times import text


@verb(
    "voda report",
    "voda report --since 2h --html report.html",
    "voda report --from 2026-01-31 --to 2026-01-31T12:00:00Z",
    "voda report digits text -o json | jq '.jobs[].numbers'",
)
@job_names
@click.option("--since", type=SINCE, metavar="TIME", help="Only what was since, such as 2h, up to now.")
@click.option(
    "--from", "from_s", type=BEGINNING, metavar="TIME", help="Only what was from then on: a time, or a day (UTC)."
)
@click.option("--to", "to_s", type=END, metavar="TIME", help="Only what was up to then: a time, or the end of a day.")
@click.option("--html", type=click.Path(path_type=Path, dir_okay=False), help="Also write a page for a browser there.")
@shared_options(many=True)
def command(shared: Shared, names: tuple[str, ...], html: Path | None, **limits: float | None) -> None:
    """Sum up jobs, all of them where none is named: waiting, running, resizes, standing still, steps lost.

    A span of time takes in every job that lived in it, as it stood at the span's end. Nothing needs to run for it.
    With `-o wide`, waiting and running in their parts.
    """
    span = _span(**limits)
    store = shared.store()
    named = [life for name in names for life in jobs.find(store, shared.namespace, name).lives]
    lives = tuple(named) if names else jobs.everything(store, shared.namespace, shared.labels)
    made = gather(store, shared.world.home, lives, span)
    if not made.jobs:
        output.story(_nothing(lives, made))
    if shared.is_data:
        output.data(document(made), shared.output)
    elif shared.output == "name":
        for job in made.jobs:
            click.echo(job.life.label)
    else:
        _show(made, wide=shared.output == "wide")
    if html is not None:
        _write(html, page(made, "Voda report"))


def _span(since: float | None, from_s: float | None, to_s: float | None) -> Span:
    """The span that the options mean.

    Raises:
        InvalidValue: Two beginnings, or an end before the beginning.
    """
    if since is not None and from_s is not None:
        raise InvalidValue("expected one beginning, found --since and --from\nleave one of them out")
    return Span(from_s=from_s if since is None else since, to_s=to_s)


def _show(made: Record, *, wide: bool) -> None:
    """The tables on a terminal."""
    if not made.jobs:
        return
    columns.show(table.WIDE if wide else table.HEADERS, table.rows(made, wide=wide))
    if made.ended:
        click.echo()
        columns.show(table.TIME_HEADERS, table.times(made))
    click.echo(f"\n{table.total(made)}")


def _nothing(lives: tuple[JobLife, ...], made: Record) -> str:
    """Why a report is empty."""
    if not lives:
        return "there is no job yet; submit one with `voda submit FILE`"
    first_s, last_s = min(life.submitted_s for life in lives), max(life.ended_s or made.taken_s for life in lives)
    return (
        f"no job lived between {text(made.from_s)} and {text(made.to_s)}; "
        f"those that are kept lived from {text(first_s)} to {text(last_s)}"
    )


def _write(place: Path, page_text: str) -> None:
    """Keep the page.

    Raises:
        InvalidValue: It cannot be written there.
    """
    try:
        place.write_text(page_text, encoding="utf-8")
    except OSError as wrong:
        raise InvalidValue(f"--html: expected a file that can be written, found {place}: {wrong.strerror}") from wrong
    output.story(f"report: {place}")

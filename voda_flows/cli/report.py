"""``voda report``: what jobs did, as a table, a record or a page."""

from __future__ import annotations

from pathlib import Path

import click

from voda_flows.cli import columns, output
from voda_flows.cli.options import JOB, Shared, shared_options
from voda_flows.cli.verbs import verb
from voda_flows.report import jobs, table
from voda_flows.report.gather import gather
from voda_flows.report.page import page
from voda_flows.report.record import document


@verb(
    "voda report",
    "voda report digits text --html report.html",
    "voda report -o json | jq '.jobs[].numbers'",
)
@click.argument("names", type=JOB, metavar="[JOB]...", nargs=-1)
@click.option("--html", type=click.Path(path_type=Path, dir_okay=False), help="Also write a page for a browser there.")
@shared_options(many=True)
def command(shared: Shared, names: tuple[str, ...], html: Path | None) -> None:
    """Sum up jobs, all of them where none is named: waiting, running, resizes, standing still, steps lost."""
    store = shared.store()
    named = [life for name in names for life in jobs.find(store, shared.namespace, name).lives]
    lives = tuple(named) if names else jobs.everything(store, shared.namespace, shared.labels)
    made = gather(store, shared.home, lives)
    if shared.is_data:
        output.data(document(made), shared.output)
    elif shared.output == "name":
        for life in lives:
            click.echo(life.label)
    else:
        columns.show(table.HEADERS, table.rows(made))
        click.echo(f"\n{table.total(made)}")
    if html is not None:
        html.write_text(page(made, "Voda report"), encoding="utf-8")
        output.story(f"report: {html}")

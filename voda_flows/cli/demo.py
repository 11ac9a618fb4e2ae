"""``voda demo``: five jobs on four slots, live, with a table and a page at the end."""

from __future__ import annotations

import signal
from pathlib import Path

import click

from voda_flows.cli import columns, output, screen
from voda_flows.cli.options import local_only
from voda_flows.cli.verbs import verb
from voda_flows.demo import run as demo
from voda_flows.local.world import LocalWorld
from voda_flows.report import table


@verb(
    "voda demo",
    "voda demo --folder /tmp/demo --keep",
)
@click.option(
    "--folder",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path("runs/demo"),
    show_default=True,
    help="Where state, report and record go.",
)
@click.option("--keep", is_flag=True, help="Keep state and logs for `voda --home FOLDER/home`.")
@local_only
@click.pass_context
def command(context: click.Context, /, folder: Path, *, keep: bool) -> None:
    """Watch five real training jobs share two nodes with two slots each: growing, shrinking, preempted, resumed.

    Exit 0 when every job succeeded and the record shows what it must.
    """
    folder = folder.absolute()
    root, home = demo.root_folder(), demo.prepare_folder(folder)
    good = False
    for number in (signal.SIGTERM, signal.SIGINT):  # whoever ends us, nothing is left running
        signal.signal(number, signal.default_int_handler)
    try:
        store = demo.start(home)
        director = demo.Director(store=store, root=root)
        screen.watch(LocalWorld(home), demo.NAMESPACE, until=director.act, note=lambda: director.note)
        outcome = demo.conclude(store, folder)
        _show(outcome, home)
        good = outcome.holds
    finally:
        demo.finish(home, keep=keep or not good)
        if not good:
            output.story(f"everything was ended; look at what it left: voda list --home {home}")
    context.exit(0 if good else 1)


def _show(outcome: demo.Outcome, home: Path) -> None:
    """The tables, and where the rest is."""
    click.echo()
    columns.show(table.HEADERS, table.rows(outcome.record))
    click.echo(f"\n{table.total(outcome.record)}\n")
    columns.show(
        ["FIGURE", "VALUE", "MUST BE", "HOLDS"],
        [[check.figure, check.value, check.must_be, "yes" if check.holds else "NO"] for check in outcome.checks],
    )
    click.echo(f"\nreport: {outcome.page}")
    for name in outcome.failed:
        output.story(f"error: job {name!r} did not succeed; see: voda logs {name} --home {home}")

"""``voda down``: end the engine and every pod of this machine's local mode."""

from __future__ import annotations

from pathlib import Path

import click

from scheduler_core.errors import NotFound
from voda_flows.cli import output
from voda_flows.cli.options import home_option, local_only
from voda_flows.cli.verbs import verb
from voda_flows.local import down as local


@verb(
    "voda down",
    "voda down --purge",
)
@click.option("--purge", is_flag=True, help="Take away the state too: records, volumes and checkpoints.")
@click.option(
    "--drain",
    type=click.FloatRange(min=0),
    default=local.DRAIN_S,
    show_default=True,
    metavar="SECONDS",
    help="How long jobs may take to write a last checkpoint.",
)
@home_option
@local_only
def command(home: Path, *, purge: bool, drain: float) -> None:
    """End what `voda up` started; jobs write a checkpoint and go on from it after the next `voda up`."""
    if not local.is_there(home):
        raise NotFound(f"expected the state of a `voda up` in {home}, found none")
    ended = local.down(home, drain_s=drain, purge=purge)
    if ended.killed:
        pods = "1 pod did not end" if ended.killed == 1 else f"{ended.killed} pods did not end"
        output.story(f"{pods} in {drain:g} s and {'was' if ended.killed == 1 else 'were'} killed")
    count = ended.drained + ended.killed
    click.echo(f"down ({count} {'pod' if count == 1 else 'pods'} ended{', state taken away' if purge else ''})")

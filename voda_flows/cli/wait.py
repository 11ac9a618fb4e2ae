"""``voda wait``: until jobs have ended."""

from __future__ import annotations

import click

from voda_flows.cli import following, output
from voda_flows.cli.choosing import choose, workflows_of
from voda_flows.cli.moments import DURATION
from voda_flows.cli.options import Shared, all_option, job_names, shared_options
from voda_flows.cli.verbs import verb


@verb(
    "voda wait digits --timeout 10m",
    "voda wait @latest && voda report @latest",
    "voda wait -l team=vision --status Queued,Running",
)
@job_names
@all_option("All jobs of the namespace.")
@click.option(
    "--timeout", type=DURATION, metavar="TIME", help="How long at most, such as 90s, 5m or 2h.  [default: for ever]"
)
@shared_options(many=True, output=False, filters=True)
@click.pass_context
def command(
    context: click.Context, shared: Shared, names: tuple[str, ...], *, everything: bool, timeout: float | None
) -> None:
    """Wait until jobs have ended: exit 0 when all succeeded, 1 when one failed, 5 when the time was over first.

    How each ended is said on stderr, as soon as it has.
    """
    store = shared.store()
    chosen = workflows_of(choose(shared, store, names, everything=everything))
    if not chosen:
        output.story("no job fits these options")
    if not all(following.has_ended(store, body) for body in chosen):
        shared.warn_if_down()
    context.exit(following.wait(store, chosen, timeout_s=timeout))

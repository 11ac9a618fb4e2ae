"""``voda watch``: the live view, until it is interrupted or the jobs named have ended."""

from __future__ import annotations

import click

from voda_flows.cli import following, screen
from voda_flows.cli.choosing import choose, is_meant, workflows_of
from voda_flows.cli.options import Shared, job_names, shared_options
from voda_flows.cli.verbs import verb


@verb(
    "voda watch",
    "voda watch digits",
    "voda watch -A --once",
    "voda watch --status Queued,Starting,Running --once",
)
@job_names
@click.option("--once", is_flag=True, help="Show it once and return.")
@shared_options(many=True, output=False, filters=True)
def command(shared: Shared, names: tuple[str, ...], *, once: bool) -> None:
    """Watch nodes and their slots, jobs, queue and decisions; ends when the jobs named have ended, else with Ctrl-C.

    Where stdout is no terminal, it prints a line whenever something changes.
    """
    store = shared.store()
    chosen = workflows_of(choose(shared, store, names)) if names else []
    screen.watch(
        shared.world,
        shared.namespace,
        until=lambda: once or (bool(chosen) and all(following.has_ended(store, body) for body in chosen)),
        note=shared.note,
        meant=lambda one: is_meant(shared, one),
    )

"""``voda logs``: what a Workflow's pods printed, from their log files; following goes on while it runs."""

from __future__ import annotations

from typing import TypedDict, Unpack

import click

from scheduler_core.errors import NotFound
from voda_flows.cli import following, tails
from voda_flows.cli.options import JOB, Shared, shared_options
from voda_flows.cli.verbs import verb
from voda_flows.report import jobs


class Asked(TypedDict):
    """The options that choose pods and lines."""

    workers: tuple[str, ...]
    driver: bool
    segment: int | None
    tail: int | None


@verb(
    "voda logs digits -f",
    "voda logs @latest --driver --tail 20",
    "voda logs digits --worker w0 --worker w1 --segment 1",
)
@click.argument("name", type=JOB, metavar="JOB")
@click.option("-f", "--follow", is_flag=True, help="Go on until the Workflow has ended.")
@click.option(
    "--worker", "workers", multiple=True, metavar="ID", help="Only this worker, such as w0 (several allowed)."
)
@click.option("--driver", is_flag=True, help="Only the driver.")
@click.option("--segment", type=click.IntRange(min=0), help="Only this segment.")
@click.option("--tail", type=click.IntRange(min=0), metavar="N", help="Only the last N lines of each pod.")
@shared_options(output=False)
def command(shared: Shared, name: str, *, follow: bool, **asked: Unpack[Asked]) -> None:
    """Print the output of a job's driver and workers (and of the Workflow's other steps), ended ones too.

    Lines of several pods are marked with where they come from.
    """
    store = shared.store()
    named = jobs.find(store, shared.namespace, name)
    chosen = tails.Chosen(
        roles=frozenset({*asked["workers"], *(["driver"] if asked["driver"] else [])}),
        segment=asked["segment"],
        job=named.lives[0].name if "/" in name else "",
    )
    reader = tails.Reader(store=store, home=shared.home, workflow=named.workflow, chosen=chosen)
    if asked["tail"] is not None:
        reader.skip_all_but(asked["tail"])
    tails.follow(reader, until=lambda: not follow or following.has_ended(store, named.workflow))
    if not reader.tails:
        raise NotFound(f"job {name!r}: expected a pod that fits, found none (yet)\nsee `voda get {name}`")

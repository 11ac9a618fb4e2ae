"""``voda logs``: what jobs' pods printed, from their log files; following goes on until the jobs have ended."""

from __future__ import annotations

from typing import TypedDict, Unpack

import click

from scheduler_core.errors import NotFound
from voda_flows.cli import tails
from voda_flows.cli.choosing import choose
from voda_flows.cli.moments import SINCE
from voda_flows.cli.options import Shared, job_names, shared_options
from voda_flows.cli.verbs import verb
from voda_flows.report.jobs import LATEST, Named


class Asked(TypedDict):
    """The options that choose pods and lines."""

    workers: tuple[str, ...]
    driver: bool
    segment: int | None
    tail: int | None
    since: float | None


@verb(
    "voda logs digits -f",
    "voda logs @latest --driver --tail 20",
    "voda logs digits --worker w0 --worker w1 --segment 1",
    "voda logs -l team=vision --since 5m",
)
@job_names
@click.option("-f", "--follow", is_flag=True, help="Go on until the jobs have ended.")
@click.option(
    "--worker", "workers", multiple=True, metavar="ID", help="Only this worker, such as w0 (several allowed)."
)
@click.option("--driver", is_flag=True, help="Only the driver.")
@click.option("--segment", type=click.IntRange(min=0), help="Only this segment.")
@click.option("--tail", type=click.IntRange(min=0), metavar="N", help="Only the last N lines of each pod.")
@click.option("--since", type=SINCE, metavar="TIME", help="Not what is known to be older, such as 5m.")
@shared_options(many=True, output=False)
def command(shared: Shared, names: tuple[str, ...], *, follow: bool, **asked: Unpack[Asked]) -> None:
    """Print the output of jobs' drivers and workers (and of their Workflows' other steps), ended ones too.

    Lines of several pods are marked with where they come from, as `w0 |`, and are in order of time as far as it is
    known: from the stamps that lines begin with.
    """
    store = shared.store()
    chosen = choose(shared, store, names)
    wanted = tails.Chosen(
        roles=frozenset({*asked["workers"], *(["driver"] if asked["driver"] else [])}),
        segment=asked["segment"],
        tail=asked["tail"],
        since_s=asked["since"],
    )
    is_marked = None if not follow else len(chosen) > 1 or len(asked["workers"]) + asked["driver"] != 1
    sources = [_source(one, names) for one in chosen]
    reader = tails.Reader(shared.world, sources, wanted, marked=is_marked, follows=follow)
    if follow:
        shared.warn_if_down()
        tails.follow(reader)
    else:
        reader.look()
        reader.show(last=True)
    if not reader.tails:
        said = " ".join(names) or "with these labels"
        raise NotFound(f"job {said}: expected a pod that fits, found none (yet)\nsee `voda get {said}`")


def _source(one: Named, names: tuple[str, ...]) -> tails.Source:
    """Whose logs are meant: a whole Workflow's, or those of the one job that was named."""
    workflow = one.workflow["metadata"]["name"]
    is_one = len(one.lives) == 1 and any(
        name.partition("/")[2] == one.lives[0].name and name.partition("/")[0] in (workflow, LATEST) for name in names
    )
    return tails.Source(workflow=one.workflow, job=one.lives[0].name if is_one else "")

"""``voda resubmit``: a new Workflow from an old one's document, as ``argo resubmit`` makes it."""

from __future__ import annotations

from typing import TypedDict, Unpack

import click

from voda_flows import operations
from voda_flows.cli import following, output
from voda_flows.cli.choosing import choose, is_confirmed, workflows_of
from voda_flows.cli.options import Shared, all_option, job_names, shared_options, yes_option
from voda_flows.cli.verbs import verb


class Asked(TypedDict):
    """The options."""

    everything: bool
    memoized: bool
    wait: bool
    yes: bool


@verb(
    "voda resubmit digits",
    "voda resubmit @latest --wait",
    "voda resubmit --all --status Failed --since 1d --yes -o name",
)
@job_names
@all_option("All jobs of the namespace; asks first.")
@click.option("--memoized", is_flag=True, help="Keep what succeeded: not supported in local mode, see `voda retry`.")
@click.option("-w", "--wait", is_flag=True, help="Wait until the new ones have ended; exit 1 when one failed.")
@yes_option
@shared_options(many=True, filters=True)
@click.pass_context
def command(context: click.Context, shared: Shared, names: tuple[str, ...], **asked: Unpack[Asked]) -> None:
    """Resubmit jobs: each becomes a new one with the same spec, labels and annotations, and begins from nothing.

    The label workflows.argoproj.io/resubmitted-from-workflow names the old one. Checkpoints belong to the old job.
    """
    if asked["memoized"]:
        raise click.UsageError("--memoized: not supported in local mode; `voda retry` keeps what succeeded")
    store = shared.store()
    chosen = workflows_of(choose(shared, store, names, everything=asked["everything"]))
    if asked["everything"] and not is_confirmed("resubmit", chosen, yes=asked["yes"]):
        context.exit(1)
    made = [operations.resubmit(store, body) for body in chosen]
    if shared.output in ("name", "json", "yaml"):
        output.objects(made, shared.output)
    else:
        for old, new in zip(chosen, made, strict=True):
            click.echo(f"{new['metadata']['name']} created from {old['metadata']['name']}")
    for new in made:
        if new["spec"].get("suspend"):
            output.story(f"{new['metadata']['name']} is suspended, as the old one was; `voda resume` starts it")
    if not made:
        output.story("nothing to resubmit")
    shared.warn_if_down()
    if asked["wait"]:
        context.exit(following.wait(store, made))

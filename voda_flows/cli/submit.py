"""``voda submit``: documents are read strictly, checked as a whole, then created; nothing is half submitted."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypedDict, Unpack

import click

from voda_flows.cli import files, following, output, screen, tails
from voda_flows.cli.options import Shared, shared_options
from voda_flows.cli.verbs import verb
from voda_flows.objects import Object
from voda_flows.store import ObjectStore
from voda_flows.submission.checks import check_all, remarks_on
from voda_flows.submission.prepare import Wishes, apply, prepared
from voda_flows.submission.world import world_of


class Asked(TypedDict):
    """The options."""

    parameters: tuple[str, ...]
    name: str | None
    wait: bool
    watch: bool
    log: bool


@verb(
    "voda submit templates/examples/digits.yaml --watch",
    "voda submit job.yaml -p max-gpus=4 -p epochs=20 --name trial-2",
    "cat job.yaml | voda submit - -o name",
    "voda submit job.yaml --kubeconfig cluster.yaml -n team-a --watch",
)
@click.argument("names", metavar="FILE|-...", nargs=-1, required=True)
@click.option("-p", "--parameter", "parameters", multiple=True, metavar="K=V", help="Set an argument of the Workflow.")
@click.option("--name", help="Name of the Workflow, instead of the document's.")
@click.option("-w", "--wait", is_flag=True, help="Wait until it has ended; exit 1 when it failed.")
@click.option("--watch", is_flag=True, help="Watch it live until it has ended; exit 1 when it failed.")
@click.option("--log", is_flag=True, help="Follow its output until it has ended; exit 1 when it failed.")
@shared_options()
def command(shared: Shared, names: tuple[str, ...], **asked: Unpack[Asked]) -> None:
    """Submit Workflow documents; WorkflowTemplates and CronWorkflows among them are applied.

    A file may hold several documents; `-` is standard input.
    """
    context = click.get_current_context()
    documents = files.read(names)
    explicit = context.get_parameter_source("namespace") is not click.core.ParameterSource.DEFAULT
    wishes = Wishes.of(
        parameters=asked["parameters"],
        name=asked["name"] or "",
        namespace=shared.namespace if explicit else None,
        otherwise=shared.world.namespace,
    )
    store = shared.store()
    ready = prepared(documents, wishes, workdir=shared.workdir)
    world = world_of(shared.world)
    check_all(ready, world)
    for remark in remarks_on(ready, world):
        output.story(f"warning: {remark}")
    made = [apply(store, document.body) for document in ready]
    if shared.output in ("name", "json", "yaml"):
        output.objects([body for body, _ in made], shared.output)
    else:
        for body, done in made:
            click.echo(f"{body['metadata']['name']} {done}")
    shared.warn_if_down()
    context.exit(_stay(store, shared, [body for body, _ in made if body["kind"] == "Workflow"], asked))


def _stay(store: ObjectStore, shared: Shared, submitted: Sequence[Object], asked: Asked) -> int:
    """Watch, follow or wait, as asked; the exit code."""
    if not (asked["watch"] or asked["log"] or asked["wait"]):
        return 0
    if asked["watch"]:
        screen.watch(
            shared.world,
            shared.namespace,
            until=lambda: all(following.has_ended(store, body) for body in submitted),
            note=shared.note,
        )
    elif asked["log"]:
        sources = tuple(tails.Source(workflow=body) for body in submitted)
        tails.follow(tails.Reader(shared.world, sources, follows=True))
    return following.wait(store, submitted)

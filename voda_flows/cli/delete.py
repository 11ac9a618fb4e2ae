"""``voda delete``: a Workflow and all that belongs to it."""

from __future__ import annotations

from typing import TypedDict, Unpack

import click

from scheduler_core.errors import NotFound
from voda_flows.cli import output
from voda_flows.cli.choosing import choose, is_confirmed, workflows_of
from voda_flows.cli.options import Shared, all_option, job_names, shared_options, yes_option
from voda_flows.cli.verbs import verb
from voda_flows.objects import Object
from voda_flows.store import ObjectStore

_LOOK_S = 1.0


class Asked(TypedDict):
    """The options."""

    everything: bool
    wait: bool
    yes: bool


@verb(
    "voda delete digits",
    "voda delete -l voda.dev/category=digits --status Succeeded",
    "voda delete --all --since 2h --yes",
)
@job_names
@all_option("All jobs of the namespace that the other options fit; asks first.")
@click.option("--wait/--no-wait", default=True, show_default=True, help="Return once its processes have ended.")
@yes_option
@shared_options(many=True, output=False, filters=True)
@click.pass_context
def command(context: click.Context, shared: Shared, names: tuple[str, ...], **asked: Unpack[Asked]) -> None:
    """Delete jobs: their processes end at once, their records go. Checkpoints on the volume stay."""
    store = shared.store()
    chosen = workflows_of(choose(shared, store, names, everything=asked["everything"]))
    if asked["everything"] and not is_confirmed("delete", chosen, yes=asked["yes"]):
        context.exit(1)
    for body in chosen:
        meta = body["metadata"]
        store.delete("Workflow", meta["namespace"], meta["name"], uid=meta["uid"])
    for body in chosen:
        name = body["metadata"]["name"]
        if asked["wait"] and not _until_gone(shared, store, body):
            output.story(f"{name} is marked for deletion: {shared.note()}, and deletes it")
            continue
        click.echo(f"{name} deleted")
    if not chosen:
        output.story("nothing to delete")


def _until_gone(shared: Shared, store: ObjectStore, body: Object) -> bool:
    """Wait until the Workflow is gone, or another one has its name; False when nothing runs that could delete it."""
    meta = body["metadata"]
    while True:
        revision = store.revision()
        try:
            if store.get("Workflow", meta["namespace"], meta["name"])["metadata"]["uid"] != meta["uid"]:
                return True
        except NotFound:
            return True
        if shared.is_local and shared.note():  # a cluster deletes by itself
            return False
        store.wait(revision, _LOOK_S)

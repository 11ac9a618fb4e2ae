"""``voda delete``: a Workflow and all that belongs to it."""

from __future__ import annotations

import click

from scheduler_core.errors import NotFound
from voda_flows.cli import output
from voda_flows.cli.options import JOB, Shared, shared_options
from voda_flows.cli.verbs import verb
from voda_flows.local.store import LocalStore
from voda_flows.objects import Object
from voda_flows.report import jobs

_LOOK_S = 1.0


@verb(
    "voda delete digits",
    "voda delete --all -l voda.dev/category=digits",
)
@click.argument("names", type=JOB, metavar="JOB...", nargs=-1)
@click.option("--all", "everything", is_flag=True, help="All jobs of the namespace (with -l: those with the labels).")
@click.option("--wait/--no-wait", default=True, show_default=True, help="Return once its processes have ended.")
@shared_options(many=True, output=False)
def command(shared: Shared, names: tuple[str, ...], *, everything: bool, wait: bool) -> None:
    """Delete jobs: their processes end at once, their records go. Checkpoints on the volume stay."""
    if bool(names) == (everything or bool(shared.labels)):
        raise click.UsageError("expected names of jobs, or --all, or -l; found " + ("both" if names else "neither"))
    store = shared.store()
    chosen = [jobs.find(store, shared.namespace, name).workflow for name in names] or jobs.workflows(
        store, shared.namespace, shared.labels
    )
    for body in chosen:
        meta = body["metadata"]
        store.delete("Workflow", meta["namespace"], meta["name"], uid=meta["uid"])
    for body in chosen:
        name = body["metadata"]["name"]
        if wait and not _until_gone(shared, store, body):
            output.story(f"{name} is marked for deletion: {shared.note()}, and deletes it")
            continue
        click.echo(f"{name} deleted")
    if not chosen:
        output.story("nothing to delete")


def _until_gone(shared: Shared, store: LocalStore, body: Object) -> bool:
    """Wait until the Workflow is gone, or another one has its name; False when nothing runs that could delete it."""
    meta = body["metadata"]
    while True:
        revision = store.revision()
        try:
            if store.get("Workflow", meta["namespace"], meta["name"])["metadata"]["uid"] != meta["uid"]:
                return True
        except NotFound:
            return True
        if shared.note():
            return False
        store.wait(revision, _LOOK_S)

"""``voda stop``: end a Workflow; its records and checkpoints stay."""

from __future__ import annotations

import click

from scheduler_core.errors import Conflict
from voda_flows.cli import following
from voda_flows.cli.options import JOB, Shared, shared_options
from voda_flows.cli.verbs import verb
from voda_flows.objects import WORKFLOW_ENDED
from voda_flows.report import jobs


@verb(
    "voda stop digits",
    "voda stop @latest --wait",
)
@click.argument("names", type=JOB, metavar="JOB...", nargs=-1, required=True)
@click.option("--terminate", is_flag=True, help="Do not run the Workflow's exit handlers either.")
@click.option("-w", "--wait", is_flag=True, help="Return once its processes have ended.")
@shared_options(output=False)
def command(shared: Shared, names: tuple[str, ...], *, terminate: bool, wait: bool) -> None:
    """Stop jobs: they end as Failed, their records and checkpoints stay.

    The whole Workflow is stopped, as `argo stop` does; its training processes write a last checkpoint.
    """
    store = shared.store()
    chosen = [jobs.find(store, shared.namespace, name).workflow for name in names]
    for body in chosen:
        meta, phase = body["metadata"], (body.get("status") or {}).get("phase")
        if phase in WORKFLOW_ENDED:
            raise Conflict(f"job {meta['name']!r}: expected one that still runs, it is {phase}")
        shutdown = {"spec": {"shutdown": "Terminate" if terminate else "Stop"}}
        store.merge_patch("Workflow", meta["namespace"], meta["name"], shutdown)
        click.echo(f"{meta['name']} {'terminated' if terminate else 'stopped'}")
    if wait:
        following.wait(store, chosen)

"""``voda terminate``: end a Workflow at once, as ``argo terminate`` does; its records and checkpoints stay."""

from __future__ import annotations

from typing import Unpack

import click

from voda_flows import operations
from voda_flows.cli import following
from voda_flows.cli.deeds import Asked, Deed, perform
from voda_flows.cli.options import Shared, all_option, job_names, shared_options, yes_option
from voda_flows.cli.verbs import verb
from voda_flows.local.argo import operate

_DEED = Deed(
    verb="terminate",
    done="terminated",
    check=operate.terminate,
    do=lambda world, body: operations.terminate(world.store, body),
)


@verb(
    "voda terminate digits",
    "voda terminate -l voda.dev/category=digits --wait",
    "voda terminate --all --status Queued --yes",
)
@job_names
@all_option("All jobs of the namespace that go on; asks first.")
@click.option("-w", "--wait", is_flag=True, help="Return once the jobs have ended.")
@yes_option
@shared_options(many=True, output=False, filters=True)
def command(shared: Shared, names: tuple[str, ...], *, wait: bool, **asked: Unpack[Asked]) -> None:
    """Terminate jobs: they end as Failed at once, and their exit handlers do not run.

    `voda stop` runs the exit handlers, and waits for the processes to say how they ended. Training processes write a
    last checkpoint either way, if they can within their time.
    """
    chosen = perform(shared, names, _DEED, asked)
    if wait:
        following.wait(shared.store(), chosen)

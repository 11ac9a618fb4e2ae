"""``voda retry``: run a Workflow that failed again from where it failed, as ``argo retry`` does."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Unpack

import click

from voda_flows import operations
from voda_flows.cli import following
from voda_flows.cli.deeds import Asked, Deed, perform
from voda_flows.cli.options import Shared, all_option, job_names, shared_options, yes_option
from voda_flows.cli.verbs import verb
from voda_flows.local.argo import operate
from voda_flows.objects import Object
from voda_flows.world import World


def _check(body: Object) -> object:
    return operate.retry(body, datetime.now(UTC))


def _retry(world: World, body: Object) -> Object:
    return operations.retry(world.store, body, world.now, busy_s=world.busy_s)


_DEED = Deed(verb="retry", done="retried", check=_check, do=_retry)


@verb(
    "voda retry digits",
    "voda retry @latest --wait",
    "voda retry --all --status Failed --since 1d --yes",
)
@job_names
@all_option("All jobs of the namespace that failed; asks first.")
@click.option("-w", "--wait", is_flag=True, help="Wait until they have ended again; exit 1 when one failed.")
@yes_option
@shared_options(many=True, output=False, filters=True)
def command(shared: Shared, names: tuple[str, ...], *, wait: bool, **asked: Unpack[Asked]) -> None:
    """Retry jobs that failed: what failed is forgotten and runs again, what succeeded stays.

    Pods of what failed are deleted, with their logs. A training job goes on from its newest checkpoint.
    """
    chosen = perform(shared, names, _DEED, asked)
    if wait:
        click.get_current_context().exit(following.wait(shared.store(), chosen))

"""``voda resume``: let a suspended Workflow go on, as ``argo resume`` does."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Unpack

from voda_flows import operations
from voda_flows.cli.deeds import Asked, Deed, perform
from voda_flows.cli.options import Shared, all_option, job_names, shared_options, yes_option
from voda_flows.cli.verbs import verb
from voda_flows.local.argo import operate
from voda_flows.objects import Object
from voda_flows.world import World


def _check(body: Object) -> object:
    return operate.resume(body, datetime.now(UTC))


def _resume(world: World, body: Object) -> Object:
    return operations.resume(world.store, body, world.now)


_DEED = Deed(verb="resume", done="resumed", check=_check, do=_resume)


@verb(
    "voda resume digits",
    "voda resume --all --since 1h --yes",
)
@job_names
@all_option("All jobs of the namespace that go on; asks first.")
@yes_option
@shared_options(many=True, output=False, filters=True)
def command(shared: Shared, names: tuple[str, ...], **asked: Unpack[Asked]) -> None:
    """Resume jobs that were suspended; every open gate of theirs is completed with its defaults.

    A job that waits for GPUs is not started by that: its gate's defaults lead to a new gate, without any pod.
    """
    perform(shared, names, _DEED, asked)

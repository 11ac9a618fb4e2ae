"""``voda suspend``: start nothing new of a Workflow, as ``argo suspend`` does."""

from __future__ import annotations

from typing import Unpack

from voda_flows import operations
from voda_flows.cli.deeds import Asked, Deed, perform
from voda_flows.cli.options import Shared, all_option, job_names, shared_options, yes_option
from voda_flows.cli.verbs import verb
from voda_flows.local.argo import operate

_DEED = Deed(
    verb="suspend",
    done="suspended",
    check=operate.suspend,
    do=lambda world, body: operations.suspend(world.store, body),
)


@verb(
    "voda suspend digits",
    "voda suspend --all --status Queued --yes",
)
@job_names
@all_option("All jobs of the namespace that go on; asks first.")
@yes_option
@shared_options(many=True, output=False, filters=True)
def command(shared: Shared, names: tuple[str, ...], **asked: Unpack[Asked]) -> None:
    """Suspend jobs: nothing new of them is started until `voda resume`; what runs goes on.

    A job that waits for GPUs keeps waiting and is given none; one that trains keeps what it has and is not grown.
    """
    perform(shared, names, _DEED, asked)

"""``voda stop``: end a Workflow; its records and checkpoints stay."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypedDict, Unpack

import click

from scheduler_core.errors import Conflict
from voda_flows.cli import following, output
from voda_flows.cli.choosing import choose, is_confirmed, workflows_of
from voda_flows.cli.options import Shared, all_option, job_names, shared_options, yes_option
from voda_flows.cli.verbs import verb
from voda_flows.objects import WORKFLOW_ENDED, Object, phase_of


class Asked(TypedDict):
    """The options."""

    everything: bool
    terminate: bool
    wait: bool
    yes: bool


@verb(
    "voda stop digits",
    "voda stop @latest --wait",
    "voda stop --all --status Queued --yes",
)
@job_names
@all_option("All jobs of the namespace that go on; asks first.")
@click.option("--terminate", is_flag=True, help="Do not run the Workflow's exit handlers either.")
@click.option("-w", "--wait", is_flag=True, help="Return once its processes have ended.")
@yes_option
@shared_options(many=True, output=False, filters=True)
@click.pass_context
def command(context: click.Context, shared: Shared, names: tuple[str, ...], **asked: Unpack[Asked]) -> None:
    """Stop jobs: they end as Failed, their records and checkpoints stay.

    The whole Workflow is stopped, as `argo stop` does; its training processes write a last checkpoint.
    """
    store = shared.store()
    chosen = workflows_of(choose(shared, store, names, everything=asked["everything"]))
    if names:
        _check_all_run(chosen)
    else:
        chosen = [body for body in chosen if phase_of(body) not in WORKFLOW_ENDED]
    if asked["everything"] and not is_confirmed("stop", chosen, yes=asked["yes"]):
        context.exit(1)
    for body in chosen:
        meta = body["metadata"]
        shutdown = {
            "spec": {"shutdown": "Terminate" if asked["terminate"] else "Stop"},
            "metadata": {"uid": meta["uid"]},
        }
        store.merge_patch("Workflow", meta["namespace"], meta["name"], shutdown)
        click.echo(f"{meta['name']} {'terminated' if asked['terminate'] else 'stopped'}")
    if not chosen:
        output.story("nothing to stop")
    if asked["wait"]:
        shared.warn_if_down()
        following.wait(store, chosen)


def _check_all_run(chosen: Sequence[Object]) -> None:
    """Refuse before anything is done where one of those named has ended.

    Raises:
        Conflict: One has.
    """
    for body in chosen:
        if phase_of(body) in WORKFLOW_ENDED:
            name, phase = body["metadata"]["name"], phase_of(body)
            raise Conflict(f"job {name!r}: expected one that still runs, it is {phase}")

"""``voda explain``: why a job waits, or why it has what it has."""

from __future__ import annotations

import time

import click

from voda_flows.cli import output
from voda_flows.cli.options import JOB, Shared, shared_options
from voda_flows.cli.verbs import verb
from voda_flows.control.explain import explain
from voda_flows.control.settings import settings
from voda_flows.objects import WORKFLOW_ENDED, Object, phase_of
from voda_flows.report import jobs
from voda_flows.report.lives import JobLife
from voda_flows.report.times import short
from voda_flows.world import World


@verb(
    "voda explain digits",
    "voda explain pipeline/train -o json",
)
@click.argument("name", type=JOB, metavar="JOB")
@shared_options()
def command(shared: Shared, name: str) -> None:
    """Say why a job waits, or why it has what it has, in sentences, and what was done to it last."""
    store = shared.store()
    named = jobs.find(store, shared.namespace, name)
    said = {life.label: _sentences(shared.world, named.workflow, life) for life in named.lives}
    if shared.is_data:
        output.data({"jobs": [{"job": label, "because": lines} for label, lines in said.items()]}, shared.output)
        return
    if shared.output == "name":
        for label in said:
            click.echo(label)
        return
    if any(life.phase not in WORKFLOW_ENDED for life in named.lives):
        shared.warn_if_down()
    for lines in said.values():
        for line in lines:
            click.echo(line)
    if not said:
        phase = phase_of(named.workflow) or "Pending"
        click.echo(f"{name} is {phase}: none of its steps has asked for GPUs yet")


def _sentences(world: World, workflow: Object, life: JobLife) -> list[str]:
    """What is to be said of one job."""
    if life.phase in WORKFLOW_ENDED:
        ago = short(time.time() - (life.ended_s or life.submitted_s))
        why = f": {life.message}" if life.message else ""
        return [f"{life.label} ended {ago} ago as {life.phase}{why}"]
    if not life.segments and workflow["spec"].get("suspend"):
        return [f"{life.label} was submitted suspended, it is not begun; see: voda resume {life.workflow}"]
    if not life.segments:
        return [f"{life.label} was submitted; the engine has not looked at it yet"]
    whole = f"{life.workflow}/{life.name}"
    said = explain(
        world.whole,
        settings(world.whole, world.scheduler_namespace),
        whole,
        namespace=life.namespace,
        fetch=world.fetch,
    )
    return [life.label + line[len(whole) :] if line.startswith(f"{whole} ") else line for line in said]

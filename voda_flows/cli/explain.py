"""``voda explain``: why a job waits, or why it has what it has."""

from __future__ import annotations

import time
from dataclasses import replace

import click

from voda_flows.cli import output
from voda_flows.cli.options import JOB, Shared, shared_options
from voda_flows.cli.verbs import verb
from voda_flows.control.explain import Told, explained
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
    said = {life.label: _told(shared.world, named.workflow, life) for life in named.lives}
    if shared.is_data:
        output.data({"jobs": [_document(label, told) for label, told in said.items()]}, shared.output)
        return
    if shared.output == "name":
        for label in said:
            click.echo(label)
        return
    if any(life.phase not in WORKFLOW_ENDED for life in named.lives):
        shared.warn_if_down()
    for told in said.values():
        for one in told:
            click.echo(one.text)
    if not said:
        phase = phase_of(named.workflow) or "Pending"
        click.echo(f"{name} is {phase}: none of its steps has asked for GPUs yet")


def _document(label: str, told: list[Told]) -> Object:
    """A job for programs: sentences, and the same with codes that stay what they are."""
    reasons = [{"code": str(one.code), "text": one.text, "notes": list(one.notes)} for one in told]
    return {"job": label, "because": [one.text for one in told], "reasons": reasons}


def _told(world: World, workflow: Object, life: JobLife) -> list[Told]:
    """What is to be said of one job."""
    if life.phase in WORKFLOW_ENDED:
        ago = short(time.time() - (life.ended_s or life.submitted_s))
        why = f": {life.message}" if life.message else ""
        return [Told(code="ended", text=f"{life.label} ended {ago} ago as {life.phase}{why}")]
    if not life.segments and workflow["spec"].get("suspend"):
        said = f"{life.label} was submitted suspended, it is not begun; see: voda resume {life.workflow}"
        return [Told(code="suspended", text=said)]
    if not life.segments:
        return [Told(code="not-begun", text=f"{life.label} was submitted; the engine has not looked at it yet")]
    whole = f"{life.workflow}/{life.name}"
    found = explained(
        world.whole,
        settings(world.whole, world.scheduler_namespace),
        whole,
        namespace=life.namespace,
        fetch=world.fetch,
    )
    return [replace(one, text=_shortened(one.text, whole, life.label)) for one in found]


def _shortened(line: str, whole: str, label: str) -> str:
    """A line that begins with a job's whole name, with the one that the lists have."""
    return label + line[len(whole) :] if line.startswith(f"{whole} ") else line

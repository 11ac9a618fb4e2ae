"""``voda get``: one job's life so far."""

from __future__ import annotations

import time

import click

from voda_flows.cli import columns, output
from voda_flows.cli.drawing import drawing
from voda_flows.cli.options import JOB, Shared, shared_options
from voda_flows.cli.verbs import verb
from voda_flows.objects import Object
from voda_flows.report import jobs
from voda_flows.report.gather import gather
from voda_flows.report.lives import JobLife
from voda_flows.report.record import JobRecord
from voda_flows.report.table import metric
from voda_flows.report.times import many, short, text


@verb(
    "voda get digits",
    "voda get @latest -o wide",
    "voda get pipeline -o json | jq .status.phase",
)
@click.argument("name", type=JOB, metavar="JOB")
@shared_options()
def command(shared: Shared, name: str) -> None:
    """Show one job's life: its phase and GPUs, what it reported last, and everything that happened to it.

    With `-o wide`, the Workflow's nodes as `argo get` draws them.
    """
    store = shared.store()
    named = jobs.find(store, shared.namespace, name)
    if shared.output == "name":
        click.echo(named.workflow["metadata"]["name"])
    elif shared.is_data:
        output.data(named.workflow, shared.output)
    else:
        if not named.lives:
            _show_workflow(named.workflow)
        for number, job in enumerate(gather(store, shared.home, named.lives).jobs):
            click.echo("\n" if number else "", nl=False)
            _show(job, time.time())
        if shared.output == "wide" or not named.lives:
            click.echo()
            for line in drawing(named.workflow):
                click.echo(line)


def _show(job: JobRecord, now_s: float) -> None:
    """One job in full."""
    life, numbers = job.life, job.numbers
    facts = {
        "Job": life.label,
        "Namespace": life.namespace,
        "Status": life.phase,
        "Message": life.message or _fault(job),
        "Command": life.asked.get("command", ""),
        "Asked for": _asked(life),
        "Has": _has(life),
        "Progress": _progress(job),
        "Reported": _reported(job),
        "Submitted": f"{text(life.submitted_s)} ({short(now_s - life.submitted_s)} ago)",
        "Waited": short(numbers.wait_s),
        "Ran": short(numbers.run_s),
        "Took": short(numbers.jct_s) if life.ended_s is not None else "",
    }
    width = max(map(len, facts)) + 1
    for name, value in facts.items():
        if value:
            click.echo(f"{name + ':':<{width}}  {value}")
    if job.happened:
        click.echo()
        columns.show(
            ["AT", "SEGMENT", "STOOD STILL", "WHAT"], [_event(job, number) for number in range(len(job.happened))]
        )


def _fault(job: JobRecord) -> str:
    """Why it is trying again, until it trains."""
    for event in reversed(job.happened):
        if event.kind == "lost":
            return f"{event.text}; see: voda logs {job.life.label}"
        if event.kind not in ("queue", "checkpoint", "retry", "grant"):
            break
    return ""


def _event(job: JobRecord, number: int) -> list[str]:
    """An event's line."""
    event = job.happened[number]
    still = "" if event.still_s is None else f"{event.still_s:.2f}s"
    return [f"+{short(event.at_s - job.life.submitted_s)}", str(event.segment), still, event.text]


def _asked(life: JobLife) -> str:
    """What it asked for."""
    asked = life.asked
    queue, priority = asked.get("queue", "default"), asked.get("priority", "normal")
    kind = f" of {asked['gpu-type']}" if asked.get("gpu-type") else ""
    return f"{many(life.asks)}{kind}, {asked.get('epochs', '1')} epochs, queue {queue}, priority {priority}"


def _has(life: JobLife) -> str:
    """What it has, by node."""
    by_node: dict[str, list[str]] = {}
    for held in life.holding:
        by_node.setdefault(held.node, []).extend(str(slot) for slot in held.slots)
    where = "; ".join(f"{node} slot {','.join(sorted(slots))}" for node, slots in sorted(by_node.items()))
    return f"{many(life.gpus)}: {where}" if by_node else ""


def _progress(job: JobRecord) -> str:
    """How far it is."""
    life, last = job.life, job.rows[-1] if job.rows else {}
    epochs = int(life.asked.get("epochs", "1") or 1)
    # Rows count from 0, people from 1.
    epoch = f", epoch {min(int(last['epoch']) + 1, epochs)} of {epochs}" if "epoch" in last else ""
    return f"{life.fraction:.0%}{epoch}"


def _reported(job: JobRecord) -> str:
    """What it reported last."""
    return f"{metric(job)}" if job.numbers.value is not None else ""


def _show_workflow(workflow: Object) -> None:
    """A Workflow in which no job has reached the queue."""
    status = workflow.get("status") or {}
    click.echo(f"Workflow:  {workflow['metadata']['name']}")
    click.echo(f"Status:    {status.get('phase') or 'Pending'}")
    if status.get("message"):
        click.echo(f"Message:   {status['message']}")

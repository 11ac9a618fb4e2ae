"""``voda get``: one job's life so far."""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping

import click

from voda_flows.cli import columns, output, workers
from voda_flows.cli.choosing import choose, workflows_of
from voda_flows.cli.drawing import drawing
from voda_flows.cli.options import Shared, job_names, shared_options
from voda_flows.cli.verbs import verb
from voda_flows.control.reports import DriverStatus
from voda_flows.objects import WORKFLOW_ENDED, Object
from voda_flows.report.events import Event
from voda_flows.report.gather import gather
from voda_flows.report.jobs import Named
from voda_flows.report.lives import JobLife
from voda_flows.report.record import JobRecord
from voda_flows.report.table import metric
from voda_flows.report.times import many, short, text
from voda_flows.store import ObjectStore


@verb(
    "voda get digits",
    "voda get @latest -o wide",
    "voda get pipeline -o json | jq .status.phase",
    "voda get -l team=vision --status Running,Starting",
)
@job_names
@shared_options(many=True, filters=True)
def command(shared: Shared, names: tuple[str, ...]) -> None:
    """Show jobs' lives: phase, GPUs, workers, what each reported last, and everything that happened to it.

    With `-o wide`, the Workflow's nodes as `argo get` draws them. `-o json` and `-o yaml` print the Workflow itself,
    several as a List.
    """
    store = shared.store()
    chosen = choose(shared, store, names)
    workflows = workflows_of(chosen)
    if shared.is_data and len(names) == 1:
        output.data(workflows[0], shared.output)
        return
    if shared.output in ("name", "json", "yaml"):
        output.objects(workflows, shared.output)
        return
    said = workers.asked(shared.world, [life for one in chosen for life in one.lives])
    for number, one in enumerate(chosen):
        click.echo("\n" if number else "", nl=False)
        _show_named(shared, store, one, said)
    if any(life.phase not in WORKFLOW_ENDED for one in chosen for life in one.lives):
        shared.warn_if_down()
    if not chosen:
        output.story("no job fits these options")


def _show_named(shared: Shared, store: ObjectStore, one: Named, said: Mapping[str, DriverStatus]) -> None:
    """A Workflow's jobs in full, or the Workflow where none has reached the queue."""
    if not one.lives:
        _show_workflow(one.workflow)
    for number, job in enumerate(gather(store, shared.world.home, one.lives).jobs):
        click.echo("\n" if number else "", nl=False)
        _show(job, said.get(job.life.id, DriverStatus()), time.time())
    if shared.output == "wide" or not one.lives:
        click.echo()
        width = columns.click_width() if sys.stdout.isatty() else None
        for line in drawing(one.workflow):
            click.echo(line if width is None else columns.cut(line, width))


def _show(job: JobRecord, said: DriverStatus, now_s: float) -> None:
    """One job in full."""
    life, numbers = job.life, job.numbers
    columns.facts(
        {
            "Job": life.label,
            "Namespace": life.namespace,
            "Status": life.status,
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
    )
    held = workers.rows(life, said, now_s)
    if held:
        click.echo()
        columns.show(workers.HEADERS, held)
    if job.happened:
        click.echo()
        rows = [_event(job, event) for event in job.happened]
        columns.show(["AT", "SEGMENT", "STOOD STILL", "WHAT"], rows, wrap=True)


def _fault(job: JobRecord) -> str:
    """Why it is trying again, until it trains."""
    for event in reversed(job.happened):
        if event.kind == "lost":
            return f"{event.text}; see: voda logs {job.life.label}"
        if event.kind not in ("queue", "checkpoint", "retry", "grant"):
            break
    return ""


def _event(job: JobRecord, event: Event) -> list[str]:
    """An event's line."""
    still = "" if event.still_s is None else f"{event.still_s:.2f}s"
    what = f"{event.text}: {event.reason}" if event.reason else event.text
    return [f"+{short(event.at_s - job.life.submitted_s)}", str(event.segment), still, what]


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
    return f"{life.share}{epoch}"


def _reported(job: JobRecord) -> str:
    """What it reported last."""
    return f"{metric(job)}" if job.numbers.value is not None else ""


def _show_workflow(workflow: Object) -> None:
    """A Workflow in which no job has reached the queue."""
    status = workflow.get("status") or {}
    columns.facts(
        {
            "Workflow": workflow["metadata"]["name"],
            "Status": status.get("phase") or "Pending",
            "Message": status.get("message") or "",
        }
    )

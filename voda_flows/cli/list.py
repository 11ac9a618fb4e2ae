"""``voda list``: one line per job."""

from __future__ import annotations

import time

import click

from voda_flows.cli import columns, output
from voda_flows.cli.options import Shared, shared_options
from voda_flows.cli.verbs import verb
from voda_flows.objects import Object, seconds
from voda_flows.report import jobs
from voda_flows.report.lives import JobLife
from voda_flows.report.times import short

_HEADERS = ["NAME", "STATUS", "GPUS", "PROGRESS", "WAITED", "AGE"]
_WIDE = ["QUEUE", "PRIORITY", "NODES", "SEGMENT", "MESSAGE"]


@verb(
    "voda list",
    "voda list -A --status Queued -o wide",
    "voda list -l voda.dev/category=digits -o name",
)
@click.option(
    "--status",
    multiple=True,
    type=click.Choice([*columns.COLOURS], case_sensitive=False),
    metavar="PHASE",
    help="Only jobs in this phase (several allowed).",
)
@shared_options(many=True)
def command(shared: Shared, status: tuple[str, ...]) -> None:
    """List jobs: their phase, the GPUs they have (of those they asked for) and their progress."""
    store, wanted = shared.store(), {phase.lower() for phase in status}
    rows, shown, now_s = [], [], time.time()
    for workflow in jobs.workflows(store, shared.namespace, shared.labels):
        lines = [_row(life, now_s, shared) for life in jobs.read(store, workflow)] or [_plain(workflow, now_s, shared)]
        kept = [line for line in lines if not wanted or line[_status(shared)].lower() in wanted]
        rows += kept
        shown += [workflow] if kept else []
    if shared.output in ("name", "json", "yaml"):
        output.objects(shown, shared.output)
        return
    columns.show(_headers(shared), rows)
    if not rows:
        narrowed = wanted or shared.labels or shared.namespace not in (None, "default")
        output.story("no job fits these options" if narrowed else "no jobs; submit one with `voda submit FILE`")


def _headers(shared: Shared) -> list[str]:
    """The headers that fit the options."""
    return (["NAMESPACE"] if shared.namespace is None else []) + _HEADERS + (_WIDE if shared.output == "wide" else [])


def _status(shared: Shared) -> int:
    """The column of the phase."""
    return 2 if shared.namespace is None else 1


def _row(life: JobLife, now_s: float, shared: Shared) -> list[str]:
    """A job's line."""
    row = [
        life.label,
        life.phase,
        life.has_of_asked,
        f"{life.fraction:.0%}",
        short(life.waited_s(now_s)),
        short((life.ended_s or now_s) - life.submitted_s),
    ]
    if shared.output == "wide":
        nodes = ",".join(sorted({held.node for held in life.holding}))
        segment = str(life.segments[-1].number) if life.segments else ""
        row += [life.asked.get("queue", ""), life.asked.get("priority", ""), nodes, segment, life.message]
    return ([life.namespace] if shared.namespace is None else []) + row


def _plain(workflow: Object, now_s: float, shared: Shared) -> list[str]:
    """The line of a Workflow that has no job in the queue (yet)."""
    meta, status = workflow["metadata"], workflow.get("status") or {}
    started_s = seconds(meta["creationTimestamp"]) or now_s
    age = short((seconds(status.get("finishedAt")) or now_s) - started_s)
    row = [meta["name"], status.get("phase") or "Pending", "", status.get("progress", ""), "", age]
    row += ["", "", "", "", status.get("message", "")] if shared.output == "wide" else []
    return ([meta["namespace"]] if shared.namespace is None else []) + row

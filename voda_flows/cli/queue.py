"""``voda queue``: who waits, in the order in which they will be served, and why."""

from __future__ import annotations

import time

import click

from voda_flows.cli import columns, output, snapshot
from voda_flows.cli.options import Shared, shared_options
from voda_flows.cli.snapshot import settings_of
from voda_flows.cli.verbs import verb
from voda_flows.objects import Object
from voda_flows.report import jobs
from voda_flows.report.lives import JobLife
from voda_flows.report.times import short, text


@verb(
    "voda queue",
    "voda queue -A -o json",
)
@shared_options(many=True)
def command(shared: Shared) -> None:
    """List waiting jobs: priority class first, then who came first."""
    found = [life for one in jobs.every(shared.store(), shared.namespace) for life in one.lives]
    waiting, now_s = snapshot.in_order(found, settings_of(shared.world)), time.time()
    if shared.output == "name":
        for life in waiting:
            click.echo(life.label)
        return
    if shared.is_data:
        output.data({"items": [_document(place, life) for place, life in enumerate(waiting, start=1)]}, shared.output)
        return
    rows = [_row(place, life, now_s) for place, life in enumerate(waiting, start=1)]
    columns.show(["PLACE", "NAME", "PRIORITY", "WANTS", "WAITING", "MESSAGE"], rows)
    if not rows:
        output.story("nobody waits")


def _document(place: int, life: JobLife) -> Object:
    """A waiting job for programs; ``place`` counts from 1."""
    return {
        "place": place,
        "job": life.label,
        "namespace": life.namespace,
        "queue": life.asked.get("queue", "default"),
        "priority": life.asked.get("priority", "normal"),
        "minGpus": int(life.asked.get("min-gpus", "1")),
        "maxGpus": int(life.asked.get("max-gpus", "1")),
        "submitted": text(life.submitted_s),
        "message": life.message,
    }


def _row(place: int, life: JobLife, now_s: float) -> list[str]:
    """A waiting job's line."""
    priority, waiting = life.asked.get("priority", "normal"), short(now_s - life.queued_s)
    return [str(place), life.label, priority, life.asks, waiting, life.message]

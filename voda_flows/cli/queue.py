"""``voda queue``: who waits, in the order in which they will be served, and what each queue has."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence

import click

from scheduler_core.errors import Forbidden
from voda_flows.cli import columns, output, snapshot
from voda_flows.cli.options import Shared, shared_options
from voda_flows.cli.snapshot import settings_of
from voda_flows.cli.verbs import verb
from voda_flows.config import Settings
from voda_flows.control.cluster import OtherGpus, cluster_of
from voda_flows.objects import Object
from voda_flows.report import jobs
from voda_flows.report.lives import JobLife
from voda_flows.report.queues import QueueUse, queue_uses
from voda_flows.report.times import short, text


@verb(
    "voda queue",
    "voda queue -A -o json",
)
@shared_options(many=True)
def command(shared: Shared) -> None:
    """List waiting jobs, priority class first, then who came first; and each queue's GPUs.

    A queue's GPUs are those of jobs in all namespaces, as far as one may see them.
    """
    found = [life for one in jobs.every(shared.store(), shared.namespace) for life in one.lives]
    settings, now_s = settings_of(shared.world), time.time()
    waiting = snapshot.in_order(found, settings)
    if shared.output == "name":
        for life in waiting:
            click.echo(life.label)
        return
    uses = _uses(shared, settings, found)
    if shared.is_data:
        items = [_document(place, life) for place, life in enumerate(waiting, start=1)]
        output.data({"items": items, "queues": [_queue_document(use) for use in uses]}, shared.output)
        return
    rows = [_row(place, life, now_s) for place, life in enumerate(waiting, start=1)]
    columns.show(["PLACE", "NAME", "PRIORITY", "WANTS", "WAITING", "MESSAGE"], rows)
    if not rows:
        output.story("nobody waits")
    _show_queues(uses)


def _uses(shared: Shared, settings: Settings, found: Iterable[JobLife]) -> tuple[QueueUse, ...]:
    """Each queue's GPUs; none where one may not see nodes."""
    whole = shared.world.whole
    try:
        cluster = cluster_of(whole.list("Node"), OtherGpus(), ())
    except Forbidden:
        return ()
    try:
        found = [life for one in jobs.every(whole, None) for life in one.lives]
    except Forbidden:
        output.story("note: of the queues' GPUs only those of jobs in this namespace can be seen")
    return queue_uses(settings.queues, found, {node.name: node.gpu_type for node in cluster.nodes})


def _show_queues(uses: Sequence[QueueUse]) -> None:
    """A line for each queue and type."""
    if not uses:
        return
    click.echo()
    columns.show(
        ["QUEUE", "TYPE", "NOMINAL", "USED", "BORROWED", "MOST", "WAITING"],
        [
            [
                use.queue,
                use.gpu_type or "-",
                "-" if use.nominal_gpus is None else str(use.nominal_gpus),
                str(use.used_gpus),
                str(use.borrowed_gpus),
                "-" if use.most_gpus is None else str(use.most_gpus),
                f"{use.waiting_jobs} jobs, {use.waiting_gpus} GPUs" if use.waiting_jobs else "-",
            ]
            for use in uses
        ],
    )


def _queue_document(use: QueueUse) -> Object:
    """A queue and a type for programs."""
    return {
        "queue": use.queue,
        "gpuType": use.gpu_type,
        "nominalGpus": use.nominal_gpus,
        "usedGpus": use.used_gpus,
        "borrowedGpus": use.borrowed_gpus,
        "mostGpus": use.most_gpus,
        "waitingJobs": use.waiting_jobs,
        "waitingGpus": use.waiting_gpus,
    }


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

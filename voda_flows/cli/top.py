"""``voda top``: what nodes and jobs use, live on a terminal, once for a pipe."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from typing import Final

import click

from voda_flows.cli import columns, output
from voda_flows.cli.choosing import choose, is_meant
from voda_flows.cli.load import Gauge, Load, Top
from voda_flows.cli.moments import DURATION
from voda_flows.cli.options import Shared, job_names, shared_options
from voda_flows.cli.verbs import verb
from voda_flows.objects import WORKFLOW_ENDED, Object
from voda_flows.report.jobs import Named
from voda_flows.report.times import text

_MIB: Final = 1024.0 * 1024.0
_GIB_MIB: Final = 1024.0
_USED: Final = ("CPU", "MEMORY", "PROCESSES")


@verb(
    "voda top",
    "voda top digits --once -o wide",
    "voda top -o json | jq '.jobs[].cpu_percent'",
)
@job_names
@click.option("--once", is_flag=True, help="Show it once and return, also on a terminal.")
@click.option(
    "--interval",
    type=DURATION,
    default="1s",
    show_default=True,
    metavar="TIME",
    help="Over how long CPU is measured, and how often the live view is drawn anew.",
)
@shared_options(many=True)
def command(shared: Shared, names: tuple[str, ...], *, once: bool, interval: float) -> None:
    """Show what nodes and jobs use: GPU slots, CPU (100% is one core), memory, and samples a second.

    Jobs that have ended are left out unless they are named. With `-o wide`, each pod of each job too.
    """
    store = shared.store()
    uids = {one.workflow["metadata"]["uid"] for one in choose(shared, store, names)} if names else None
    meter = Gauge(shared.world, shared.namespace, lambda one: _is_shown(shared, one, uids))
    try:
        if shared.output in ("", "wide") and columns.is_smart() and not once:
            _draw(meter, interval, wide=shared.output == "wide")
            return
        meter.take()
        time.sleep(interval)
        seen = meter.take()
    finally:
        meter.close()
    if shared.output == "name":
        for job in seen.jobs:
            click.echo(job.name)
    elif shared.is_data:
        output.data(document(seen), shared.output)
    else:
        width = columns.click_width() if sys.stdout.isatty() else None
        for line in lines(seen, wide=shared.output == "wide", width=width):
            click.echo(line)


def _is_shown(shared: Shared, one: Named, uids: set[str] | None) -> bool:
    """Whether a Workflow's jobs are shown."""
    if uids is not None:
        return one.workflow["metadata"]["uid"] in uids
    return is_meant(shared, one) and any(life.phase not in WORKFLOW_ENDED for life in one.lives)


def _draw(meter: Gauge, interval_s: float, *, wide: bool) -> None:
    """Live, until it is interrupted."""
    from rich.console import Console  # noqa: PLC0415 - a pipe needs none of it
    from rich.live import Live  # noqa: PLC0415
    from rich.text import Text  # noqa: PLC0415

    console = Console()
    with Live(console=console, auto_refresh=False, vertical_overflow="crop") as live:
        while True:
            drawn = lines(meter.take(), wide=wide, width=console.width)
            live.update(Text("\n".join(drawn), no_wrap=True, overflow="ellipsis"), refresh=True)
            time.sleep(interval_s)


def lines(seen: Top, *, wide: bool, width: int | None) -> Iterator[str]:
    """What is shown, as lines of at most a width."""
    nodes = [[load.name, _slots(load), *_used(load)] for load in seen.nodes]
    yield from columns.align(["NODE", "GPUS", *_USED], nodes, width=width)
    yield ""
    if not seen.jobs:
        yield "no job goes on"
        return
    jobs = [[load.name, load.phase, _slots(load), _speed(load), *_used(load)] for load in seen.jobs]
    yield from columns.align(["JOB", "STATUS", "GPUS", "SAMPLES/S", *_USED], jobs, width=width)
    if wide:
        yield ""
        yield from columns.align(["JOB", "POD", "STATUS", "NODE", "GPUS", *_USED], list(_pods(seen)), width=width)


def document(seen: Top) -> Object:
    """All of it for programs."""
    return {
        "time": text(seen.now.now_s),
        "nodes": [{**_fields(load), "slots": int(load.gpus_of)} for load in seen.nodes],
        "jobs": [
            {
                **_fields(load),
                "asks": load.gpus_of,
                "samples_per_s": load.samples_per_s,
                "pods": [{**_fields(pod), "node": pod.node} for pod in pods],
            }
            for load, pods in zip(seen.jobs, seen.pods, strict=True)
        ],
    }


def _fields(load: Load) -> Object:
    """What nodes, jobs and pods have in common."""
    percent = load.used.cpu_percent
    return {
        "name": load.name,
        "phase": load.phase,
        "gpus": load.gpus,
        "cpu_percent": None if percent is None else round(percent, 1),
        "memory_bytes": load.used.memory_bytes,
        "processes": load.used.processes,
    }


def _pods(seen: Top) -> Iterator[list[str]]:
    """A line for each pod."""
    for job, pods in zip(seen.jobs, seen.pods, strict=True):
        for pod in pods:
            yield [job.name, pod.name, pod.phase, pod.node, str(pod.gpus), *_used(pod)]


def _slots(load: Load) -> str:
    """GPU slots held, of those there are or were asked for."""
    return f"{load.gpus}/{load.gpus_of}"


def _used(load: Load) -> tuple[str, str, str]:
    """CPU, memory and processes in words."""
    used = load.used
    percent = "" if used.cpu_percent is None else f"{used.cpu_percent:.0f}%"
    return percent, _memory(used.memory_bytes), "" if used.processes is None else str(used.processes)


def _memory(held_bytes: int | None) -> str:
    """Memory in words, empty where nobody knows."""
    if held_bytes is None:
        return ""
    mib = held_bytes / _MIB
    return f"{mib:.0f}Mi" if mib < _GIB_MIB else f"{mib / _GIB_MIB:.1f}Gi"


def _speed(load: Load) -> str:
    """Samples a second in words."""
    return "" if load.samples_per_s is None else f"{load.samples_per_s:.0f}"

"""``voda list``: one line per job."""

from __future__ import annotations

import time

from voda_flows.cli import columns, output
from voda_flows.cli.choosing import narrowed
from voda_flows.cli.options import Shared, shared_options
from voda_flows.cli.verbs import verb
from voda_flows.objects import WORKFLOW_ENDED, Object, phase_of, seconds
from voda_flows.report import jobs
from voda_flows.report.jobs import Named
from voda_flows.report.lives import JobLife, is_suspended
from voda_flows.report.times import short

_HEADERS = ["NAME", "STATUS", "GPUS", "PROGRESS", "WAITED", "AGE", "DURATION"]
_WIDE = ["QUEUE", "PRIORITY", "NODES", "SEGMENT", "MESSAGE"]


@verb(
    "voda list",
    "voda list -A --status Queued,Starting -o wide",
    "voda list --context production -n team-a",
    "voda list -l 'voda.dev/category in (digits,text)' --since 2h -o name",
)
@shared_options(many=True, filters=True)
def command(shared: Shared) -> None:
    """List jobs: their phase, the GPUs they have (of those they asked for) and their progress."""
    store, now_s = shared.store(), time.time()
    look = jobs.every if shared.is_data else jobs.brief
    shown = narrowed(shared, look(store, shared.namespace, shared.labels))
    if shared.output in ("name", "json", "yaml"):
        output.objects([one.workflow for one in shown], shared.output)
        return
    rows = [row for one in shown for row in _rows(one, now_s, shared)]
    columns.show(_headers(shared), rows)
    if any(_goes_on(one.workflow) for one in shown):
        shared.warn_if_down()
    if not rows:
        elsewhere = shared.narrows or shared.namespace not in (None, shared.world.namespace)
        output.story("no job fits these options" if elsewhere else "no jobs; submit one with `voda submit FILE`")


def _goes_on(workflow: Object) -> bool:
    """Whether it has not ended."""
    return phase_of(workflow) not in WORKFLOW_ENDED


def _rows(one: Named, now_s: float, shared: Shared) -> list[list[str]]:
    """The lines of a Workflow: one for each of its jobs that is meant."""
    meant = [life for life in one.lives if not shared.phases or life.phase in shared.phases]
    return [_row(life, now_s, shared) for life in meant] or [_plain(one.workflow, now_s, shared)]


def _headers(shared: Shared) -> list[str]:
    """The headers that fit the options."""
    return (["NAMESPACE"] if shared.namespace is None else []) + _HEADERS + (_WIDE if shared.output == "wide" else [])


def _row(life: JobLife, now_s: float, shared: Shared) -> list[str]:
    """A job's line."""
    row = [
        life.label,
        life.status,
        life.has_of_asked,
        life.share,
        short(life.waited_s(now_s)),
        short(now_s - life.submitted_s),
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
    age, duration = short(now_s - started_s), short((seconds(status.get("finishedAt")) or now_s) - started_s)
    phase = (status.get("phase") or "Pending") + (" (suspended)" if is_suspended(workflow) else "")
    row = [meta["name"], phase, "", status.get("progress", ""), "", age, duration]
    row += ["", "", "", "", status.get("message", "")] if shared.output == "wide" else []
    return ([meta["namespace"]] if shared.namespace is None else []) + row

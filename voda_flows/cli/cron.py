"""``voda cron``: cron workflows, one of them now, and their end."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime

import click

from scheduler_core.errors import InvalidValue, NotFound
from voda_flows.cli import columns, following, output
from voda_flows.cli.names import NameType
from voda_flows.cli.options import Shared, shared_options
from voda_flows.cli.verbs import verb, verb_group
from voda_flows.config import near_miss
from voda_flows.local.cron import manual_workflow, next_time, validate_cron
from voda_flows.objects import CRON_LABEL, WORKFLOW_ENDED, Object, phase_of, seconds
from voda_flows.report.times import short, text
from voda_flows.store import ObjectStore

CRON = NameType("name", "CronWorkflow")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Line:
    """A cron workflow as it is listed; times in seconds since the epoch."""

    cron: Object
    last_s: float | None
    next_s: float | None
    active: tuple[str, ...]
    fault: str

    @property
    def is_suspended(self) -> bool:
        return self.cron["spec"].get("suspend") is True

    @property
    def schedules(self) -> list[str]:
        return [str(each) for each in self.cron["spec"].get("schedules") or []]


@verb(
    "voda cron list",
    "voda cron list -A -o json",
)
@shared_options(many=True)
def cron_list(shared: Shared) -> None:
    """List cron workflows: when they ran last, when they run next, what of them runs."""
    store, now = shared.store(), datetime.now(UTC)
    found = [cron for cron in store.list("CronWorkflow", shared.namespace)
             if shared.labels.fits(cron["metadata"].get("labels"))]  # fmt: skip
    if shared.output == "name":
        output.objects(found, "name")
        return
    lines = [_line(store, cron, now, is_local=shared.is_local) for cron in found]
    if shared.is_data:
        output.data({"items": [_data(line) for line in lines]}, shared.output)
        return
    columns.show(_headers(shared), [_row(line, now.timestamp(), shared) for line in lines])
    for line in lines:
        if line.fault:
            output.story(f"{line.cron['metadata']['name']}: {line.fault}")
    if not lines:
        output.story("no cron workflows; `voda submit` takes CronWorkflow documents too")
    shared.warn_if_down()


@verb(
    "voda cron run nightly",
    "voda cron run nightly --wait",
)
@click.argument("name", type=CRON, metavar="NAME")
@click.option("-w", "--wait", is_flag=True, help="Wait until the run has ended; exit 1 when it failed.")
@shared_options()
@click.pass_context
def cron_run(context: click.Context, shared: Shared, name: str, *, wait: bool) -> None:
    """Run a cron workflow now, whatever its schedule and its policy say; that of a suspended one too.

    The run counts as one of its own: under `Forbid` nothing starts by the schedule while it goes on.
    """
    store = shared.store()
    cron = _find(store, shared.namespace or shared.world.namespace, name)
    validate_cron(cron, supported=shared.is_local)
    made = store.create(manual_workflow(cron, datetime.now(UTC)))
    if shared.output in ("name", "json", "yaml"):
        output.objects([made], shared.output)
    else:
        click.echo(f"{made['metadata']['name']} created from {name}")
    shared.warn_if_down()
    if wait:
        context.exit(following.wait(store, [made]))


@verb("voda cron delete nightly")
@click.argument("names", type=CRON, metavar="NAME...", nargs=-1, required=True)
@shared_options(output=False)
def cron_delete(shared: Shared, names: tuple[str, ...]) -> None:
    """Delete cron workflows and the runs they made, as `argo cron delete` does."""
    store = shared.store()
    found = [
        _find(store, shared.namespace or shared.world.namespace, name)["metadata"] for name in dict.fromkeys(names)
    ]
    for meta in found:
        store.delete("CronWorkflow", meta["namespace"], meta["name"], uid=meta["uid"])
        click.echo(f"{meta['name']} deleted")


@verb_group(("list", cron_list), ("run", cron_run), ("delete", cron_delete))
def command() -> None:
    """Cron workflows: list them, run one now, delete them.

    Schedules are submitted and changed with `voda submit FILE`, as other documents are.
    """


def _find(store: ObjectStore, namespace: str, name: str) -> Object:
    try:
        return store.get("CronWorkflow", namespace, name)
    except NotFound as wrong:
        known = [cron["metadata"]["name"] for cron in store.list("CronWorkflow", namespace)]
        meant = near_miss(name, known) if known else ""
        raise NotFound(f"no cron workflow {name!r} in namespace {namespace!r}{meant}") from wrong


def _line(store: ObjectStore, cron: Object, now: datetime, *, is_local: bool) -> _Line:
    meta = cron["metadata"]
    children = store.list("Workflow", meta["namespace"], {CRON_LABEL: meta["name"]})
    fault, coming = "", None
    try:
        coming = next_time(cron, now, supported=is_local)
    except InvalidValue as wrong:
        fault = str(wrong)
    return _Line(
        cron=cron,
        last_s=seconds((cron.get("status") or {}).get("lastScheduledTime")),
        next_s=coming.timestamp() if coming and not cron["spec"].get("suspend") else None,
        active=tuple(child["metadata"]["name"] for child in children
                     if phase_of(child) not in WORKFLOW_ENDED),
        fault=fault,
    )  # fmt: skip


def _data(line: _Line) -> Object:
    meta = line.cron["metadata"]
    return {
        "name": meta["name"],
        "namespace": meta["namespace"],
        "schedules": line.schedules,
        "timezone": line.cron["spec"].get("timezone") or "Etc/UTC",
        "last": None if line.last_s is None else text(line.last_s),
        "next": None if line.next_s is None else text(line.next_s),
        "active": list(line.active),
        "suspended": line.is_suspended,
        "message": line.fault,
    }


def _headers(shared: Shared) -> list[str]:
    wide = ["TIMEZONE", "POLICY", "RUNS"] if shared.output == "wide" else []
    before = ["NAMESPACE"] if shared.namespace is None else []
    return [*before, "NAME", "SCHEDULE", "LAST", "NEXT", "ACTIVE", "SUSPENDED", *wide]


def _row(line: _Line, now_s: float, shared: Shared) -> list[str]:
    meta, spec = line.cron["metadata"], line.cron["spec"]
    row = [
        meta["name"],
        ", ".join(line.schedules),
        "" if line.last_s is None else f"{short(max(0.0, now_s - line.last_s))} ago",
        "" if line.next_s is None else f"in {short(line.next_s - now_s)}",
        str(len(line.active)),
        "yes" if line.is_suspended else "no",
    ]
    if shared.output == "wide":
        row += [spec.get("timezone") or "Etc/UTC", spec.get("concurrencyPolicy") or "Allow", ",".join(line.active)]
    return ([meta["namespace"]] if shared.namespace is None else []) + row

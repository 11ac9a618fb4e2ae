"""Cron workflows: which child is due now, and when to look again. Pure; the engine does what it says.

Names, labels and policies are Argo's; when a schedule comes up is ``schedule.py``'s. A tick that could not run at its
time (the engine was down, ``Forbid`` kept it back) is made up for within ``startingDeadlineSeconds``: only the latest
of them, and only of a cron workflow that has run before with the schedules that it has now.

A clock that is put forward passes over ticks: they are missed like any others. One that is put back passes over them a
second time. A tick that names a time of the day (``30 2 * * *``) and has run is not run again; a schedule that says how
often (``*/5 * * * *``, ``@hourly``, ``@every``) goes on by the new time at once, and a child of a tick that is passed
again bears a scheduled time one second later, so that no scheduled time is ever given twice.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import islice, takewhile
from typing import Any

from scheduler_core.errors import InvalidValue
from voda_flows.local.schedule import Schedule, read_schedule
from voda_flows.objects import CRON_LABEL, WORKFLOW_ENDED, Object, format_time, parse_time, phase_of

SCHEDULED = "workflows.argoproj.io/scheduled-time"
USED = "cronworkflows.argoproj.io/last-used-schedule"
LATE_S = 5.0
"""How late a tick may be acted on without ``startingDeadlineSeconds``: a busy moment is no missed tick."""
FAR = timedelta(hours=1)
"""Looked again at the latest after this time."""
TURNED = timedelta(minutes=1)
"""A clock that is put back by less is waited for: it is being set right, and there is at most one tick a minute."""
NAME_LIMIT = 52
"""Argo's own: a child's name adds eleven characters, and a pod's name more."""
POLICIES = ("Allow", "Forbid", "Replace")
NUMBERS = ("startingDeadlineSeconds", "successfulJobsHistoryLimit", "failedJobsHistoryLimit")
FIELDS = ("schedules", "timezone", "concurrencyPolicy", "suspend", "workflowSpec", "workflowMetadata", *NUMBERS)
UNSUPPORTED = ("when", "stopStrategy")


@dataclass(frozen=True, slots=True, kw_only=True)
class CronStep:
    """What is to be done for a cron workflow.

    Attributes:
        create: The child that is due, or none.
        terminate: Children that have to end for it (policy ``Replace``).
        delete: Ended children beyond the history limits.
        status: What the cron workflow's ``status`` should be, its conditions apart.
        again: When to look again where nothing changes before.
    """

    create: Object | None
    terminate: tuple[str, ...]
    delete: tuple[str, ...]
    status: Object
    again: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Count:
    """From where ticks are counted.

    Attributes:
        since: Ticks after this moment have not been acted on.
        until: Ticks up to this moment were passed before the clock was put back; None where it never was.
        times: How often it was put back since.
    """

    since: datetime
    until: datetime | None = None
    times: int = 0

    def shown(self) -> Object:
        """The count as a cron workflow's status keeps it."""
        until = format_time(self.until) if self.until else None
        return {"until": until, "since": format_time(self.since), "times": self.times}


def cron_step(cron: Object, children: Sequence[Object], now: datetime) -> CronStep:
    """What is to be done for a cron workflow now.

    Args:
        cron: The CronWorkflow.
        children: The Workflows in its namespace with its name in the label ``workflows.argoproj.io/cron-workflow``.
        now: The moment, with its time zone.

    Raises:
        InvalidValue: Its spec makes no sense here; says where.
    """
    schedules = validate_cron(cron)
    spec, count = cron["spec"], _count(cron, now)
    active = [child for child in children if phase_of(child) not in WORKFLOW_ENDED]
    tick = None if spec.get("suspend") else _latest_due(schedules, count, now, _allowed(cron))
    policy = spec.get("concurrencyPolicy") or "Allow"
    if tick and policy == "Forbid" and (active or _was_kept_back(spec, children, tick, now)):
        tick = None
    status: Object = {"active": [reference(other) for other in active]}
    scheduled = None
    if tick:
        scheduled = tick + timedelta(seconds=count.times) if count.until and tick <= count.until else tick
        count = Count(since=tick, until=count.until, times=count.times) if scheduled != tick else Count(since=tick)
        status["lastScheduledTime"] = format_time(scheduled)
    elif said := (cron.get("status") or {}).get("lastScheduledTime"):
        status["lastScheduledTime"] = said
    if "lastScheduledTime" in status:
        status |= {"phase": "Active", **_counts(cron, children)}
    if count.until:
        status["clockTurnedBack"] = count.shown()
    return CronStep(
        create=workflow_from_cron(cron, scheduled) if scheduled else None,
        terminate=tuple(other["metadata"]["name"] for other in active) if tick and policy == "Replace" else (),
        delete=tuple(_beyond_history(spec, children)),
        status=status,
        again=min([now + FAR, *(next(_ticks(schedule, count, now), now + FAR) for schedule in schedules)]),
    )


def next_time(cron: Object, now: datetime, *, supported: bool = True) -> datetime | None:
    """When a cron workflow comes up next, if it ever does.

    Args:
        cron: The CronWorkflow.
        now: The moment, with its time zone.
        supported: Whether what only local mode has not is refused.

    Raises:
        InvalidValue: Its spec makes no sense here; says where.
    """
    count, schedules = _count(cron, now), validate_cron(cron, supported=supported)
    return min((tick for schedule in schedules for tick in islice(_ticks(schedule, count, now), 1)), default=None)


def used_schedules(cron: Object) -> str:
    """What is noted of a cron workflow's schedules when it runs, to see later whether they were changed."""
    zone = cron["spec"].get("timezone")
    return ",".join(f"CRON_TZ={zone} {text}" if zone else text for text in cron["spec"]["schedules"])


def workflow_from_cron(cron: Object, scheduled: datetime) -> Object:
    """The child of a cron workflow for a scheduled time."""
    metadata, extra = cron["metadata"], cron["spec"].get("workflowMetadata") or {}
    return {
        "apiVersion": "argoproj.io/v1alpha1",
        "kind": "Workflow",
        "metadata": {
            "name": f"{metadata['name']}-{int(scheduled.timestamp())}",
            "namespace": metadata["namespace"],
            "labels": {**(extra.get("labels") or {}), CRON_LABEL: metadata["name"]},
            "annotations": {
                **(extra.get("annotations") or {}),
                SCHEDULED: scheduled.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
            },
            "ownerReferences": [
                {
                    "apiVersion": "argoproj.io/v1alpha1",
                    "kind": "CronWorkflow",
                    "name": metadata["name"],
                    "uid": metadata["uid"],
                    "controller": True,
                    "blockOwnerDeletion": True,
                }
            ],
        },
        "spec": cron["spec"]["workflowSpec"],
    }


def manual_workflow(cron: Object, now: datetime) -> Object:
    """The child of a cron workflow that somebody starts by hand: as ``argo submit --from cronwf/NAME`` makes it.

    Its name is made up when it is kept; policies, suspension and the last scheduled time have nothing to do with it.
    """
    child = workflow_from_cron(cron, now)
    metadata = {key: value for key, value in child["metadata"].items() if key != "name"}
    return {**child, "metadata": {"generateName": f"{cron['metadata']['name']}-", **metadata}}


def validate_cron(cron: Object, *, supported: bool = True) -> list[Schedule]:
    """Refuse what local mode does not know, or what makes no sense; gives the schedules.

    Args:
        cron: The CronWorkflow.
        supported: Whether what only local mode has not is refused too.

    Raises:
        InvalidValue: Says where, and what was expected.
    """
    name, spec = str(cron["metadata"].get("name") or ""), cron.get("spec") or {}
    where = f"CronWorkflow {name}"
    if len(name) > NAME_LIMIT:
        raise InvalidValue(f"{where}: expected a name of at most {NAME_LIMIT} characters, got {len(name)} "
                           "(at $.metadata.name)")  # fmt: skip
    for field in spec:
        if supported or field not in UNSUPPORTED:
            _check_known(where, field)
    if not isinstance(spec.get("workflowSpec"), dict):
        raise InvalidValue(f"{where}: expected a Workflow's spec, got none (at $.spec.workflowSpec)")
    schedules = spec.get("schedules")
    if not isinstance(schedules, list) or not schedules or not all(isinstance(text, str) for text in schedules):
        raise InvalidValue(
            f"{where}: expected a list of schedules, got {spec.get('schedules')!r} (at $.spec.schedules)"
        )
    for field in NUMBERS:
        if not re.fullmatch(r"\d{1,10}", str(spec.get(field, 0))):
            raise _wrong(where, spec, field, "0 or more")
    if spec.get("concurrencyPolicy", "Allow") not in POLICIES:
        raise _wrong(where, spec, "concurrencyPolicy", f"one of {', '.join(POLICIES)}")
    if not isinstance(spec.get("suspend", False), bool):
        raise _wrong(where, spec, "suspend", "true or false")
    return [read_schedule(text, spec.get("timezone")) for text in schedules]


def _check_known(where: str, field: str) -> None:
    if field in UNSUPPORTED:
        raise InvalidValue(f"{where}: {field}: not supported in local mode (at $.spec.{field})")
    if field not in FIELDS:
        near = difflib.get_close_matches(str(field), FIELDS, n=1)
        meant = f", did you mean {near[0]}?" if near else ""
        raise InvalidValue(f"{where}: expected fields out of {', '.join(sorted(FIELDS))}, got {field!r}{meant} "
                           "(at $.spec)")  # fmt: skip


def _wrong(where: str, spec: Object, field: str, expected: str) -> InvalidValue:
    return InvalidValue(f"{where}: expected {expected}, got {spec[field]!r} (at $.spec.{field})")


def _count(cron: Object, now: datetime) -> Count:
    """From where ticks are to be counted now; a count that lies ahead of the clock shows that this was put back."""
    status: Object = cron.get("status") or {}
    kept: dict[str, Any] = status.get("clockTurnedBack") or {}
    last = parse_time(status.get("lastScheduledTime") or cron["metadata"]["creationTimestamp"])
    until = parse_time(kept["until"]) if kept else None
    since = parse_time(kept["since"]) if kept else last
    times = int(kept.get("times", 0))
    if since > now + TURNED:
        has_run = "lastScheduledTime" in status
        return Count(since=now, until=max(last, until or last) if has_run else now, times=times + 1)
    return Count(since=since, until=until, times=times)


def _allowed(cron: Object) -> timedelta:
    """How late a tick may be acted on: as long as asked for, once it has run with these schedules."""
    deadline_s = float(cron["spec"].get("startingDeadlineSeconds") or 0)
    used = (cron["metadata"].get("annotations") or {}).get(USED)
    has_run = bool((cron.get("status") or {}).get("lastScheduledTime"))
    counts = has_run and used in (None, used_schedules(cron))
    return timedelta(seconds=max(LATE_S, deadline_s if counts else 0.0))


def _latest_due(schedules: Sequence[Schedule], count: Count, now: datetime, allowed: timedelta) -> datetime | None:
    """The latest tick after those acted on that may still be acted on."""
    passed: list[datetime] = []
    for schedule in schedules:
        ticks = _ticks(schedule, count, now - allowed)
        passed += list(takewhile(lambda tick: tick <= now, ticks))[-1:]
    return max(passed, default=None)


def _ticks(schedule: Schedule, count: Count, after: datetime) -> Iterator[datetime]:
    """The ticks of a schedule that are to be acted on after a moment; a period is counted from the last of them."""
    begin = max(count.since, after)
    if schedule.period_s:
        return (tick for tick in schedule.after(count.since) if tick > begin)
    if schedule.is_time_of_day and count.until:
        begin = max(begin, count.until)
    return schedule.after(begin)


def _was_kept_back(spec: Object, children: Sequence[Object], tick: datetime, now: datetime) -> bool:
    """Whether a child still ran at a tick for which there is no deadline any more: under ``Forbid`` it has passed."""
    if (now - tick).total_seconds() < float(spec.get("startingDeadlineSeconds") or 0):
        return False
    ends = [(child.get("status") or {}).get("finishedAt") for child in children]
    # An end that lies ahead is by a clock that was put back since: it says nothing.
    return any(tick < parse_time(end) <= now for end in ends if end)


def _beyond_history(spec: Object, children: Sequence[Object]) -> list[str]:
    """Names of ended children beyond what is to be kept, those that ended first before others."""
    beyond: list[str] = []
    for phases, name, default in (
        (("Succeeded",), "successfulJobsHistoryLimit", 3),
        (("Failed", "Error"), "failedJobsHistoryLimit", 1),
    ):
        ended = [child for child in children if phase_of(child) in phases]
        ended.sort(key=lambda child: (child["status"].get("finishedAt") or "", child["metadata"]["name"]))
        limit = int(spec.get(name, default))
        beyond += [child["metadata"]["name"] for child in ended[: max(0, len(ended) - limit)]]
    return beyond


def _counts(cron: Object, children: Sequence[Object]) -> dict[str, int]:
    """How many children ended well and badly: those that stood in the status as active and have ended are new."""
    status: Object = cron.get("status") or {}
    were_active = {each["uid"] for each in status.get("active") or ()}
    ends = [phase_of(child) for child in children if child["metadata"]["uid"] in were_active]
    succeeded = int(status.get("succeeded", 0)) + ends.count("Succeeded")
    return {"succeeded": succeeded, "failed": int(status.get("failed", 0)) + ends.count("Failed") + ends.count("Error")}


def reference(child: Object) -> Object:
    """A child as its cron workflow's status names it."""
    metadata = child["metadata"]
    return {
        "apiVersion": "argoproj.io/v1alpha1",
        "kind": "Workflow",
        "name": metadata["name"],
        "namespace": metadata["namespace"],
        "uid": metadata["uid"],
    }

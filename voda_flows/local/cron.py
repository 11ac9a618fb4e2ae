"""Cron workflows: which child is due now, and when to look again. Pure; the engine does what it says.

Schedules have five fields (``cronsim``, Debian's rules: what falls into the hour that summer time skips runs once right
after it, what falls into the hour that comes twice runs once), or are ``@every 90s``, ``@hourly`` and the like.
Names, labels and policies are Argo's. A tick that could not run at its time (the engine was down, ``Forbid`` kept it
back) is made up for within ``startingDeadlineSeconds``, only the latest of them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import takewhile
from zoneinfo import ZoneInfo

from cronsim import CronSim, CronSimError

from scheduler_core.errors import InvalidValue
from voda_flows.objects import WORKFLOW_ENDED, Object, format_time, parse_time

LABEL = "workflows.argoproj.io/cron-workflow"
SCHEDULED = "workflows.argoproj.io/scheduled-time"
LATE_S = 5.0
"""How late a tick may be acted on without ``startingDeadlineSeconds``: a busy moment is no missed tick."""
FAR = timedelta(hours=1)
"""Looked again at the latest after this time, so that a changed clock does no harm."""
NAMED = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}
UNIT_S = {"h": 3600.0, "m": 60.0, "s": 1.0}
POLICIES = ("Allow", "Forbid", "Replace")
NUMBERS = ("startingDeadlineSeconds", "successfulJobsHistoryLimit", "failedJobsHistoryLimit")
FIELDS = frozenset(
    {"schedules", "timezone", "concurrencyPolicy", "suspend", "workflowSpec", "workflowMetadata", *NUMBERS}
)


@dataclass(frozen=True, slots=True, kw_only=True)
class CronStep:
    """What is to be done for a cron workflow.

    Attributes:
        create: The child that is due, or none.
        terminate: Children that have to end for it (policy ``Replace``).
        delete: Ended children beyond the history limits.
        status: What the cron workflow's ``status`` should be.
        again: When to look again where nothing changes before.
    """

    create: Object | None
    terminate: tuple[str, ...]
    delete: tuple[str, ...]
    status: Object
    again: datetime


def cron_step(cron: Object, children: Sequence[Object], now: datetime) -> CronStep:
    """What is to be done for a cron workflow now.

    Args:
        cron: The CronWorkflow.
        children: The Workflows in its namespace with its name in the label ``workflows.argoproj.io/cron-workflow``.
        now: The moment, with its time zone.

    Raises:
        InvalidValue: Its spec makes no sense here; says where.
    """
    validate_cron(cron)
    spec, old = cron["spec"], cron.get("status") or {}
    last = parse_time(old.get("lastScheduledTime") or cron["metadata"]["creationTimestamp"])
    active = [child for child in children if (child.get("status") or {}).get("phase") not in WORKFLOW_ENDED]
    policy = spec.get("concurrencyPolicy") or "Allow"
    due = None if spec.get("suspend") else _latest_due(spec, last, now)
    if policy == "Forbid" and active:
        due = None
    child = workflow_from_cron(cron, due) if due else None
    status: Object = {"active": [_reference(other) for other in active]}
    if due or "lastScheduledTime" in old:
        status["lastScheduledTime"] = format_time(due) if due else old["lastScheduledTime"]
    return CronStep(
        create=child,
        terminate=tuple(other["metadata"]["name"] for other in active) if child and policy == "Replace" else (),
        delete=tuple(_beyond_history(spec, children)),
        status=status,
        again=min([now + FAR, *(next(_ticks(text, spec, due or last, now)) for text in spec["schedules"])]),
    )


def workflow_from_cron(cron: Object, scheduled: datetime) -> Object:
    """The child of a cron workflow for a scheduled time."""
    metadata, extra = cron["metadata"], cron["spec"].get("workflowMetadata") or {}
    return {
        "apiVersion": "argoproj.io/v1alpha1",
        "kind": "Workflow",
        "metadata": {
            "name": f"{metadata['name']}-{int(scheduled.timestamp())}",
            "namespace": metadata["namespace"],
            "labels": {**(extra.get("labels") or {}), LABEL: metadata["name"]},
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
                }
            ],
        },
        "spec": cron["spec"]["workflowSpec"],
    }


def validate_cron(cron: Object) -> None:
    """Refuse what local mode does not know, or what makes no sense.

    Raises:
        InvalidValue: Says where, and what was expected.
    """
    name, spec = cron["metadata"].get("name"), cron.get("spec") or {}
    where = f"CronWorkflow {name}"
    if unknown := sorted(set(spec) - FIELDS):
        raise InvalidValue(
            f"{where}: expected fields out of {', '.join(sorted(FIELDS))}, got {unknown[0]!r} (at $.spec)"
        )
    if not isinstance(spec.get("workflowSpec"), dict):
        raise InvalidValue(f"{where}: expected a Workflow's spec, got none (at $.spec.workflowSpec)")
    schedules = spec.get("schedules")
    if not isinstance(schedules, list) or not schedules or not all(isinstance(text, str) for text in schedules):
        raise InvalidValue(
            f"{where}: expected a list of schedules, got {spec.get('schedules')!r} (at $.spec.schedules)"
        )
    for field in NUMBERS:
        if not re.fullmatch(r"\d+", str(spec.get(field, 0))):
            raise InvalidValue(f"{where}: expected 0 or more, got {spec[field]!r} (at $.spec.{field})")
    if spec.get("concurrencyPolicy", "Allow") not in POLICIES:
        found = spec["concurrencyPolicy"]
        raise InvalidValue(
            f"{where}: expected one of {', '.join(POLICIES)}, got {found!r} (at $.spec.concurrencyPolicy)"
        )
    start = datetime(2026, 1, 1, tzinfo=UTC)
    for text in spec["schedules"]:
        next(_ticks(text, spec, start, start))


def _latest_due(spec: Object, last: datetime, now: datetime) -> datetime | None:
    """The latest tick after the last one acted on that may still be acted on."""
    allowed = timedelta(seconds=max(LATE_S, float(spec.get("startingDeadlineSeconds") or 0)))
    # A tick that is late by just what is allowed counts; what comes out is later than what went in.
    after = max(last, now - allowed - timedelta(microseconds=1))
    passed: list[datetime] = []
    for text in spec["schedules"]:
        passed += list(takewhile(lambda tick: tick <= now, _ticks(text, spec, last, after)))[-1:]
    return max(passed, default=None)


def _ticks(text: str, spec: Object, anchor: datetime, after: datetime) -> Iterator[datetime]:
    """The times of a schedule after a moment; ``@every`` counts from the anchor."""
    if text.startswith("@every "):
        return _every(text, anchor, after)
    try:
        zone = ZoneInfo(spec.get("timezone") or "Etc/UTC")
    except (KeyError, ValueError) as error:
        raise InvalidValue(
            f"expected a time zone's name such as Europe/Berlin, got {spec['timezone']!r} (at $.spec.timezone)"
        ) from error
    fields = NAMED.get(text, text)
    refusal = (
        f"expected a schedule of five fields, @hourly or the like, or @every 90s, got {text!r} (at $.spec.schedules)"
    )
    if len(fields.split()) != 5:
        raise InvalidValue(refusal)
    try:
        local = CronSim(fields, after.astimezone(zone))
    except CronSimError as error:
        raise InvalidValue(f"{refusal}: {error}") from error
    # In the hour that comes twice, cronsim gives the first pass's tick also to those who ask in the second.
    return (tick for tick in (found.astimezone(UTC) for found in local) if tick > after)


def _every(text: str, anchor: datetime, after: datetime) -> Iterator[datetime]:
    words = text.removeprefix("@every ").strip()
    parts = re.findall(r"(\d+(?:\.\d+)?)([hms])", words)
    period_s = sum(float(number) * UNIT_S[unit] for number, unit in parts)
    if "".join(number + unit for number, unit in parts) != words or period_s < 1:
        raise InvalidValue(
            f"expected @every and a time of 1s or more such as 1h30m, got {text!r} (at $.spec.schedules)"
        )

    def ticks() -> Iterator[datetime]:
        count = int((after - anchor).total_seconds() // period_s) + 1
        while True:
            yield anchor + timedelta(seconds=count * period_s)
            count += 1

    return ticks()


def _beyond_history(spec: Object, children: Sequence[Object]) -> list[str]:
    """Names of ended children beyond what is to be kept, oldest first."""
    beyond: list[str] = []
    for phases, name, default in (
        (("Succeeded",), "successfulJobsHistoryLimit", 3),
        (("Failed", "Error"), "failedJobsHistoryLimit", 1),
    ):
        ended = [child for child in children if (child.get("status") or {}).get("phase") in phases]
        ended.sort(key=lambda child: (child["metadata"]["creationTimestamp"], child["metadata"]["name"]))
        limit = spec.get(name, default)
        beyond += [child["metadata"]["name"] for child in ended[: max(0, len(ended) - limit)]]
    return beyond


def _reference(child: Object) -> Object:
    metadata = child["metadata"]
    return {
        "apiVersion": "argoproj.io/v1alpha1",
        "kind": "Workflow",
        "name": metadata["name"],
        "namespace": metadata["namespace"],
        "uid": metadata["uid"],
    }

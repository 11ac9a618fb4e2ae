"""Cron workflows: when a child is due, what keeps it back, and what the clock's changes do."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from scheduler_core.errors import InvalidValue
from voda_flows.local.cron import CronStep, cron_step
from voda_flows.objects import Object, format_time

MIDNIGHT = datetime(2026, 3, 1, tzinfo=UTC)


def at(minutes: float) -> datetime:
    """That many minutes after midnight."""
    return MIDNIGHT + timedelta(minutes=minutes)


def cron(*schedules: str, last: datetime | None = None, made: datetime = MIDNIGHT, **spec: Any) -> Object:
    """A cron workflow with these schedules, every minute where there is none."""
    body: Object = {
        "kind": "CronWorkflow",
        "metadata": {"name": "c", "namespace": "voda", "uid": "u", "creationTimestamp": format_time(made)},
        "spec": {"schedules": list(schedules or ("* * * * *",)), "workflowSpec": {"entrypoint": "x"}, **spec},
    }
    if last is not None:
        body["status"] = {"lastScheduledTime": format_time(last)}
    return body


def child(name: str, phase: str | None = "Running", made: str = "1") -> Object:
    """A child in a phase."""
    metadata = {"name": name, "namespace": "voda", "uid": f"u-{name}", "creationTimestamp": made}
    return {"kind": "Workflow", "metadata": metadata, "status": {"phase": phase} if phase else {}}


def created(step: CronStep) -> str | None:
    """The name of the child that is due."""
    return None if step.create is None else str(step.create["metadata"]["name"])


def named(moment: datetime) -> str:
    """The name of the child for a moment."""
    return f"c-{int(moment.timestamp())}"


def test_child_is_named_and_labelled_as_argo_does() -> None:
    """Name, label, annotation, owner and spec of a child, and what the status says afterwards."""
    body = cron(workflowMetadata={"labels": {"a": "b"}, "annotations": {"c": "d"}})
    step = cron_step(body, [], at(1))

    assert step.create == {
        "apiVersion": "argoproj.io/v1alpha1",
        "kind": "Workflow",
        "metadata": {
            "name": "c-1772323260",
            "namespace": "voda",
            "labels": {"a": "b", "workflows.argoproj.io/cron-workflow": "c"},
            "annotations": {"c": "d", "workflows.argoproj.io/scheduled-time": "2026-03-01T00:01:00Z"},
            "ownerReferences": [
                {
                    "apiVersion": "argoproj.io/v1alpha1",
                    "kind": "CronWorkflow",
                    "name": "c",
                    "uid": "u",
                    "controller": True,
                }
            ],
        },
        "spec": {"entrypoint": "x"},
    }
    assert step.status == {"active": [], "lastScheduledTime": "2026-03-01T00:01:00.000000Z"}
    assert step.again == at(2)


def test_nothing_is_due_before_the_first_tick() -> None:
    """A new cron workflow waits for its next tick, whatever ticks came before it was made."""
    step = cron_step(cron(), [], at(0.5))

    assert (created(step), step.again, step.status) == (None, at(1), {"active": []})


def test_tick_is_acted_on_once() -> None:
    """Once its time stands in the status, a tick is done."""
    assert created(cron_step(cron(last=at(1)), [], at(1.05))) is None
    assert created(cron_step(cron(last=at(1)), [], at(2.01))) == named(at(2))


def test_missed_ticks_are_made_up_for_only_within_the_deadline() -> None:
    """Without a deadline a tick that is late by more than a moment is missed; with one, the latest counts."""
    assert created(cron_step(cron(last=at(1)), [], at(5.5))) is None
    assert created(cron_step(cron(last=at(1), startingDeadlineSeconds=29), [], at(5.5))) is None
    assert created(cron_step(cron(last=at(1), startingDeadlineSeconds=30), [], at(5.5))) == named(at(5))
    assert created(cron_step(cron(last=at(1), startingDeadlineSeconds=600), [], at(5.5))) == named(at(5))


def test_forbid_keeps_a_tick_back_while_a_child_runs() -> None:
    """Under Forbid nothing starts beside a child; when that has ended, the tick is made up for within the deadline."""
    body = cron(last=at(1), concurrencyPolicy="Forbid", startingDeadlineSeconds=30)
    held = cron_step(body, [child("old"), child("older", "Succeeded")], at(2))
    freed = cron_step(body, [child("old", "Succeeded")], at(2.1))

    assert created(held) is None
    assert [one["name"] for one in held.status["active"]] == ["old"]
    assert held.status["lastScheduledTime"] == format_time(at(1))
    assert created(freed) == named(at(2))


def test_child_without_a_phase_counts_as_running() -> None:
    """A child that the engine has not looked at yet keeps others back too."""
    assert created(cron_step(cron(concurrencyPolicy="Forbid"), [child("new", None)], at(1))) is None


def test_replace_ends_what_runs() -> None:
    """Under Replace the running children are to end when the next starts, and only then."""
    body = cron(last=at(1), concurrencyPolicy="Replace")

    assert cron_step(body, [child("old")], at(2)).terminate == ("old",)
    assert cron_step(body, [child("old")], at(1.5)).terminate == ()


def test_allow_starts_beside_what_runs() -> None:
    """Under Allow, the default, a child starts beside others."""
    step = cron_step(cron(last=at(1)), [child("old")], at(2))

    assert (created(step), step.terminate) == (named(at(2)), ())


def test_suspended_cron_starts_nothing() -> None:
    """While it is suspended no tick is acted on."""
    assert created(cron_step(cron(suspend=True), [], at(1))) is None


def test_several_schedules_tick_together_once() -> None:
    """Two schedules that meet give one child; the next look is at whichever comes first."""
    step = cron_step(cron("*/2 * * * *", "*/3 * * * *", last=at(5)), [], at(6))

    assert (created(step), step.again) == (named(at(6)), at(8))


def test_every_counts_from_the_last_tick() -> None:
    """@every is a period, counted from the last child."""
    step = cron_step(cron("@every 1m30s", last=at(1)), [], at(2.5))

    assert (created(step), step.again) == (named(at(2.5)), at(4))
    assert created(cron_step(cron("@every 1m30s", last=at(1)), [], at(2.4))) is None


def test_named_schedules() -> None:
    """@daily is midnight in the cron workflow's time zone."""
    step = cron_step(cron("@daily", timezone="Europe/Berlin"), [], at(22 * 60 + 59))

    assert step.again == at(23 * 60)


@pytest.mark.parametrize(
    ("day", "ticks"),
    [
        # 02:30 does not exist on this night: the child runs once, right after the jump from 02:00 to 03:00.
        (datetime(2026, 3, 29, tzinfo=UTC), ["2026-03-29T01:00:00+00:00"]),
        # 02:30 comes twice on this night: the child runs once, the first time.
        (datetime(2026, 10, 25, tzinfo=UTC), ["2026-10-25T00:30:00+00:00"]),
        (datetime(2026, 7, 1, tzinfo=UTC), ["2026-07-01T00:30:00+00:00"]),
    ],
)
def test_summer_time_runs_a_daily_child_once(day: datetime, ticks: list[str]) -> None:
    """A child of half past two in Berlin runs once a night, also when the clocks change."""
    last, seen = day - timedelta(hours=2), []
    for minute in range(0, 12 * 60, 10):
        now = day + timedelta(minutes=minute)
        step = cron_step(cron("30 2 * * *", timezone="Europe/Berlin", last=last, made=last), [], now)
        if step.create is not None:
            last = datetime.fromtimestamp(int(step.create["metadata"]["name"].removeprefix("c-")), UTC)
            seen.append(last.isoformat())

    assert seen == ticks


def test_history_beyond_the_limits_is_deleted() -> None:
    """Of ended children the newest are kept: 3 that succeeded and 1 that failed, or as asked for."""
    children = [child(f"s{n}", "Succeeded", str(n)) for n in range(5)]
    children += [child(f"f{n}", "Error" if n else "Failed", str(n)) for n in range(2)]

    assert cron_step(cron(), children, at(0.1)).delete == ("s0", "s1", "f0")
    body = cron(successfulJobsHistoryLimit=5, failedJobsHistoryLimit=0)
    assert cron_step(body, children, at(0.1)).delete == ("f0", "f1")


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (cron("* * * *"), "five fields"),
        (cron("61 * * * *"), "five fields"),
        (cron("* * * * * *"), "five fields"),
        (cron("@every soon"), "@every and a time"),
        (cron("@every 0s"), "@every and a time"),
        (cron(timezone="Mars/Base"), "got 'Mars/Base'"),
        (cron(concurrencyPolicy="Maybe"), "one of Allow, Forbid, Replace, got 'Maybe'"),
        (cron(schedule="* * * * *"), r"got 'schedule' \(at \$\.spec\)"),
        (cron(schedules=[]), "a list of schedules"),
        (cron(schedules="@hourly"), "a list of schedules, got '@hourly'"),
        (cron(failedJobsHistoryLimit="few"), r"0 or more, got 'few' \(at \$\.spec\.failedJobsHistoryLimit\)"),
        (cron(workflowSpec=None), "expected a Workflow's spec"),
    ],
)
def test_faults_are_refused(body: Object, said: str) -> None:
    """What makes no sense is refused with what was expected and where."""
    with pytest.raises(InvalidValue, match=said):
        cron_step(body, [], at(1))

"""Cron workflows: when a child is due, what keeps it back, and what the clock's changes do."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from scheduler_core.errors import InvalidValue
from voda_flows.local.cron import CronStep, cron_step, manual_workflow, next_time, workflow_from_cron
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


def child(name: str, phase: str | None = "Running", ended: str | None = None) -> Object:
    """A child in a phase."""
    metadata = {"name": name, "namespace": "voda", "uid": f"u-{name}", "creationTimestamp": "1"}
    status = {"phase": phase} | ({"finishedAt": ended} if ended else {}) if phase else {}
    return {"kind": "Workflow", "metadata": metadata, "status": status}


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
                    "blockOwnerDeletion": True,
                }
            ],
        },
        "spec": {"entrypoint": "x"},
    }
    assert step.status == {
        "active": [],
        "lastScheduledTime": "2026-03-01T00:01:00.000000Z",
        "phase": "Active",
        "succeeded": 0,
        "failed": 0,
    }
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
    assert created(cron_step(cron(last=at(1), startingDeadlineSeconds=30), [], at(5.5))) is None
    assert created(cron_step(cron(last=at(1), startingDeadlineSeconds=31), [], at(5.5))) == named(at(5))
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


def runs(body: Object, moments: Iterable[datetime], last: datetime | None = None) -> list[str]:
    """The scheduled times (day, hour, minute, second in UTC) that run when it is looked at in these moments."""
    status: Object = {"lastScheduledTime": format_time(last)} if last else {}
    seen = []
    for now in moments:
        step = cron_step({**body, "status": status}, [], now)
        status = step.status
        if step.create is not None:
            seen.append(step.create["metadata"]["annotations"]["workflows.argoproj.io/scheduled-time"][8:19])
    return seen


def minutes(start: datetime, count: int, every: int = 1) -> list[datetime]:
    """Moments shortly after full minutes."""
    return [start + timedelta(minutes=minute * every, seconds=0.05) for minute in range(count)]


@pytest.mark.parametrize(
    ("schedule", "day", "ticks"),
    [
        # 02:30 does not exist on this night, so it does not come up; 03:00 does.
        ("30 2 * * *", datetime(2026, 3, 29, tzinfo=UTC), []),
        ("0 3 * * *", datetime(2026, 3, 29, tzinfo=UTC), ["29T01:00:00"]),
        ("30 * * * *", datetime(2026, 3, 29, tzinfo=UTC), ["29T00:30:00", "29T01:30:00", "29T02:30:00"]),
        # 02:30 comes twice on this night, and comes up twice; so does 02:00.
        ("30 2 * * *", datetime(2026, 10, 25, tzinfo=UTC), ["25T00:30:00", "25T01:30:00"]),
        ("0 2 * * *", datetime(2026, 10, 25, tzinfo=UTC), ["25T00:00:00", "25T01:00:00"]),
        ("30 * * * *", datetime(2026, 10, 25, tzinfo=UTC), ["25T00:30:00", "25T01:30:00", "25T02:30:00"]),
        ("30 2 * * *", datetime(2026, 7, 1, tzinfo=UTC), ["01T00:30:00"]),
    ],
)
def test_summer_time_is_as_with_argo(schedule: str, day: datetime, ticks: list[str]) -> None:
    """In Berlin, looked at every minute for three hours: as Argo's documentation says, once, twice or not at all."""
    body = cron(schedule, timezone="Europe/Berlin", made=day - timedelta(hours=2))

    assert runs(body, minutes(day, 180)) == ticks


@pytest.mark.parametrize(("deadline_s", "ticks"), [(0, []), (29, []), (60, ["01T00:05:00"]), (86400, ["01T00:05:00"])])
def test_engine_that_was_down_over_several_ticks_runs_the_last(deadline_s: int, ticks: list[str]) -> None:
    """Of the ticks of four minutes only the last is made up for, and only within the deadline."""
    body = cron(startingDeadlineSeconds=deadline_s)

    assert runs(body, [at(1.01), at(5.5)])[1:] == ticks


def test_cron_that_never_ran_makes_up_for_nothing() -> None:
    """As with Argo a missed tick counts only once there was a run."""
    assert created(cron_step(cron(startingDeadlineSeconds=600), [], at(5.5))) is None


def test_changed_schedule_makes_up_for_nothing() -> None:
    """Ticks that a new schedule would have had before it was there were not missed; the same one's were."""
    body = cron("30 * * * *", last=at(1), startingDeadlineSeconds=3600)
    for used, missed in (("30 * * * *", named(at(30))), ("* * * * *", None)):
        body["metadata"]["annotations"] = {"cronworkflows.argoproj.io/last-used-schedule": used}
        assert created(cron_step(body, [], at(45))) == missed


def test_forbidden_tick_without_a_deadline_has_passed() -> None:
    """What ``Forbid`` kept back is not run later without ``startingDeadlineSeconds``, not even a moment later."""
    ended = child("old", "Succeeded")
    ended["status"]["finishedAt"] = format_time(at(2.02))
    body = cron(last=at(1), concurrencyPolicy="Forbid")

    assert created(cron_step(body, [ended], at(2.03))) is None
    assert created(cron_step(body, [ended], at(3))) == named(at(3))
    ended["status"]["finishedAt"] = format_time(at(62))  # by a clock that was put back since
    assert created(cron_step(body, [ended], at(2.03))) == named(at(2))
    assert created(cron_step(cron(last=at(1)), [ended], at(2.03))) == named(at(2))  # under Allow


HOUR = timedelta(hours=1)


@pytest.mark.parametrize(
    ("schedule", "before", "after"),
    [
        # How often: goes on within its own period, and no scheduled time is given twice.
        (
            "*/20 * * * *",
            ["01T11:00:00", "01T11:20:00"],
            ["01T10:40:01", "01T11:00:01", "01T11:20:01", "01T11:40:00", "01T12:00:00"],
        ),
        ("@hourly", ["01T11:00:00"], ["01T11:00:01", "01T12:00:00"]),
        ("@every 30m", ["01T11:20:00"], ["01T11:00:01", "01T11:30:00", "01T12:00:00"]),
        # A time of the day that has run does not run again; one that has not does.
        ("10,50 11 * * *", ["01T11:10:00"], ["01T11:50:00"]),
        ("45 10 * * *", [], ["01T10:45:00"]),
        ("30 12 * * *", [], []),
    ],
)
def test_clock_that_is_put_back_by_an_hour(schedule: str, before: list[str], after: list[str]) -> None:
    """At half past eleven it becomes half past ten: what has run is not run again, what runs often goes on at once."""
    start = MIDNIGHT + 10 * HOUR + timedelta(minutes=50)
    first = minutes(start, 41)
    body = cron(schedule, made=start)
    found = runs(body, [*first, *(moment - HOUR for moment in minutes(start + timedelta(minutes=40), 92))])

    assert (found[: len(before)], found[len(before) :]) == (before, after)
    assert len(set(found)) == len(found)


def test_clock_that_is_put_back_twice_gives_no_scheduled_time_twice() -> None:
    """Each time that the clock is put back, ticks that are passed again bear another second."""
    start = MIDNIGHT + 10 * HOUR
    laps = [minutes(start, 30, every=2), minutes(start, 30, every=2), minutes(start, 40, every=2)]
    found = runs(cron("*/4 * * * *", made=start - HOUR), [moment for lap in laps for moment in lap])

    assert len(found) == 15 + 14 + 19
    assert len(set(found)) == len(found)


@pytest.mark.parametrize(("deadline_s", "ticks"), [(0, ["01T11:31:00"]), (3600, ["01T11:30:00", "01T11:31:00"])])
def test_clock_that_is_put_forward_passes_over_ticks(deadline_s: int, ticks: list[str]) -> None:
    """They are missed like those of a time when the engine was down."""
    jump = [at(630), at(690.5), at(691)]
    body = cron(startingDeadlineSeconds=deadline_s, made=at(629))

    assert runs(body, jump)[1:] == ticks


def test_small_step_back_of_the_clock_repeats_nothing() -> None:
    """A clock that is set right by less than a minute is waited for."""
    assert runs(cron(last=at(1)), [at(2.001), at(1.9), at(2.001), at(3.001)]) == ["01T00:02:00", "01T00:03:00"]


def test_child_started_by_hand_has_a_name_of_its_own() -> None:
    """As ``argo submit --from cronwf/c``: labelled and owned like the others, with the moment as its scheduled time."""
    body = cron(suspend=True)
    made = manual_workflow(body, at(0.5))
    planned = workflow_from_cron(body, at(0.5))

    assert made == {**planned, "metadata": {"generateName": "c-", **made["metadata"]}}
    assert "name" not in made["metadata"]
    assert made["metadata"]["annotations"]["workflows.argoproj.io/scheduled-time"] == "2026-03-01T00:00:30Z"


def test_next_time_is_the_soonest_of_all_schedules() -> None:
    """What a list of cron workflows says."""
    assert next_time(cron("*/7 * * * *", "*/5 * * * *"), at(7)) == at(10)


def test_history_beyond_the_limits_is_deleted() -> None:
    """Of ended children the newest are kept: 3 that succeeded and 1 that failed, or as asked for."""
    children = [child(f"s{n}", "Succeeded", ended=format_time(at(n))) for n in range(5)]
    children += [child(f"f{n}", "Error" if n else "Failed", ended=format_time(at(n))) for n in range(2)]

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
        (cron(schedule="* * * * *"), r"got 'schedule', did you mean schedules\? \(at \$\.spec\)"),
        (cron(when="true"), r"when: not supported in local mode \(at \$\.spec\.when\)"),
        (cron(suspend="false"), r"true or false, got 'false' \(at \$\.spec\.suspend\)"),
        ({**cron(), "metadata": {"name": "x" * 53}}, r"at most 52 characters, got 53 \(at \$\.metadata\.name\)"),
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

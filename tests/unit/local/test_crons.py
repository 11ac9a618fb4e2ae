"""Cron workflows in a store: what a round of the engine does for them."""

from __future__ import annotations

import logging
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from voda_flows.local.cron import manual_workflow
from voda_flows.local.crons import Crons
from voda_flows.local.store import LocalStore
from voda_flows.objects import CRON_LABEL, Object, format_time


class Rounds:
    """A store with cron workflows, and rounds at moments after they were made."""

    def __init__(self, home: Path) -> None:
        self.store = LocalStore(home)
        self.crons = Crons(self.store)
        self.start = datetime.now(UTC).replace(second=0, microsecond=0) + timedelta(minutes=1)

    def add(self, name: str = "c", **spec: Any) -> Object:
        """Create a cron workflow, every minute where nothing else is said."""
        body = {"schedules": ["* * * * *"], "workflowSpec": {"entrypoint": "x"}, **spec}
        return self.store.create({"kind": "CronWorkflow", "metadata": {"name": name}, "spec": body})

    def turn(self, minutes: float) -> None:
        """A round so many minutes after the first full minute."""
        self.crons.tick(self.start + timedelta(minutes=minutes))

    def children(self) -> dict[str, Object]:
        """The children by the minute of their scheduled time, those started by hand by their names."""
        found = self.store.list("Workflow")
        return {self._minute(child["metadata"]["name"]): child for child in found}

    def finish(self, minute: str, phase: str, after: float) -> None:
        """A child ends, so many minutes after the start."""
        name = self.children()[minute]["metadata"]["name"]
        end = format_time(self.start + timedelta(minutes=after))
        self.store.merge_patch("Workflow", "default", name, {"status": {"phase": phase, "finishedAt": end}})

    def status(self, name: str = "c") -> Object:
        """A cron workflow's status."""
        status: Object = self.store.get("CronWorkflow", "default", name)["status"]
        return status

    def _minute(self, name: str) -> str:
        end = name.rpartition("-")[2]
        return f"{(int(end) - self.start.timestamp()) / 60:g}" if end.isdigit() else name


@pytest.fixture
def rounds(tmp_path: Path) -> Rounds:
    """A store of its own."""
    return Rounds(tmp_path)


def test_each_tick_makes_one_child(rounds: Rounds) -> None:
    """However often is looked; what runs stands in the status, and with which schedules it ran is noted."""
    rounds.add(timezone="Europe/Berlin")
    for minutes in (0.001, 0.002, 0.5, 1.001, 1.01):
        rounds.turn(minutes)

    assert sorted(rounds.children()) == ["0", "1"]
    assert rounds.status()["lastScheduledTime"] == format_time(rounds.start + timedelta(minutes=1))
    assert len(rounds.status()["active"]) == 2
    used = rounds.store.get("CronWorkflow", "default", "c")["metadata"]["annotations"]
    assert used == {"cronworkflows.argoproj.io/last-used-schedule": "CRON_TZ=Europe/Berlin * * * * *"}
    assert rounds.crons.due == rounds.start + timedelta(minutes=2)


def test_status_counts_how_children_ended(rounds: Rounds) -> None:
    """Each once, also one that ends before the next round; its phase is that of a cron workflow that runs."""
    rounds.add(concurrencyPolicy="Allow")
    rounds.turn(0.001)
    begun = rounds.status()
    rounds.finish("0", "Succeeded", after=0.01)
    for minutes in (0.02, 0.03, 1.001):
        rounds.turn(minutes)
    rounds.finish("1", "Error", after=1.01)
    rounds.turn(1.02)

    counts = [(each["phase"], each["succeeded"], each["failed"]) for each in (begun, rounds.status())]
    assert counts == [("Active", 0, 0), ("Active", 1, 1)]
    assert (len(begun["active"]), rounds.status()["active"]) == (1, [])


def test_child_that_is_there_is_not_made_again(rounds: Rounds) -> None:
    """An engine that was killed after it had made a child, and before it had noted that, makes none twice."""
    rounds.add()
    rounds.turn(0.001)
    rounds.store.merge_patch("CronWorkflow", "default", "c", {"status": {"lastScheduledTime": None}})
    rounds.turn(0.002)

    assert sorted(rounds.children()) == ["0"]
    assert rounds.status()["lastScheduledTime"] == format_time(rounds.start)


def test_forbid_counts_a_run_that_somebody_started(rounds: Rounds) -> None:
    """Ticks pass while it goes on; the next after its end runs."""
    cron = rounds.add(concurrencyPolicy="Forbid")
    by_hand = rounds.store.create(manual_workflow(cron, rounds.start))["metadata"]["name"]
    rounds.turn(1.001)
    assert list(rounds.children()) == [by_hand]

    rounds.finish(by_hand, "Succeeded", 1.5)
    rounds.turn(2.001)
    assert sorted(rounds.children()) == sorted(["2", by_hand])


def test_replace_terminates_what_runs_and_allow_does_not(rounds: Rounds) -> None:
    """The running child is told to end without its exit handler, as Argo tells it."""
    rounds.add("replaces", concurrencyPolicy="Replace")
    rounds.add("allows")
    for minutes in (0.001, 1.001):
        rounds.turn(minutes)

    told = {
        (child["metadata"]["labels"][CRON_LABEL], rounds._minute(child["metadata"]["name"]))
        for child in rounds.store.list("Workflow")
        if child["spec"].get("shutdown") == "Terminate"
    }
    assert told == {("replaces", "0")}


def test_history_beyond_its_limits_is_deleted(rounds: Rounds) -> None:
    """The oldest of those that ended, by how they ended."""
    rounds.add(successfulJobsHistoryLimit=1, failedJobsHistoryLimit=0)
    for number, phase in enumerate(("Succeeded", "Succeeded", "Failed")):
        rounds.turn(number + 0.001)
        rounds.finish(str(number), phase, number + 0.5)
    rounds.turn(2.6)

    gone = {minute for minute, child in rounds.children().items() if "deletionTimestamp" in child["metadata"]}
    assert gone == {"0", "2"}


def test_cron_workflow_that_makes_no_sense_says_so_and_disturbs_no_other(rounds: Rounds) -> None:
    """Until it is mended."""
    rounds.add("bad", schedules=["soon"])
    rounds.add()
    rounds.turn(0.001)

    (condition,) = rounds.status("bad")["conditions"]
    assert (condition["type"], condition["status"]) == ("SpecError", "True")
    assert "expected a schedule of five fields" in condition["message"]
    assert list(rounds.children()) == ["0"]

    rounds.store.merge_patch("CronWorkflow", "default", "bad", {"spec": {"schedules": ["* * * * *"]}})
    rounds.turn(1.001)
    assert "conditions" not in rounds.status("bad")


def test_clock_that_is_put_back_is_said_once(rounds: Rounds, caplog: pytest.LogCaptureFixture) -> None:
    """Runs go on within a minute, under scheduled times of their own; the status knows why until they are new again."""
    rounds.add()
    rounds.turn(60.001)
    with caplog.at_level(logging.WARNING):
        for minutes in (0.5, 0.6, 1.001, 1.1, 2.001):
            rounds.turn(minutes)

    assert sorted(float(minute) for minute in rounds.children()) == pytest.approx([1 + 1 / 60, 2 + 1 / 60, 60], 1e-4)
    assert [record.message.partition(": ")[0] for record in caplog.records] == [
        f"cron=default/c the clock was put back to {format_time(rounds.start + timedelta(minutes=0.5))}"
    ]
    assert rounds.status()["clockTurnedBack"]["until"] == format_time(rounds.start + timedelta(minutes=60))
    rounds.turn(61.001)
    assert "clockTurnedBack" not in rounds.status()

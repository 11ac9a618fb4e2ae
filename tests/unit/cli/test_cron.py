"""``voda cron``: cron workflows are listed, and run by hand."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from tests.unit.cli.world import World
from voda_flows.objects import CRON_LABEL, Object, format_time


def cron(world: World, name: str, **spec: Any) -> Object:
    """Create a cron workflow."""
    template = {"name": "x", "container": {"image": "i", "command": ["true"]}}
    body = {"schedules": ["0 0 1 1 *"], "workflowSpec": {"entrypoint": "x", "templates": [template]}, **spec}
    return world.store.create({"kind": "CronWorkflow", "metadata": {"name": name}, "spec": body})


def test_list_says_when_it_ran_and_when_it_will(world: World) -> None:
    """Schedule, last, next, active, suspended; what cannot be understood is told on stderr."""
    cron(world, "yearly")
    cron(world, "paused", schedules=["@daily", "5 * * * *"], suspend=True)
    cron(world, "wrong", schedules=["soon"])
    last = format_time(datetime.now(UTC) - timedelta(minutes=5))
    world.store.merge_patch("CronWorkflow", "default", "yearly", {"status": {"lastScheduledTime": last}})
    world.voda("cron", "run", "yearly")

    said = world.voda("cron", "list")

    rows = [line.split("   ") for line in said.out.splitlines()]
    cells = [[cell.strip() for cell in row if cell.strip()] for row in rows]
    assert cells[0] == ["NAME", "SCHEDULE", "LAST", "NEXT", "ACTIVE", "SUSPENDED"]
    assert cells[1] == ["paused", "@daily, 5 * * * *", "-", "-", "0", "yes"]
    assert cells[2] == ["wrong", "soon", "-", "-", "0", "no"]
    assert cells[3][:2] + cells[3][4:] == ["yearly", "0 0 1 1 *", "1", "no"]
    assert cells[3][2].endswith("ago")
    assert cells[3][3].startswith("in ")
    assert said.err.startswith("wrong: expected a schedule of five fields")


def test_list_as_json(world: World) -> None:
    """Times as RFC 3339, active runs by name, nothing that people would have to parse."""
    cron(world, "nightly", schedules=["0 0 29 2 *"], timezone="Europe/Berlin")
    made = world.voda("cron", "run", "nightly", "-o", "name").out.strip()

    (item,) = world.json("cron", "list")["items"]

    coming = item.pop("next")
    assert coming.endswith("-02-28T23:00:00Z")
    assert item == {
        "name": "nightly", "namespace": "default", "schedules": ["0 0 29 2 *"], "timezone": "Europe/Berlin",
        "last": None, "active": [made], "suspended": False, "message": "",
    }  # fmt: skip


def test_run_makes_a_child_now_whatever_the_schedule_says(world: World) -> None:
    """As ``argo submit --from cronwf/NAME``: also of a suspended one, and its last scheduled time stays."""
    body = cron(world, "nightly", suspend=True, workflowMetadata={"labels": {"team": "a"}})

    said = world.voda("cron", "run", "nightly")

    (child,) = world.store.list("Workflow")
    assert (said.code, said.out) == (0, f"{child['metadata']['name']} created from nightly\n")
    assert child["metadata"]["name"].startswith("nightly-")
    assert child["metadata"]["labels"] == {CRON_LABEL: "nightly", "team": "a"}
    assert child["metadata"]["ownerReferences"][0]["uid"] == body["metadata"]["uid"]
    assert child["spec"] == body["spec"]["workflowSpec"]
    assert "status" not in world.store.get("CronWorkflow", "default", "nightly")
    assert world.voda("cron", "run", "nightly").code == 0


def test_cron_workflow_that_is_not_there_or_makes_no_sense_is_not_run(world: World) -> None:
    """Exit 3 with the name that was probably meant, exit 2 with what is wrong."""
    cron(world, "nightly", schedules=["soon"])

    missing, wrong = world.voda("cron", "run", "nigtly"), world.voda("cron", "run", "nightly")

    assert (missing.code, missing.out) == (3, "")
    assert missing.err.startswith("error: no cron workflow 'nigtly' in namespace 'default'; did you mean 'nightly'?")
    assert (wrong.code, wrong.out) == (2, "")
    assert world.store.list("Workflow") == []


def test_help_of_the_group_and_of_its_members_have_examples(world: World) -> None:
    """The group shows all of them, each member its own."""
    cron(world, "nightly")

    assert world.voda("cron", "--help").out.count("\n  voda cron ") == 5
    assert world.voda("cron", "run", "--help").out.count("\n  voda cron run nightly") == 2


def test_runs_are_jobs_as_others_but_for_the_scheduler_s_own(world: World) -> None:
    """They are listed and may be the latest; the scheduler's are seen where its namespace is asked for."""
    cron(world, "nightly")
    made = world.voda("cron", "run", "nightly", "-o", "name").out
    meta = {"name": "voda-scheduler-1", "namespace": "voda", "labels": {CRON_LABEL: "voda-scheduler"}}
    world.store.create({"kind": "Workflow", "metadata": meta, "spec": {}})

    assert world.voda("list", "-o", "name").out == made
    assert world.voda("list", "-A", "-o", "name").out == made
    assert world.voda("get", "@latest", "-o", "name").out == made
    assert world.voda("list", "-n", "voda", "-o", "name").out == "voda-scheduler-1\n"


def test_delete_ends_the_schedule_and_its_runs(world: World) -> None:
    """Several at once; one that is not there is exit 3, and nothing is deleted."""
    cron(world, "nightly")
    cron(world, "yearly")
    run = world.voda("cron", "run", "nightly", "-o", "name").out

    missing = world.voda("cron", "delete", "nightly", "yaerly")
    kept = world.voda("cron", "list", "-o", "name").out
    said = world.voda("cron", "delete", "nightly", "yearly")

    assert (missing.code, missing.out, kept) == (3, "", "nightly\nyearly\n")
    assert "did you mean 'yearly'?" in missing.err
    assert (said.code, said.out) == (0, "nightly deleted\nyearly deleted\n")
    assert world.voda("cron", "list", "-o", "name").out == ""
    left = [body["metadata"] for body in world.store.list("Workflow")]
    assert [(meta["name"], "deletionTimestamp" in meta) for meta in left] == [(run.strip(), True)]

"""Which jobs a command line means: names, labels, phases, age."""

from __future__ import annotations

import pytest

from tests.unit.cli.test_verbs import running
from tests.unit.cli.world import World
from tests.unit.report.world import Building
from voda_flows.objects import CRON_LABEL, Object


@pytest.fixture
def three(world: World) -> World:
    """A job of team a that trains, one of team b that waits, one of nobody's that has ended."""
    world.add(running())
    world.add(Building(name="rigid", submitted=1))
    world.add(Building(name="old", submitted=2).finish(5))
    for name, team in (("digits", "a"), ("rigid", "b")):
        world.store.merge_patch("Workflow", "default", name, {"metadata": {"labels": {"team": team}}})
    return world


@pytest.mark.parametrize(
    ("options", "names"),
    [
        ("-l team=a", "digits"),
        ("-l team!=a", "rigid old"),
        ("-l 'team in (a,b)'", "digits rigid"),
        ("-l 'team notin (b)'", "digits old"),
        ("-l team", "digits rigid"),
        ("-l !team", "old"),
        ("-l team,team!=a", "rigid"),
        ("--status running,QUEUED", "digits rigid"),
        ("--status Running --status Succeeded", "digits old"),
        ("--since 2999-01-01T00:00:00Z", ""),
        ("--since 1h -l team", "digits rigid"),
    ],
)
@pytest.mark.parametrize("verb", ["list", "get"])
def test_options_choose_jobs(three: World, verb: str, options: str, names: str) -> None:
    """As kubectl reads selectors (a missing label is unequal), and any of the phases."""
    words = [word.strip("'") for word in options.replace("' ", "'|").replace(" '", "|'").split("|")]
    arguments = [part for word in words for part in ([word] if "(" in word else word.split())]

    assert three.voda(verb, *arguments, "-o", "name").out.split() == names.split()


@pytest.mark.parametrize("wrong", ["a b", "=x", "a in", "a in ()", "a=b=c", "a in (b", "a=b c"])
def test_a_selector_that_is_none_is_refused(three: World, wrong: str) -> None:
    """Exit 2, with the forms there are."""
    said = three.voda("list", "-l", wrong)

    assert (said.code, said.out) == (2, "")
    assert said.err.startswith("error: -l: expected `key=value`, `key!=value`, `key in (a,b)`")


def test_a_moment_that_is_none_is_refused(three: World) -> None:
    """Exit 2, and what a time looks like."""
    said = three.voda("list", "--since", "yesterday")

    assert said.code == 2
    assert said.err.startswith("error: --since: expected how long ago, such as 90s, 5m or 2h, or 2026-01-31T10:00:00Z,")


@pytest.mark.parametrize("verb", ["get", "delete", "stop", "wait", "logs"])
def test_names_and_options_are_not_mixed_and_one_is_needed(three: World, verb: str) -> None:
    """What is meant is never guessed: exit 2, and nothing is done."""
    for arguments in ([], ["digits", "-l", "team=a"]):
        said = three.voda(verb, *arguments)

        assert (said.code, said.out) == (2, "")
        assert "expected names of jobs" in said.err


def test_several_names_are_several_jobs_each_once(three: World) -> None:
    """In the order of the line; @latest is the one that was submitted last."""
    assert three.voda("get", "@latest", "digits", "digits", "-o", "name").out == "old\ndigits\n"
    assert three.voda("delete", "old", "digits", "--no-wait").out == "old deleted\ndigits deleted\n"


def test_stop_does_nothing_where_one_of_those_named_has_ended(three: World) -> None:
    """Exit 4, before anything is done; options choose only those that go on."""
    assert three.voda("stop", "digits", "old").code == 4
    assert "shutdown" not in three.store.get("Workflow", "default", "digits")["spec"]
    assert three.voda("stop", "--all", "--yes").out == "digits stopped\nrigid stopped\n"


@pytest.mark.parametrize(
    ("verb", "options"),
    [("stop", "--all, -l, --status, --since"), ("get", "-l, --status, --since"), ("logs", "-l")],
)
def test_only_options_that_the_verb_takes_are_proposed(three: World, verb: str, options: str) -> None:
    """Of ``logs`` neither --status nor a --since that chooses jobs."""
    assert f"options that choose them ({options}); found neither" in three.voda(verb).err


@pytest.fixture
def beside_the_scheduler(world: World) -> World:
    """A job and a run of a user's cron workflow in the scheduler's own namespace, older than the scheduler's run."""
    for name, labels in (("digits", {}), ("nightly-1", {CRON_LABEL: "nightly"}), (OWN, {CRON_LABEL: "voda-scheduler"})):
        world.store.create(_workflow(name, labels))
    return world


OWN = "voda-scheduler-1767225600"


@pytest.mark.parametrize("verb", ["stop", "terminate", "delete"])
@pytest.mark.parametrize("options", [["--all", "--yes"], ["--since", "1h"]])
def test_options_never_choose_the_schedulers_own_runs(
    beside_the_scheduler: World, verb: str, options: list[str]
) -> None:
    """``--all`` in its namespace means jobs: who ends the scheduler with them has to name it."""
    wait = ["--no-wait"] if verb == "delete" else []
    said = beside_the_scheduler.voda(verb, *options, *wait, "-n", "voda")
    names = [line.split()[0] for line in said.out.splitlines()]

    assert (said.code, names) == (0, ["digits", "nightly-1"])
    assert "shutdown" not in beside_the_scheduler.store.get("Workflow", "voda", OWN)["spec"]


def test_all_waits_for_jobs_and_not_for_the_scheduler(beside_the_scheduler: World) -> None:
    """A run of the scheduler lasts an hour."""
    for name in ("digits", "nightly-1"):
        beside_the_scheduler.store.merge_patch("Workflow", "voda", name, {"status": {"phase": "Succeeded"}})

    assert beside_the_scheduler.voda("wait", "--all", "-n", "voda", "--timeout", "1s").code == 0


def test_the_latest_is_never_the_schedulers_own_run(beside_the_scheduler: World) -> None:
    """One is made every five minutes: nobody means it by ``@latest``."""
    assert beside_the_scheduler.voda("get", "@latest", "-n", "voda", "-o", "name").out == "nightly-1\n"


def test_the_schedulers_own_run_is_listed_and_may_be_named(beside_the_scheduler: World) -> None:
    """Who asks for its namespace sees it, and ends it by its name."""
    listed = beside_the_scheduler.voda("list", "-n", "voda", "-o", "name").out.split()

    assert listed == ["digits", "nightly-1", OWN]
    assert beside_the_scheduler.voda("list", "-A", "-o", "name").out.split() == ["digits", "nightly-1"]
    assert beside_the_scheduler.voda("stop", OWN, "-n", "voda").out == f"{OWN} stopped\n"


def _workflow(name: str, labels: dict[str, str]) -> Object:
    """A Workflow in the scheduler's namespace that goes on."""
    return {
        "apiVersion": "argoproj.io/v1alpha1",
        "kind": "Workflow",
        "metadata": {"name": name, "namespace": "voda", "labels": labels},
        "spec": {"entrypoint": "main", "templates": [{"name": "main", "suspend": {}}]},
        "status": {"phase": "Running"},
    }

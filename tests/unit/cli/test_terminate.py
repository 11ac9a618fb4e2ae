"""``voda terminate``: Workflows end at once."""

from __future__ import annotations

import pytest

from tests.unit.cli.world import World
from tests.unit.report.world import Building


def test_terminate_asks_the_workflow_to_end_without_its_exit_handlers(world: World) -> None:
    """As ``argo terminate``: spec.shutdown says so, also where a stop was asked for before."""
    world.add(Building(name="digits"))
    world.store.merge_patch("Workflow", "default", "digits", {"spec": {"shutdown": "Stop"}})

    assert world.voda("terminate", "digits").out == "digits terminated\n"
    assert world.store.get("Workflow", "default", "digits")["spec"]["shutdown"] == "Terminate"


@pytest.mark.parametrize("verb", ["terminate", "suspend", "resume"])
def test_nothing_is_done_where_one_of_those_named_has_ended(world: World, verb: str) -> None:
    """Exit 4 with the phase, and the others are as they were."""
    world.add(Building(name="digits"))
    world.add(Building(name="old").finish(5))
    before = world.store.revision()

    said = world.voda(verb, "digits", "old")

    assert (said.code, said.out) == (4, "")
    assert said.err == f"error: Workflow old: cannot {verb} what has ended, it is Succeeded\n"
    assert world.store.revision() == before


@pytest.mark.parametrize("verb", ["terminate", "suspend", "resume", "retry", "resubmit"])
def test_what_is_not_there_is_not_found(world: World, verb: str) -> None:
    """Exit 3 with the name that was probably meant."""
    world.add(Building(name="digits"))

    said = world.voda(verb, "digts")

    assert said.code == 3
    assert "did you mean 'digits'?" in said.err


@pytest.mark.parametrize("verb", ["terminate", "suspend", "resume", "retry", "resubmit"])
def test_somebody_must_say_which(world: World, verb: str) -> None:
    """Exit 2 without names and options; --all asks, and where nobody can be asked, wants --yes."""
    world.add(
        Building(name="digits", phase="Failed").finish(5, "Failed") if verb == "retry" else Building(name="digits")
    )

    assert world.voda(verb).code == 2
    assert world.voda(verb, "digits", "--all").code == 2
    assert world.voda(verb, "--all").code == 2
    assert world.voda(verb, "--all", "--yes").out.startswith("digits")


@pytest.mark.parametrize("verb", ["terminate", "suspend", "resume"])
def test_options_choose_only_what_goes_on(world: World, verb: str) -> None:
    """What has ended is left out, not refused."""
    world.add(Building(name="old").finish(5))

    said = world.voda(verb, "--all", "--yes")

    assert (said.code, said.out, said.err) == (0, "", f"nothing to {verb}\n")


def test_who_ends_jobs_where_nothing_runs_them_is_told(world: World) -> None:
    """The wish is kept, and the engine that comes carries it out."""
    world.add(Building(name="digits"))
    world.stop()

    said = world.voda("terminate", "digits")

    assert said.out == "digits terminated\n"
    assert "`voda up` starts it again" in said.err

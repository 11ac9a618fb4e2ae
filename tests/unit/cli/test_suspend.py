"""``voda suspend``: nothing new of a Workflow is started."""

from __future__ import annotations

from tests.unit.cli.world import World
from tests.unit.report.world import Building


def test_suspend_holds_the_workflow_and_leaves_its_gates_open(world: World) -> None:
    """As ``argo suspend``: spec.suspend, nothing else."""
    made = world.add(Building(name="digits"))

    assert world.voda("suspend", "digits").out == "digits suspended\n"
    found = world.store.get("Workflow", "default", "digits")
    assert (found["spec"], found["status"]) == ({**made["spec"], "suspend": True}, made["status"])


def test_suspending_twice_says_that_there_was_nothing_to_do(world: World) -> None:
    """It is no fault, and nothing is written."""
    world.add(Building(name="digits"))
    world.voda("suspend", "digits")
    before = world.store.revision()

    said = world.voda("suspend", "digits")

    assert (said.code, said.out, said.err) == (0, "digits suspended\n", "digits: there was nothing to suspend\n")
    assert world.store.revision() == before

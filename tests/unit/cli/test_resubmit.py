"""``voda resubmit``: a new Workflow from an old one's document."""

from __future__ import annotations

from tests.unit.cli.world import World
from tests.unit.report.world import Building

PREVIOUS = "workflows.argoproj.io/resubmitted-from-workflow"


def test_resubmit_makes_a_new_workflow_of_the_same_spec(world: World) -> None:
    """Labels and annotations are copied, the old one's name is noted, its life and its end are not."""
    world.add(Building(name="digits").finish(5, "Failed"))
    marks = {
        "labels": {"team": "a", "workflows.argoproj.io/phase": "Failed"},
        "annotations": {"voda.dev/workdir": "/x"},
    }
    old = world.store.merge_patch("Workflow", "default", "digits", {"metadata": marks, "spec": {"shutdown": "Stop"}})

    said = world.voda("resubmit", "digits")

    name = said.out.split()[0]
    assert (said.code, said.out) == (0, f"{name} created from digits\n")
    new = world.store.get("Workflow", "default", name)
    assert name.startswith("digits-")
    assert new["metadata"]["labels"] == {"team": "a", PREVIOUS: "digits"}
    assert new["metadata"]["annotations"] == {"voda.dev/workdir": "/x"}
    assert new["spec"] == {key: value for key, value in old["spec"].items() if key != "shutdown"}
    assert "status" not in new


def test_one_that_runs_may_be_resubmitted_and_a_suspended_one_stays_so(world: World) -> None:
    """As with Argo, phase and suspension do not matter; of the suspension is told."""
    world.add(Building(name="digits"))
    world.voda("suspend", "digits")

    said = world.voda("resubmit", "digits", "-o", "name")

    assert said.code == 0
    assert world.store.get("Workflow", "default", said.out.strip())["spec"]["suspend"] is True
    assert "is suspended, as the old one was; `voda resume` starts it" in said.err


def test_memoized_is_refused_by_name(world: World) -> None:
    """Exit 2, what to do instead, and nothing is created."""
    world.add(Building(name="digits").finish(5, "Failed"))

    said = world.voda("resubmit", "digits", "--memoized")

    assert said.code == 2
    assert said.err.startswith("error: --memoized: not supported in local mode; `voda retry` keeps what succeeded\n")
    assert len(world.store.list("Workflow")) == 1

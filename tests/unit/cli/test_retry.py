"""``voda retry``: a Workflow that failed runs again from where it failed."""

from __future__ import annotations

import pytest

from tests.unit.cli.world import World
from tests.unit.local.argo.builders import Bench, call, shell, steps, workflow
from tests.unit.report.world import Building


def failed(world: World) -> None:
    """A Workflow ``w`` whose second step failed, with its pods."""
    bench = Bench(workflow(steps([call("ok")], [call("bad")]), shell()))
    for node, code in (("ok", 0), ("bad", 1)):
        bench.look()
        bench.end(node, code)
    bench.look()
    world.store.create(bench.workflow)
    for pod in bench.pods.values():
        world.store.create({**pod, "metadata": {**pod["metadata"], "namespace": "default"}})


def test_retry_deletes_what_failed_and_goes_on(world: World) -> None:
    """The failed pod is deleted, the Workflow runs again, what succeeded stays."""
    failed(world)

    said = world.voda("retry", "w")

    assert (said.code, said.out, said.err) == (0, "w retried\n", "")
    status = world.store.get("Workflow", "default", "w")["status"]
    assert (status["phase"], "finishedAt" in status, "message" in status) == ("Running", False, False)
    assert {node["name"]: node["phase"] for node in status["nodes"].values()} == {
        "w": "Running", "w[0]": "Succeeded", "w[0].ok": "Succeeded", "w[1]": "Running",
    }  # fmt: skip
    going = [pod["metadata"] for pod in world.store.list("Pod") if "deletionTimestamp" in pod["metadata"]]
    assert [pod["annotations"]["workflows.argoproj.io/node-name"] for pod in going] == ["w[1].bad"]


@pytest.mark.parametrize("phase", ["Running", "Succeeded"])
def test_what_has_not_failed_is_not_retried(world: World, phase: str) -> None:
    """Exit 4 with the phase, and no pod is touched."""
    job = Building(name="digits").grant(1, ("w0", "n0"))
    world.add(job.finish(5, phase) if phase == "Succeeded" else job)
    before = world.store.revision()

    said = world.voda("retry", "digits")

    assert (said.code, said.out) == (4, "")
    assert said.err == f"error: Workflow digits: cannot retry what has not failed, it is {phase}\n"
    assert world.store.revision() == before


def test_options_choose_only_what_failed(world: World) -> None:
    """--all leaves alone what runs or succeeded."""
    failed(world)
    world.add(Building(name="digits"))

    assert world.voda("retry", "--all", "--yes").out == "w retried\n"

"""``voda resume``: a Workflow goes on, and its open gates take their defaults."""

from __future__ import annotations

from tests.unit.cli.world import World
from tests.unit.report.world import Building
from voda_flows.objects import Object

DECLARED = [("grant", "none"), ("workers", "[]")]


def outputs_of(world: World) -> list[Object]:
    """The outputs of the job's first gate."""
    nodes = world.store.get("Workflow", "default", "digits")["status"]["nodes"].values()
    (gate,) = [node for node in nodes if node["type"] == "Suspend"]
    parameters: list[Object] = gate["outputs"]["parameters"]
    assert gate["phase"] == "Succeeded"
    assert "finishedAt" in gate
    return parameters


def queued(world: World) -> None:
    """A job at its gate, which declares its outputs as the template does."""
    job = Building(name="digits")
    gate = next(node for node in job.nodes.values() if node["type"] == "Suspend")
    gate["outputs"] = {"parameters": [
        {"name": name, "valueFrom": {"supplied": {}, "default": default}} for name, default in DECLARED
    ]}  # fmt: skip
    world.add(job)


def test_resume_completes_every_open_gate_with_its_defaults(world: World) -> None:
    """As ``argo resume`` without a selector, also where the Workflow was not suspended."""
    queued(world)

    assert world.voda("resume", "digits").out == "digits resumed\n"
    assert outputs_of(world) == [{"name": name, "value": default} for name, default in DECLARED]


def test_resume_takes_a_suspension_back(world: World) -> None:
    """spec.suspend goes, and gates are completed with it."""
    queued(world)
    world.voda("suspend", "digits")

    assert world.voda("resume", "digits").code == 0
    assert "suspend" not in world.store.get("Workflow", "default", "digits")["spec"]
    assert len(outputs_of(world)) == len(DECLARED)


def test_gate_without_a_default_cannot_be_resumed(world: World) -> None:
    """Exit 2 with the name of the output, as Argo refuses it too."""
    job = Building(name="digits")
    gate = next(node for node in job.nodes.values() if node["type"] == "Suspend")
    gate["outputs"] = {"parameters": [{"name": "grant", "valueFrom": {"supplied": {}}}]}
    world.add(job)

    said = world.voda("resume", "digits")

    assert (said.code, said.out) == (2, "")
    assert "grant" in said.err

"""Workflows whose nodes Argo has packed because there are many: read as others are, and changed in the package."""

from __future__ import annotations

from pathlib import Path

import pytest

from scheduler_core.cycle import run_cycle
from scheduler_core.errors import InvalidValue
from scheduler_core.model.job import JobPhase
from scheduler_core.model.plan import Grant
from tests.unit.control.world import PARAMS, World
from voda_flows.objects import Object
from voda_flows.workflows.packed import nodes_of, nodes_patch, pack

#: `printf '{"a":{"phase":"Running"}}' | gzip -n | base64`.
BY_GZIP = "H4sIAAAAAAAAA6tWSlSyqlYqyEgsTlWyUgoqzcvLzEtXqq0FAAyCJxIZAAAA"


def packed(world: World) -> Object:
    """The one Workflow, its nodes packed as the controller does it."""
    (workflow,) = world.store.list("Workflow")
    change = {"status": {"nodes": None, "compressedNodes": pack(workflow["status"]["nodes"])}}
    return world.store.merge_patch("Workflow", "default", workflow["metadata"]["name"], change)


def test_a_job_with_packed_nodes_is_seen_and_granted(tmp_path: Path) -> None:
    """The gate is answered in the package, where all other nodes stay; nothing is put beside it."""
    world = World(tmp_path)
    world.submit("digits")
    before = packed(world)
    result = run_cycle(world.observer, world.enforcer, world.targets, PARAMS)
    after = world.store.get("Workflow", "default", "digits")
    changed = {key for key, node in nodes_of(after).items() if node != nodes_of(before)[key]}
    (gate,) = [node for node in nodes_of(after).values() if node["type"] == "Suspend"]

    assert [job.phase for job in result.observation.jobs] == [JobPhase.QUEUED]
    assert [type(action) for action in result.done] == [Grant]
    assert "nodes" not in after["status"]
    assert nodes_of(after).keys() == nodes_of(before).keys()
    assert changed == {gate["id"]}
    assert {row["name"]: row["value"] for row in gate["outputs"]["parameters"]}["grant"] == "given"


def test_two_changes_in_one_round_both_stay(tmp_path: Path) -> None:
    """The second change goes into the package that the first has left."""
    world = World(tmp_path)
    world.submit("digits")
    view = (packed(world), world.view())[1]
    first, second = list(nodes_of(view.workflow))[:2]
    for node in (first, second):
        world.enforcer._patch_node(view, node, {"message": f"of {node}"})
    found = nodes_of(world.store.get("Workflow", "default", "digits"))

    assert [found[node]["message"] for node in (first, second)] == [f"of {first}", f"of {second}"]


def workflow(**status: object) -> Object:
    """A Workflow of a status."""
    return {"metadata": {"name": "w"}, "status": status}


def test_what_gzip_has_packed_is_unpacked() -> None:
    """As the controller writes it, and back."""
    nodes = {"a": {"phase": "Running"}}

    assert nodes_of(workflow(compressedNodes=BY_GZIP)) == nodes
    assert nodes_of(workflow(compressedNodes=pack(nodes))) == nodes


def test_nodes_in_the_open_go_before_packed_ones() -> None:
    """As with Argo, which looks at the package only where there is nothing else."""
    both = workflow(nodes={"b": {}}, compressedNodes=BY_GZIP)

    assert nodes_of(both) == {"b": {}}
    assert nodes_patch(both, {"b": {"x": 1}}) == {"status": {"nodes": {"b": {"x": 1}}}}


@pytest.mark.parametrize("text", ["KLUv/QQAyQAAeyJhIjp7InBoYXNlIjoiUnVubmluZyJ9fQ==", "H4sI", "not base64!", "e30="])
def test_another_packing_is_refused_by_name(text: str) -> None:
    """Zstandard of newer controllers, a torn text: refused, never taken for no nodes."""
    with pytest.raises(InvalidValue, match=r"workflow 'w': expected gzip of JSON in status\.compressedNodes"):
        nodes_of(workflow(compressedNodes=text))

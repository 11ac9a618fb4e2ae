"""What people do to a Workflow, where Argo keeps its nodes otherwise than in the open."""

from __future__ import annotations

from pathlib import Path

import pytest

from scheduler_core.errors import InvalidValue
from voda_flows import operations
from voda_flows.local.store import LocalStore
from voda_flows.objects import Object
from voda_flows.workflows.packed import nodes_of, pack

GATE = {
    "id": "g", "name": "w.gate", "displayName": "gate", "type": "Suspend", "phase": "Running",
    "outputs": {"parameters": [{"name": "more", "valueFrom": {"supplied": {}, "default": "yes"}}]},
}  # fmt: skip
OTHER = {"id": "o", "name": "w.other", "displayName": "other", "type": "Pod", "phase": "Running"}


def kept(store: LocalStore, **status: object) -> Object:
    """A Workflow of a status."""
    return store.create(
        {
            "apiVersion": "argoproj.io/v1alpha1",
            "kind": "Workflow",
            "metadata": {"name": "w", "namespace": "default"},
            "spec": {},
            "status": {"phase": "Running", **status},
        }
    )


def test_packed_nodes_are_changed_in_their_package(tmp_path: Path) -> None:
    """A gate in it is opened, the others stay, and nothing is put beside it."""
    store = LocalStore(tmp_path)

    after = operations.resume(store, kept(store, compressedNodes=pack({"g": GATE, "o": OTHER})))

    nodes = nodes_of(after)
    assert "nodes" not in after["status"]
    assert (nodes["g"]["phase"], nodes["g"]["outputs"]["parameters"][0]["value"]) == ("Succeeded", "yes")
    assert nodes["o"] == OTHER


def test_nodes_in_a_database_are_refused(tmp_path: Path) -> None:
    """Whoever changed what is left in the Workflow would lose the others."""
    store = LocalStore(tmp_path)
    workflow = kept(store, offloadNodeStatusVersion="fnv:1")

    with pytest.raises(InvalidValue, match="keeps them in a database"):
        operations.resume(store, workflow)

    assert store.get("Workflow", "default", "w") == workflow


def test_what_changes_nothing_writes_nothing(tmp_path: Path) -> None:
    """A Workflow that is not suspended and has no gate is as it was."""
    store = LocalStore(tmp_path)
    workflow = kept(store, nodes={"o": OTHER})

    assert operations.resume(store, workflow) == workflow

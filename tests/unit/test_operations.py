"""What people do to a Workflow, where Argo keeps its nodes otherwise than in the open."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
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


@pytest.mark.parametrize(("ago_s", "waited_s"), [(0.5, 2.5), (2.9, 0.1), (60.0, 0.0), (-60.0, 3.0)])
def test_one_that_has_just_ended_is_left_alone_for_a_moment(tmp_path: Path, ago_s: float, waited_s: float) -> None:
    """Whoever runs it may not be done with its end; a clock that is wrong costs no more than that moment."""
    now, waits = datetime(2026, 1, 1, tzinfo=UTC), list[float]()
    store = LocalStore(tmp_path)
    ended = (now - timedelta(seconds=ago_s)).isoformat()
    node = {"id": "w", "name": "w", "displayName": "w", "type": "Steps", "phase": "Failed", "templateName": "main"}
    workflow = kept(store, phase="Failed", finishedAt=ended, nodes={"w": node})

    operations.retry(store, workflow, lambda: now, busy_s=3.0, sleep=waits.append)

    assert waits == [pytest.approx(waited_s)]


def test_what_changes_nothing_writes_nothing(tmp_path: Path) -> None:
    """A Workflow that is not suspended and has no gate is as it was."""
    store = LocalStore(tmp_path)
    workflow = kept(store, nodes={"o": OTHER})

    assert operations.resume(store, workflow) == workflow

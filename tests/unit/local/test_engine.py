"""The engine as a real process: workflows go on through kills, trouble of one is no trouble of others."""

from __future__ import annotations

import copy
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from scheduler_core.errors import Unreachable
from tests.unit.local.conftest import World
from voda_flows.local.advancing import Workflows
from voda_flows.local.argo import Advance
from voda_flows.local.processes import is_running, named_by, parent_of, wait_for_ends
from voda_flows.local.up import start_engine
from voda_flows.objects import Object

NOW = datetime(2026, 3, 1, tzinfo=UTC)


def shell(name: str, script: str) -> Object:
    """A template that runs a shell script."""
    return {"name": name, "container": {"image": "any", "command": ["sh", "-c"], "args": [script]}}


def steps(*names: str) -> Object:
    """A template ``main`` that runs others one after the other."""
    return {"name": "main", "steps": [[{"name": name, "template": name}] for name in names]}


def engine_pid(home: Path) -> int:
    """The pid of the engine that runs."""
    pid = named_by(home / "engine.json")
    assert pid is not None
    return pid


def kill_engine(home: Path) -> None:
    """Kill the engine with SIGKILL and see it gone."""
    pid = engine_pid(home)
    os.kill(pid, signal.SIGKILL)
    assert wait_for_ends([pid], 10) == set()


def test_workflow_runs_to_its_end(world: World) -> None:
    """A Workflow put into the store is all it takes: its pods run, and it ends."""
    world.workflow("two-steps", steps("a", "b"), shell("a", "true"), shell("b", "true"))
    found = world.phase("Workflow", "two-steps", "Succeeded", "Failed", "Error")

    assert found["status"]["phase"] == "Succeeded"
    nodes = {node["displayName"]: node["phase"] for node in found["status"]["nodes"].values()}
    assert nodes == dict.fromkeys(["two-steps", "[0]", "a", "[1]", "b"], "Succeeded")


def test_pod_that_has_ended_says_so_in_its_label(world: World) -> None:
    """`kubectl get pods -l workflows.argoproj.io/completed=false` shows what runs, as the controller has it."""
    world.workflow("labelled", steps("a", "b"), shell("a", "true"), shell("b", "exit 3"))
    world.phase("Workflow", "labelled", "Succeeded", "Failed", "Error")

    ended = world.store.list("Pod", labels={"workflows.argoproj.io/workflow": "labelled"})

    assert [pod["metadata"]["labels"]["workflows.argoproj.io/completed"] for pod in ended] == ["true", "true"]


def test_invalid_workflow_fails_with_the_reason(world: World) -> None:
    """A Workflow that makes no sense ends as Failed, as the controller would have it."""
    world.workflow("no-entry", shell("a", "true"), entrypoint="nothing")
    found = world.phase("Workflow", "no-entry", "Succeeded", "Failed", "Error")

    assert found["status"]["phase"] == "Failed"
    assert found["status"]["message"].startswith("invalid spec: ")


def test_deleted_workflow_takes_its_pods_along(world: World) -> None:
    """A deleted Workflow's pods are ended first, then it goes, and with it what it owns."""
    made = world.workflow("deleted", steps("long"), shell("long", "sleep 600"))
    owner = {"uid": made["metadata"]["uid"], "kind": "Workflow", "name": "deleted", "apiVersion": "v1"}
    world.store.create({"kind": "Secret", "metadata": {"name": "owned", "ownerReferences": [owner]}})

    def pods() -> list[Object]:
        return world.store.list("Pod", labels={"workflows.argoproj.io/workflow": "deleted"})

    assert world.happens(lambda: pods() and (pods()[0].get("status") or {}).get("phase") == "Running")
    parent = parent_of(world.folder(pods()[0]))
    world.store.delete("Workflow", "default", "deleted")

    assert world.gone("Workflow", "deleted")
    assert pods() == []
    assert world.store.list("Secret") == []
    assert parent is not None
    assert wait_for_ends([parent], 1) == set()


def test_pod_outlives_its_engine(own_world: World) -> None:
    """A pod goes on without its engine, and its end is recorded by the next one."""
    world = own_world.begin()
    world.pod("goes-on", "sh", "-c", "while ! test -e go; do sleep 0.01; done; exit 7")
    world.pod("also-ends-later", "sh", "-c", "while ! test -e go; do sleep 0.01; done; exit 8")
    pods = [world.phase("Pod", name, "Running") for name in ("goes-on", "also-ends-later")]
    kill_engine(world.home)
    first = parent_of(world.folder(pods[0]))
    assert first is not None
    (world.folder(pods[0]) / "fs" / "go").touch()
    assert wait_for_ends([first], 10) == set()
    assert world.store.get("Pod", "default", "goes-on")["status"]["phase"] == "Running"

    start_engine(world.home)
    found = world.phase("Pod", "goes-on", "Failed")
    assert found["status"]["message"] == "Error (exit code 7)"
    (world.folder(pods[1]) / "fs" / "go").touch()
    assert world.phase("Pod", "also-ends-later", "Failed")["status"]["message"] == "Error (exit code 8)"


def test_annotation_changed_without_an_engine_arrives_with_the_next(own_world: World) -> None:
    """What was written to a pod while no engine ran reaches its downward-API file once one does."""
    world = own_world.begin()
    item = {"path": "a", "fieldRef": {"fieldPath": "metadata.annotations['a']"}}
    spec = {"volumes": [{"name": "info", "downwardAPI": {"items": [item]}}]}
    mounts = {"volumeMounts": [{"name": "info", "mountPath": "/info"}]}
    world.pod("waits", "sh", "-c", "until grep -q new /info/a; do sleep 0.01; done", container=mounts, spec=spec)
    world.phase("Pod", "waits", "Running")
    kill_engine(world.home)
    world.store.merge_patch("Pod", "default", "waits", {"metadata": {"annotations": {"a": "new"}}})
    start_engine(world.home)

    assert world.phase("Pod", "waits", "Succeeded", "Failed")["status"]["phase"] == "Succeeded"


def test_kills_lose_nothing_and_repeat_nothing(own_world: World) -> None:
    """However often the engine is killed, every step runs exactly once, in order, and the Workflow ends well."""
    world, rng, names = own_world.begin(), random.Random(7), ["a", "b", "c", "d", "e"]
    record = world.home / "record"
    world.workflow("through", steps(*names), *(shell(name, f"echo {name} >> {record}; sleep 0.1") for name in names))
    for _ in range(6):
        world.store.wait(world.store.revision(), 0.3)
        time.sleep(rng.uniform(0, 0.1))  # the kill falls anywhere between two commits: that is the point
        kill_engine(world.home)
        start_engine(world.home)
    found = world.phase("Workflow", "through", "Succeeded", "Failed", "Error")

    assert (found["status"]["phase"], found["status"].get("message")) == ("Succeeded", None)
    assert record.read_text().split() == names


def test_one_engine_for_a_home(world: World) -> None:
    """A second engine for the same home ends at once with what it found (exit 4)."""
    ended = subprocess.run(
        [sys.executable, "-m", "voda_flows.local.engine", str(world.home)], capture_output=True, text=True, check=False
    )

    assert ended.returncode == 4
    assert "expected no engine, one runs already" in ended.stderr


def test_engine_ends_with_its_home(own_world: World) -> None:
    """An engine whose state is taken away ends by itself."""
    world = own_world.begin()
    pid = engine_pid(world.home)
    (world.home / "state.db").unlink()

    assert wait_for_ends([pid], 10) == set()
    assert not is_running(world.home)


def test_engine_that_cannot_start_says_why(tmp_path: Path) -> None:
    """Whoever starts an engine learns what it said when it ended at once."""
    (tmp_path / "state.db").write_bytes(b"not a database at all, but long enough to be read as one" * 20)

    with pytest.raises(Unreachable, match=r"expected Voda's state, got .*not a database"):
        start_engine(tmp_path)


def stub(answer: Any) -> Any:
    """What a Workflow comes to: a phase, or an error that is raised, by the Workflow's name."""

    def go_on(workflow: Object, pods: Mapping[str, Object], templates: object, now: datetime) -> Advance:
        found = answer(workflow["metadata"]["name"])
        new = copy.deepcopy(workflow)
        new["status"] = {"phase": found}
        pod = {"kind": "Pod", "metadata": {"name": f"{workflow['metadata']['name']}-pod"}, "spec": {}}
        return Advance(workflow=new, create=(pod,))

    return go_on


def test_defect_in_one_workflow_disturbs_no_other(own_world: World) -> None:
    """A Workflow that makes the engine raise ends in Error with the message, its pods are deleted, others go on."""

    def answer(name: str) -> str:
        if name == "bad":
            raise KeyError("cause")
        return "Running"

    for name in ("bad", "good"):
        own_world.workflow(name)
    own_world.store.create(
        {"kind": "Pod", "metadata": {"name": "p", "labels": {"workflows.argoproj.io/workflow": "bad"}}, "spec": {}}
    )
    Workflows(own_world.store, stub(answer)).advance(NOW)

    found = own_world.store.get("Workflow", "default", "bad")["status"]
    assert (found["phase"], found["message"]) == ("Error", "KeyError: 'cause'")
    assert own_world.store.get("Workflow", "default", "good")["status"] == {"phase": "Running"}
    assert "deletionTimestamp" in own_world.store.get("Pod", "default", "p")["metadata"]


def test_decision_on_a_stale_workflow_is_dropped(own_world: World) -> None:
    """Where somebody changed the Workflow meanwhile, neither status nor pods are written; the next look does it."""
    own_world.workflow("raced")
    raced = iter([True, False])

    def answer(name: str) -> str:
        if next(raced):
            own_world.store.merge_patch("Workflow", "default", name, {"spec": {"suspend": True}})
        return "Running"

    workflows = Workflows(own_world.store, stub(answer))
    assert workflows.advance(NOW) == {("default", "raced")}
    assert own_world.store.list("Pod") == []
    assert "status" not in own_world.store.get("Workflow", "default", "raced")

    assert workflows.advance(NOW) == set()
    assert [pod["metadata"]["name"] for pod in own_world.store.list("Pod")] == ["raced-pod"]
    assert own_world.store.get("Workflow", "default", "raced")["status"] == {"phase": "Running"}

"""Logs stay for as long as their Workflow does, those too of pods that were deleted meanwhile."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from tests.unit.local.conftest import World
from tests.unit.local.disks import voda
from voda_flows.local import logs
from voda_flows.local.advancing import Workflows
from voda_flows.local.store import LocalStore
from voda_flows.objects import Object

NOW = datetime(2026, 1, 31, tzinfo=UTC)


def talking(world: World, name: str, limit: int) -> Object:
    """A Workflow whose pods say their try, and end; those before the last wait to be deleted."""
    script = (
        'echo "said by try {{retries}}"; echo 1/1 > $ARGO_PROGRESS_FILE; test {{retries}} -ge '
        + str(limit)
        + " || sleep 600"
    )
    template = {
        "name": "main",
        "retryStrategy": {"limit": str(limit), "retryPolicy": "Always"},
        "container": {"image": "i", "command": ["sh", "-c"], "args": [script]},
    }
    return world.workflow(name, template)


def pods_of(world: World, name: str) -> list[Object]:
    """The pods of a Workflow that have said their line and go on."""
    found = world.store.list("Pod", labels={"workflows.argoproj.io/workflow": name})
    said = [pod for pod in found if "voda.dev/progress" in pod["metadata"]["annotations"]]
    return [pod for pod in said if pod["status"]["phase"] == "Running"]


def test_log_of_a_deleted_pod_is_still_printed(own_world: World) -> None:
    """After its pods were deleted (evicted, say) an ended Workflow's logs are all there, each with its own pod's."""
    world = own_world.begin()
    workflow = talking(world, "talks", 2)
    uid = workflow["metadata"]["uid"]
    for number in range(2):
        assert world.happens(lambda: pods_of(world, "talks"))
        (pod,) = pods_of(world, "talks")
        assert world.log(pod) == f"said by try {number}\n"
        world.store.delete("Pod", "default", pod["metadata"]["name"])
        assert world.gone("Pod", pod["metadata"]["name"])
        assert not world.folder(pod).exists()
    world.phase("Workflow", "talks", "Succeeded", "Failed", "Error")
    said = voda(world.home, "logs", "talks")

    assert said.code == 0
    assert sorted(line.rpartition("said by ")[2] for line in said.out.splitlines()) == ["try 0", "try 1", "try 2"]
    assert len(logs.kept(world.home, uid)) == 2
    world.store.delete("Workflow", "default", "talks")
    assert world.gone("Workflow", "talks")
    assert not (world.home / "logs" / uid).exists()


def test_who_sees_a_workflow_gone_finds_no_log_of_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Logs go before their Workflow does, and an engine that is cut off in between takes both away later."""
    store = LocalStore(tmp_path)
    metadata = {"name": "old", "namespace": "default", "finalizers": ["voda.dev/engine"]}
    uid = store.create({"kind": "Workflow", "metadata": metadata, "spec": {}})["metadata"]["uid"]
    store.delete("Workflow", "default", "old")
    folder = tmp_path / "logs" / uid
    folder.mkdir(parents=True)
    with monkeypatch.context() as cut_off:
        cut_off.setattr(LocalStore, "remove", interrupt)
        with pytest.raises(KeyboardInterrupt):
            Workflows(store).advance(NOW)

    assert not folder.exists()
    assert Workflows(store).advance(NOW) == set()
    assert store.list("Workflow") == []


def interrupt(*_: object, **__: object) -> None:
    """What a signal does."""
    raise KeyboardInterrupt


def test_logs_of_workflows_that_are_gone_are_swept(tmp_path: Path) -> None:
    """What is left of Workflows that were lost with their database goes at the start; a broken note is no log."""
    for name in ("known", "gone"):
        (tmp_path / "logs" / name).mkdir(parents=True)
        (tmp_path / "logs" / name / "p.json").write_text('{"metadata"')
    logs.sweep(tmp_path, ["known"])

    assert [path.name for path in (tmp_path / "logs").iterdir()] == ["known"]
    assert logs.kept(tmp_path, "known") == []

"""Logs stay for as long as their Workflow does, those too of pods that were deleted meanwhile."""

from __future__ import annotations

from pathlib import Path

from tests.unit.local.conftest import World
from tests.unit.local.disks import voda
from voda_flows.local import logs
from voda_flows.objects import Object


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
    assert world.happens(lambda: not (world.home / "logs" / uid).exists())


def test_logs_of_workflows_that_are_gone_are_swept(tmp_path: Path) -> None:
    """What an engine left behind that was killed while it forgot goes with the next one; a broken note is no log."""
    for name in ("known", "gone"):
        (tmp_path / "logs" / name).mkdir(parents=True)
        (tmp_path / "logs" / name / "p.json").write_text('{"metadata"')
    logs.sweep(tmp_path, ["known"])

    assert [path.name for path in (tmp_path / "logs").iterdir()] == ["known"]
    assert logs.kept(tmp_path, "known") == []

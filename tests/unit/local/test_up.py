"""Local mode up and down: what is put in place, what is refused, and that everything ends again."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from datetime import datetime, tzinfo
from pathlib import Path

import pytest

from scheduler_core.errors import Conflict
from tests.unit.local.conftest import World
from voda_flows.local.nodes import make_node, nodes_of_shape
from voda_flows.local.processes import ENGINE, is_running, named_by, parent_of, parents_in, wait_for_ends
from voda_flows.local.up import Down, Up, down, shipped_templates, start_engine, up
from voda_flows.objects import Object


def is_idle(home: Path) -> bool:
    """Whether no engine and no pod of a home is left."""
    return not is_running(home) and all(parent_of(folder) is None for folder in (home / "pods").glob("*"))


def test_up_puts_everything_in_place(own_world: World) -> None:
    """The first ``up`` makes nodes, templates, settings, the engine, and starts the scheduler at once."""
    made = up(own_world.home, nodes_of_shape("1x3"))
    store = own_world.store

    assert made.started
    assert made.nodes == ("n0",)
    assert [node["status"]["allocatable"] for node in store.list("Node")] == [{"nvidia.com/gpu": "3"}]
    assert store.get("WorkflowTemplate", "default", "voda-elastic-job")["spec"]["entrypoint"] == "job"
    assert store.get("ConfigMap", "voda", "voda-config")["data"] == {}
    runs = store.list("Workflow", "voda", {"workflows.argoproj.io/cron-workflow": "voda-scheduler"})
    assert [run["metadata"]["name"] for run in runs] == [made.scheduler]

    def scheduler_runs() -> bool:
        pods = store.list("Pod", "voda", {"voda.dev/role": "scheduler"})
        return any((pod.get("status") or {}).get("phase") == "Running" for pod in pods)

    assert own_world.happens(scheduler_runs)
    ended = down(own_world.home)
    assert ended == Down(engine=True, drained=1, killed=0)
    assert is_idle(own_world.home)


def test_up_again_changes_nothing(own_world: World) -> None:
    """A second ``up`` finds what runs and adopts it, without nodes named or with the same ones."""
    first = up(own_world.home, nodes_of_shape("2x2"))
    pid = named_by(own_world.home / "engine.json")

    assert first.started
    for nodes in (None, nodes_of_shape("2x2")):
        assert up(own_world.home, nodes) == Up(started=False, nodes=("n0", "n1"), scheduler=None)
    assert named_by(own_world.home / "engine.json") == pid


def test_the_first_run_is_there_before_the_engine(own_world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """An engine that begins at a tick finds a run and starts no other one."""
    seen: list[str] = []

    def start(_home: Path) -> None:
        runs = own_world.store.list("Workflow", "voda", {"workflows.argoproj.io/cron-workflow": "voda-scheduler"})
        seen.extend(run["metadata"]["name"] for run in runs)

    monkeypatch.setattr("voda_flows.local.up.start_engine", start)
    made = up(own_world.home)

    assert seen == [made.scheduler]


def test_up_after_a_killed_engine_starts_another(own_world: World) -> None:
    """Where the engine was killed, ``up`` starts one and the scheduler's run goes on."""
    up(own_world.home)
    pid = named_by(own_world.home / "engine.json")
    assert pid is not None
    os.kill(pid, signal.SIGKILL)
    assert wait_for_ends([pid], 10) == set()
    again = up(own_world.home)

    assert (again.started, again.scheduler) == (True, None)
    assert named_by(own_world.home / "engine.json") not in (None, pid)


def test_up_after_down_starts_the_scheduler_at_once(own_world: World) -> None:
    """Nobody has recorded yet that the run before has ended: jobs would wait for the cron's next tick."""
    first = up(own_world.home).scheduler
    assert own_world.happens(lambda: own_world.store.list("Lease", "voda"))  # it works, and ends well when told to
    down(own_world.home)

    second = up(own_world.home).scheduler

    assert second not in (None, first)


def test_down_and_up_within_a_second_start_the_scheduler_too(own_world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """A run is named by its second: that of the one before, which has ended, is not taken for another's."""

    class OneSecond(datetime):
        @classmethod
        def now(cls, tz: tzinfo | None = None) -> OneSecond:
            return cls(2030, 1, 2, 3, 4, 5, tzinfo=tz)

    monkeypatch.setattr("voda_flows.local.up.datetime", OneSecond)
    first = up(own_world.home).scheduler
    assert own_world.happens(lambda: own_world.store.list("Lease", "voda"))
    down(own_world.home)

    second = up(own_world.home).scheduler

    assert second not in (None, first)


def frozen_pod(world: World, name: str) -> Path:
    """The folder of a pod that runs and whose parent process was stopped."""
    folder = world.folder(world.pod(name, "sleep", "600"))
    world.phase("Pod", name, "Running")
    parent = parent_of(folder)
    assert parent is not None
    os.kill(parent, signal.SIGSTOP)
    return folder


def test_a_stopped_engine_goes_on_with_the_next_up(own_world: World) -> None:
    """It still holds its lock, so nobody else may take its place."""
    up(own_world.home)
    pid = named_by(own_world.home / "engine.json")
    assert pid is not None
    with own_world.store.database.write():  # it does not write at the moment
        os.kill(pid, signal.SIGSTOP)
    own_world.pod("waits", "true")

    assert not up(own_world.home).started
    own_world.phase("Pod", "waits", "Succeeded")


STOPPED_WRITER = """
import os, signal, sqlite3, sys
from pathlib import Path
from voda_flows.local.database import Database
with Database(Path(sys.argv[2]) / "state.db").write():
    print("writes", flush=True)
    os.kill(os.getpid(), signal.SIGSTOP)
"""


def test_an_engine_stopped_while_it_writes_is_woken_first(own_world: World) -> None:
    """What it wrote is held until it goes on: ``up`` could not write a thing before."""
    writer = subprocess.Popen(
        [sys.executable, "-c", STOPPED_WRITER, ENGINE, str(own_world.home)], stdout=subprocess.PIPE
    )
    assert writer.stdout is not None
    with writer, writer.stdout as said:
        assert said.readline() == b"writes\n"
        os.waitid(os.P_PID, writer.pid, os.WSTOPPED | os.WNOWAIT)
        try:
            assert up(own_world.home).started
        finally:
            os.kill(writer.pid, signal.SIGCONT)
    assert writer.returncode == 0


def test_a_frozen_pod_can_be_deleted(own_world: World) -> None:
    """Its parent process is woken to hear that it is to end: its container would run on for ever."""
    own_world.begin()
    folder = frozen_pod(own_world, "frozen")

    own_world.store.delete("Pod", "default", "frozen")

    assert own_world.gone("Pod", "frozen")
    assert wait_for_ends(parents_in(own_world.home).values(), 30) == set()
    assert not folder.exists()


def test_a_stopped_world_ends_in_good_order(own_world: World) -> None:
    """Engine and pods are woken to end by themselves, none has to be killed."""
    own_world.begin()
    frozen_pod(own_world, "frozen")
    engine = named_by(own_world.home / "engine.json")
    assert engine is not None
    os.kill(engine, signal.SIGSTOP)

    assert down(own_world.home) == Down(engine=True, drained=1, killed=0)
    assert is_idle(own_world.home)


def test_other_nodes_are_refused_while_in_use(own_world: World) -> None:
    """Other nodes than those that serve pods are a conflict that says what to do; after ``down`` they may come."""
    own_world.begin("2x2")
    with pytest.raises(Conflict, match=r"expected the nodes it has, n0 \(2 GPUs\), n1 .*'voda down' first"):
        up(own_world.home, nodes_of_shape("1x1"))

    down(own_world.home)
    made = up(own_world.home, [make_node("x", 1, {"topology.kubernetes.io/zone": "z"})])

    assert made.nodes == ("x",)
    assert [node["metadata"]["name"] for node in own_world.store.list("Node")] == ["x"]


def test_cordoned_node_is_no_other_node(own_world: World) -> None:
    """What was done to a node since, such as a cordon, is kept by the next ``up``."""
    up(own_world.home, nodes_of_shape("1x1"))
    own_world.store.merge_patch("Node", "", "n0", {"spec": {"unschedulable": True}})
    up(own_world.home, nodes_of_shape("1x1"))

    assert own_world.store.get("Node", "", "n0")["spec"] == {"unschedulable": True}


def test_templates_are_renewed_by_up(own_world: World) -> None:
    """An older shipped template in the store gives way to the one of this version; settings stay."""
    up(own_world.home)
    own_world.store.merge_patch("WorkflowTemplate", "default", "voda-elastic-job", {"spec": {"entrypoint": "old"}})
    own_world.store.merge_patch("ConfigMap", "voda", "voda-config", {"data": {"policy": "fifo"}})
    up(own_world.home)

    assert own_world.store.get("WorkflowTemplate", "default", "voda-elastic-job")["spec"]["entrypoint"] == "job"
    assert own_world.store.get("ConfigMap", "voda", "voda-config")["data"] == {"policy": "fifo"}


def test_shipped_templates_are_the_rendered_ones() -> None:
    """What ``up`` installs is the job's template and the scheduler's cron workflow."""
    kinds = {(body["kind"], body["metadata"]["name"]) for body in shipped_templates()}

    assert {("WorkflowTemplate", "voda-elastic-job"), ("CronWorkflow", "voda-scheduler")} <= kinds


def recording(world: World, name: str, end: str, **labels: str) -> Object:
    """A pod that, asked to end, writes its name to the record and ends."""
    on_term = f"sleep 0.1; echo {name} >> {world.home}/record; {end}"
    script = f"trap '{on_term}' TERM; echo 1/1 > $ARGO_PROGRESS_FILE; while :; do sleep 0.01; done"
    world.pod(name, "sh", "-c", script)
    world.store.merge_patch("Pod", "default", name, {"metadata": {"labels": labels}})
    return world.until("Pod", name, lambda pod: "voda.dev/progress" in pod["metadata"]["annotations"])


def test_drivers_are_asked_first(own_world: World) -> None:
    """Going down, drivers end before the others are asked: workers leave with their driver, a checkpoint is made."""
    world = own_world.begin()
    record = world.home / "record"
    leave = f"until grep -q driver {record}; do sleep 0.01; done; sleep 0.1; echo worker >> {record}"
    recording(world, "another", "exit 0")
    recording(world, "driver", "exit 0", **{"voda.dev/role": "driver"})
    record.touch()
    world.pod("worker", "sh", "-c", leave, labels={"voda.dev/role": "worker"})
    world.phase("Pod", "worker", "Running")
    assert down(world.home) == Down(engine=True, drained=3, killed=0)

    assert record.read_text().split() == ["driver", "worker", "another"]
    assert world.store.get("Pod", "default", "worker")["status"]["phase"] == "Running"
    start_engine(world.home)
    assert world.phase("Pod", "worker", "Succeeded", "Failed")["status"]["phase"] == "Succeeded"


def test_down_works_with_a_dead_engine_and_stubborn_pods(own_world: World) -> None:
    """Without an engine the pods are found and ended all the same; who does not end in time is killed."""
    world = own_world.begin()
    recording(world, "stays", "true")
    pid = named_by(world.home / "engine.json")
    assert pid is not None
    os.kill(pid, signal.SIGKILL)
    assert wait_for_ends([pid], 10) == set()

    assert down(world.home, drain_s=0.3) == Down(engine=False, drained=0, killed=1)
    assert is_idle(world.home)
    assert down(world.home) == Down(engine=False, drained=0, killed=0)


def test_pod_that_just_begins_is_ended_too(own_world: World) -> None:
    """A pod whose process was started a moment before ``down`` does not slip through."""
    world = own_world.begin()
    for number in range(4):
        world.pod(f"p{number}", "sleep", "600")
    spawned = world.happens(lambda: all("podIP" in pod.get("status", {}) for pod in world.store.list("Pod")))
    ended = down(world.home)

    assert spawned
    assert ended.killed == 0
    assert parents_in(world.home) == {}


def test_down_does_not_need_the_store(own_world: World) -> None:
    """With a state that cannot be read, pods end all the same and a purge makes room for a new one."""
    world = own_world.begin()
    world.pod("p", "sleep", "600")
    world.phase("Pod", "p", "Running")
    world.store.close()
    pid = named_by(world.home / "engine.json")
    assert pid is not None
    os.kill(pid, signal.SIGKILL)
    assert wait_for_ends([pid], 10) == set()
    for name in ("state.db-wal", "state.db-shm"):
        (world.home / name).unlink(missing_ok=True)
    (world.home / "state.db").write_bytes(b"not a database at all, but long enough to be read as one" * 200)

    assert down(world.home, purge=True) == Down(engine=False, drained=1, killed=0)
    assert up(world.home).started


def test_down_makes_nothing(tmp_path: Path) -> None:
    """Where nothing ever ran there is nothing to end, and nothing is made."""
    assert down(tmp_path / "never") == Down(engine=False, drained=0, killed=0)
    assert not (tmp_path / "never").exists()


def test_purge_takes_the_state_away(own_world: World) -> None:
    """With ``--purge`` nothing of Voda is left in the home; what is not Voda's stays."""
    own_world.begin()
    (own_world.home / "mine").write_text("x")
    (own_world.home / "records" / "00000001").mkdir(parents=True)  # as the scheduler keeps its decisions
    down(own_world.home, purge=True)

    assert [path.name for path in own_world.home.iterdir()] == ["mine"]

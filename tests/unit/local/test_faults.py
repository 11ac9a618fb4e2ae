"""Faults of storage really made: each is a clear error with its exit code, or is got over; never a wrong state."""

from __future__ import annotations

import os
import shutil
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from scheduler_core.errors import Unreachable, VodaError
from tests.unit.local.conftest import World
from tests.unit.local.disks import Disk, ForbiddenDisk, MountedDisk, can_mount, mounted, read_only, voda
from voda_flows.local import trouble
from voda_flows.local.clock import EvenClock
from voda_flows.local.down import down
from voda_flows.local.engine import Engine
from voda_flows.local.nodes import nodes_of_shape
from voda_flows.local.processes import engines_in, is_running, parent_of, wait_for_ends
from voda_flows.local.store import LocalStore

MOUNTS = can_mount()
WAITS = 'while ! test -e "{go}"; do sleep 0.05; done; echo done; exit 3'
GARBAGE = b"not a database at all, but long enough to be read as one" * 200
LIMIT_S = 60.0


@pytest.fixture(params=["forbidden", "mounted"] if MOUNTS else ["forbidden"])
def disk(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Disk]:
    """A home on a disk that can be filled, ended in the end."""
    home = tmp_path / "home"
    if request.param == "forbidden":
        yield ForbiddenDisk(home)
        down(home, drain_s=0.2)
        return
    with mounted(home):
        yield MountedDisk(home)
        down(home, drain_s=0.2)


def children(pid: int) -> list[int]:
    """The processes that a process has started."""
    return [int(word) for word in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


@pytest.mark.timeout(300)
def test_end_of_a_pod_on_a_full_disk_is_not_lost(disk: Disk, tmp_path: Path) -> None:
    """A pod that ends while there is no room is recorded with its exit code once there is, and the engine goes on."""
    go = tmp_path / "go"
    world = World(disk.home).begin()
    folder = world.folder(world.pod("ends", "sh", "-c", WAITS.format(go=go)))
    world.phase("Pod", "ends", "Running")
    parent = parent_of(folder)
    assert parent is not None
    inner = children(parent)

    disk.fill()
    go.touch()
    assert wait_for_ends(inner, LIMIT_S) == set()
    refused = disk.voda("submit", str(one_step(tmp_path)))
    assert (refused.code, "error: " in refused.err) == (1, True)
    assert parent_of(folder) == parent
    assert is_running(disk.home)

    disk.free()
    ended = world.phase("Pod", "ends", "Failed", "Succeeded")["status"]
    assert ended["message"] == "Error (exit code 3)"
    world.pod("next", "true")
    assert world.phase("Pod", "next", "Failed", "Succeeded")["status"]["phase"] == "Succeeded"
    assert [body["metadata"]["name"] for body in world.store.list("Workflow")] == []


@pytest.mark.timeout(300)
def test_up_on_a_full_disk_says_so(disk: Disk) -> None:
    """The engine that cannot start finds no room for its last words either; with room again ``up`` goes on."""
    first = disk.voda("up", "--nodes", "1x1")
    assert (first.code, first.out) == (0, "nodes n0\n")
    engines = engines_in(disk.home)
    for pid in engines:
        os.kill(pid, signal.SIGKILL)
    assert wait_for_ends(engines, LIMIT_S) == set()

    disk.fill()
    refused = disk.voda("up")
    disk.free()

    # SQLite calls a disk to which it may not write by another name; who writes first, it or the engine, may differ.
    says = ["expected room on its disk"] + ["got 'disk I/O error'"] * (not isinstance(disk, MountedDisk))
    assert (refused.code, any(words in refused.err for words in says)) == (1, True), refused.err
    assert disk.voda("up").out == "nodes n0\n"


def one_step(folder: Path) -> Path:
    """A file with a Workflow that takes some room."""
    path = folder / "wf.yaml"
    path.write_text(
        "apiVersion: argoproj.io/v1alpha1\nkind: Workflow\nmetadata: {name: big, annotations: {pad: "
        + "x" * 100_000
        + "}}\nspec:\n  entrypoint: a\n  templates:\n  - {name: a, container: {image: i, command: ['true']}}\n"
    )
    return path


@pytest.mark.timeout(300)
def test_pod_that_finds_no_room_starts_later(own_world: World) -> None:
    """A pod whose files cannot be written does not fail: it is started once there is room."""
    world, disk = own_world.begin(), ForbiddenDisk(own_world.home)
    world.pod("first", "true")
    world.phase("Pod", "first", "Succeeded")
    disk.fill()
    try:
        world.store.create({"kind": "Pod", "metadata": {"name": "late"}, "spec": {"containers": [waiting()]}})
    finally:
        world.store.wait(world.store.revision(), 2.0)
        disk.free()
    found = world.phase("Pod", "late", "Succeeded", "Failed")

    assert found["status"]["phase"] == "Succeeded"


def waiting() -> dict[str, object]:
    """A container whose files take some room."""
    return {"name": "main", "command": ["true"], "env": [{"name": "PAD", "value": "x" * 5000}]}


def test_home_that_is_read_only_says_so(tmp_path: Path) -> None:
    """Nothing can be started, submitted or changed in a read-only folder: exit 1, with what to do."""
    if os.geteuid() == 0 and not MOUNTS:
        pytest.skip("root may write everywhere, and may not mount here: there is no read-only folder to be had")
    home = tmp_path / "home"
    LocalStore(home).close()
    with read_only(home):
        for arguments in (("up",), ("up", "--set", "records=5"), ("submit", str(one_step(tmp_path)))):
            said = voda(home, *arguments)
            assert said.code == 1, said
            assert "expected a file one may write" in said.err
            assert "--home" in said.err
        assert voda(home, "down").code == 0
        assert engines_in(home) == []
    assert voda(home, "list").code == 0


@pytest.fixture
def locked(tmp_path: Path) -> Iterator[Path]:
    """A home whose database another process keeps for itself."""
    store = LocalStore(tmp_path)
    for node in nodes_of_shape("1x1"):
        store.create(node)
    store.close()
    code = (
        "import sqlite3, sys; held = sqlite3.connect(sys.argv[1], isolation_level=None)\n"
        "held.execute('PRAGMA locking_mode = EXCLUSIVE'); held.execute('BEGIN EXCLUSIVE')\n"
        "held.execute('UPDATE counter SET revision = revision + 1'); print('held', flush=True); sys.stdin.readline()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code, str(tmp_path / "state.db")], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"held\n"
        yield tmp_path
        holder.kill()


def test_locked_state_is_unreachable(
    locked: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """While another process keeps the state for longer than one waits, commands end with 5 and say who to look for."""
    from voda_flows.cli import run

    monkeypatch.setattr(trouble, "BUSY_S", 0.05)
    for arguments in (["list"], ["up"], ["submit", str(one_step(locked))]):
        assert run([*arguments, "--home", str(locked)]) == 5
        said = capsys.readouterr().err
        assert "still locked" in said
        assert "fuser" in said


def test_engine_blames_no_workflow_for_a_locked_state(own_world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """A round in which the state is locked is repeated; no Workflow and no pod ends for it."""
    for node in nodes_of_shape("1x1"):
        own_world.store.create(node)
    own_world.workflow("wf", {"name": "main", "container": {"image": "i", "command": ["true"]}})
    monkeypatch.setattr(trouble, "BUSY_S", 0.05)
    engine = Engine(LocalStore(own_world.home), 0, EvenClock(own_world.home / "clock.json"))
    other = sqlite3.connect(own_world.home / "state.db", isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(Unreachable, match="still locked"):
        engine.step(-1)
    other.execute("ROLLBACK")
    other.close()
    engine.step(-1)

    assert own_world.store.get("Workflow", "default", "wf")["status"]["phase"] == "Running"
    assert [pod["status"]["phase"] for pod in own_world.store.list("Pod")] == ["Pending"]


def with_objects(home: Path, count: int = 200) -> Path:
    """The file of a closed state that holds objects; pods of it lie beside it."""
    store = LocalStore(home)
    for number in range(count):
        data = {"text": "x" * 2000}
        store.create({"kind": "ConfigMap", "metadata": {"name": f"c{number}"}, "data": data})
    store.close()
    (home / "pods" / "some-uid").mkdir(parents=True)
    return home / "state.db"


def cut(file: Path) -> None:
    """Take the second half away."""
    os.truncate(file, file.stat().st_size // 2)


def empty(file: Path) -> None:
    """Leave a file without a byte."""
    os.truncate(file, 0)


def spoil(file: Path) -> None:
    """Overwrite the whole file."""
    file.write_bytes(GARBAGE)


def spoil_inside(file: Path) -> None:
    """Overwrite a part that the header does not tell of."""
    with file.open("r+b") as opened:
        opened.seek(20 * 4096)
        opened.write(GARBAGE)


@pytest.mark.parametrize("harm", [cut, empty, spoil, spoil_inside, Path.unlink])
def test_state_that_is_not_whole_is_refused(tmp_path: Path, harm: object) -> None:
    """``up`` starts nothing on a state that has lost something, and leaves it as it is; ``down --purge`` helps."""
    home = tmp_path / "home"
    file = with_objects(home)
    harm(file)  # type: ignore[operator]
    before = file.read_bytes() if file.exists() else None
    refused = voda(home, "up")

    assert refused.code == 1
    assert "expected Voda's state" in refused.err
    assert "voda down --purge" in refused.err
    assert engines_in(home) == []
    assert (file.read_bytes() if file.exists() else None) == before
    assert voda(home, "down", "--purge").code == 0
    assert list(home.iterdir()) == []
    assert voda(home, "up").code == 0
    down(home, drain_s=0)


def test_state_without_its_log_is_refused(own_world: World) -> None:
    """The last changes of a killed process are in the write-ahead log: without it nobody goes on."""
    world = own_world.begin()
    (engine,) = engines_in(world.home)
    os.kill(engine, signal.SIGKILL)
    assert wait_for_ends([engine], LIMIT_S) == set()
    aside = world.home.with_name("aside")
    shutil.copytree(world.home, aside, ignore=shutil.ignore_patterns("state.db-wal"))
    refused = voda(aside, "up")

    assert refused.code == 1
    assert "state.db-wal: expected it beside state.db-shm" in refused.err
    shutil.copy(world.home / "state.db-wal", aside)
    assert [node["metadata"]["name"] for node in LocalStore(aside).list("Node")] == ["n0", "n1"]


def test_pod_with_broken_records_fails_alone(own_world: World) -> None:
    """A pod whose own files are garbage ends as lost, with the reason; the others go on."""
    world = own_world.begin()
    folder = world.folder(world.pod("broken", "sleep", "600"))
    world.phase("Pod", "broken", "Running")
    (folder / "exit.json").write_text('{"exitCode": ')
    found = world.phase("Pod", "broken", "Failed")["status"]

    assert found["reason"] == "Lost"
    assert found["message"].startswith("pod's process was lost: its records are broken")
    world.pod("good", "true")
    assert world.phase("Pod", "good", "Failed", "Succeeded")["status"]["phase"] == "Succeeded"


def test_workflow_whose_pod_cannot_be_disturbs_no_other(own_world: World) -> None:
    """A Workflow whose pod's name is refused by the store ends in Error with the reason; the next one runs."""
    world = own_world.begin()
    template = {"name": "main", "container": {"image": "i", "command": ["true"]}}
    world.workflow("w" * 250, template)
    world.workflow("good", template)

    assert world.phase("Workflow", "good", "Succeeded", "Failed", "Error")["status"]["phase"] == "Succeeded"
    assert world.phase("Workflow", "w" * 250, "Succeeded", "Failed", "Error")


def test_errors_tell_the_machine_from_the_document() -> None:
    """A full disk is the machine's trouble and is tried again; a file that is not there is the document's fault."""
    assert trouble.is_trouble(OSError(28, "No space left on device"))
    assert trouble.is_trouble(VodaError("disk"))
    assert not trouble.is_trouble(FileNotFoundError(2, "No such file"))
    assert not trouble.is_trouble(KeyError("spec"))

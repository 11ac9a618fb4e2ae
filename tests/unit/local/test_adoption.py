"""Anything is killed at any point: ``up`` goes on from what is left, ``down`` leaves no process of the home behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.unit.local.conftest import World
from tests.unit.local.disks import Said, voda
from voda_flows.local.down import Down, down
from voda_flows.local.nodes import nodes_of_shape
from voda_flows.local.pods import LOST
from voda_flows.local.processes import ENGINE, engines_in, is_running, named_by, parent_of, wait_for_ends
from voda_flows.local.up import start_engine, up
from voda_flows.objects import Object

LIMIT_S = 60.0
ORPHAN = "sleep 600 & echo $! > $PWD/pid; exec sleep 600"


def processes_of(home: Path) -> set[int]:
    """Every process that belongs to a home: by what its command line names, or by its environment."""
    marks = (str(home).encode(), f"VODA_HOME={home}".encode())
    found = set()
    for process in Path("/proc").glob("[0-9]*"):
        try:
            words = (process / "cmdline").read_bytes() + b"\0" + (process / "environ").read_bytes()
        except OSError:
            continue
        if any(mark in words for mark in marks) and int(process.name) != os.getpid():
            found.add(int(process.name))
    return found


def kill(pid: int) -> None:
    """Kill a process and see it gone."""
    os.kill(pid, signal.SIGKILL)
    assert wait_for_ends([pid], LIMIT_S) == set()


def the_engine(home: Path) -> int:
    """The pid of the one engine."""
    (pid,) = engines_in(home)
    return pid


def has_one_engine(home: Path) -> bool:
    """Whether one engine serves a home; another that was started too sees that and ends."""
    serves = named_by(home / "engine.json")
    others = [pid for pid in engines_in(home) if pid != serves]
    return serves is not None and is_running(home) and wait_for_ends(others, LIMIT_S) == set()


def parent(world: World, pod: Object) -> int:
    """The pid of a pod's parent process."""
    pid = parent_of(world.folder(pod))
    assert pid is not None
    return pid


def orphan(world: World, pod: Object) -> int:
    """The pid of a process that a pod left in the background, once it is there."""
    place = world.folder(pod) / "fs" / "pid"
    for _ in range(600):
        if place.exists() and place.read_text().strip():
            return int(place.read_text())
        threading.Event().wait(0.1)
    raise AssertionError("the pod has not begun")


def test_up_adopts_pods_of_a_killed_engine(own_world: World) -> None:
    """What still runs after a kill of the engine goes on under the next one, in the same process."""
    world = own_world
    up(world.home, nodes_of_shape("1x1"))
    pod = world.pod("long", "sleep", "600", gpus=1)
    world.phase("Pod", "long", "Running")
    before = parent(world, pod)
    kill(the_engine(world.home))

    assert up(world.home).started
    assert parent(world, pod) == before
    world.pod("second", "true", gpus=1)
    world.until("Pod", "second", lambda body: "Unschedulable" in (body.get("status") or {}).get("message", ""))
    world.store.delete("Pod", "default", "long")
    assert world.phase("Pod", "second", "Succeeded", "Failed")["status"]["phase"] == "Succeeded"


def test_up_tells_what_died_while_there_was_no_engine(own_world: World) -> None:
    """A pod whose parent was killed together with the engine is lost, and so is what it left in the background."""
    world = own_world.begin()
    pod = world.pod("dies", "sh", "-c", ORPHAN)
    world.phase("Pod", "dies", "Running")
    left, dying = orphan(world, pod), parent(world, pod)
    kill(the_engine(world.home))
    kill(dying)
    start_engine(world.home)
    status = world.phase("Pod", "dies", "Failed", "Succeeded")["status"]

    assert (status["phase"], status["reason"], status["message"]) == ("Failed", "Lost", LOST)
    assert wait_for_ends([left], LIMIT_S) == set()


def test_down_ends_what_a_dead_parent_left(own_world: World) -> None:
    """With engine and pod parent dead, ``down`` still finds the processes that the pod had started, and ends them."""
    world = own_world.begin()
    pod = world.pod("dies", "sh", "-c", ORPHAN)
    world.phase("Pod", "dies", "Running")
    left = orphan(world, pod)
    kill(the_engine(world.home))
    kill(parent(world, pod))

    assert Path(f"/proc/{left}").exists()
    assert down(world.home) == Down(engine=False, drained=0, killed=0)
    assert wait_for_ends([left], LIMIT_S) == set()
    assert processes_of(world.home) == set()


def test_down_ends_an_engine_that_hangs(own_world: World) -> None:
    """A stopped engine, which answers nobody, is killed; nothing of the home runs on."""
    world = own_world.begin()
    world.pod("long", "sleep", "600")
    world.phase("Pod", "long", "Running")
    os.kill(the_engine(world.home), signal.SIGSTOP)
    ended = down(world.home, drain_s=5, stop_s=0.2)

    assert ended.engine
    assert processes_of(world.home) == set()


FORKS = "import os, time; os.fork() or time.sleep(600); print('forked', flush=True); time.sleep(600)"


def test_what_an_engine_has_just_forked_is_no_engine(tmp_path: Path) -> None:
    """Until it becomes a pod it has the engine's command line: nobody may end it as one, or wait for its end."""
    command = [sys.executable, "-c", FORKS, ENGINE, str(tmp_path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, start_new_session=True) as engine:
        try:
            assert engine.stdout is not None
            assert engine.stdout.readline() == b"forked\n"

            assert engines_in(tmp_path) == [engine.pid]
        finally:
            os.killpg(engine.pid, signal.SIGKILL)


def test_down_ends_an_engine_that_only_begins(own_world: World) -> None:
    """An engine of an ``up`` that was killed has not said who it is yet: ``down`` does not let it come up later."""
    home = own_world.home
    own_world.store.renew("Node", nodes_of_shape("1x1"))
    with subprocess.Popen([sys.executable, "-m", "voda_flows.local.engine", str(home)]) as engine:
        while str(home) not in Path(f"/proc/{engine.pid}/cmdline").read_text():
            pass  # the kernel shows what a process is a moment after it has begun to be that
        assert not (home / "engine.json").exists()
        down(home)
        assert engine.wait(LIMIT_S) != 0

    assert not is_running(home)
    assert processes_of(home) == set()


def at_once(home: Path, *commands: str) -> list[Said]:
    """Run command lines at the same time; how each ended."""
    said: list[Said] = []
    threads = [threading.Thread(target=lambda verb=verb: said.append(voda(home, verb))) for verb in commands]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    return said


@pytest.mark.timeout(300)
def test_two_at_once_make_one(own_world: World) -> None:
    """Of several ``up`` at the same moment one starts the engine and the others find it; of two ``down`` likewise."""
    home = own_world.home
    said = at_once(home, "up", "up", "up")

    assert [(each.code, each.out) for each in said] == [(0, "nodes n0, n1\n")] * 3
    assert sorted("started" in each.err.splitlines() for each in said) == [False, False, True]
    assert has_one_engine(home)
    assert len(own_world.store.list("Workflow", "voda")) == 1
    assert [each.code for each in at_once(home, "down", "down")] == [0, 0]
    assert processes_of(home) == set()


@pytest.fixture
def calls(tmp_path: Path) -> Iterator[Path]:
    """A home, everything of which is ended in the end."""
    home = tmp_path / "home"
    home.mkdir()
    yield home
    down(home, drain_s=0)


KILLED_AT = """
import os, sys, pathlib, signal
from voda_flows.local import down, up
from voda_flows.local.nodes import nodes_of_shape
module, name, verb, home = sys.argv[1:]
where = {"up": up, "down": down}[module]
owner, _, name = name.rpartition(".")
owner = getattr(where, owner) if owner else where
real = getattr(owner, name)
def dies(*args, **more):
    made = real(*args, **more)
    os.kill(os.getpid(), signal.SIGKILL)
    return made
setattr(owner, name, dies)
home = pathlib.Path(home)
up.up(home, nodes_of_shape("3x2")) if verb == "up" else down.down(home, purge=verb == "purge")
"""


def killed(module: str, name: str, verb: str, home: Path) -> None:
    """Run ``up``, ``down`` or a purge in a process that is killed right after it called a function."""
    ended = subprocess.run([sys.executable, "-c", KILLED_AT, module, name, verb, str(home)], check=False)
    assert ended.returncode == -signal.SIGKILL


@pytest.mark.parametrize(
    "name", ["LocalStore", "LocalStore.renew", "_put_nodes", "_put", "subprocess.Popen", "start_engine"]
)
def test_up_after_an_up_that_was_killed(calls: Path, name: str) -> None:
    """Wherever an ``up`` was killed, the next one ends with all nodes, one engine and one run of the scheduler."""
    killed("up", name, "up", calls)
    made = up(calls, nodes_of_shape("3x2"))
    store = World(calls).store

    assert made.nodes == ("n0", "n1", "n2")
    assert [node["metadata"]["name"] for node in store.list("Node")] == ["n0", "n1", "n2"]
    assert has_one_engine(calls)
    assert len(store.list("Workflow", "voda")) == 1
    down(calls)
    assert processes_of(calls) == set()


@pytest.mark.parametrize("name", ["only_one", "_stop_engine", "_live", "_end_pods"])
def test_up_after_a_down_that_was_killed(own_world: World, name: str) -> None:
    """Wherever a ``down`` was killed, ``up`` serves what is left: pods that run go on, the others have ended."""
    world = own_world.begin("3x2")
    pod = world.pod("p", "sleep", "600")
    world.phase("Pod", "p", "Running")
    killed("down", name, "down", world.home)
    lives = parent_of(world.folder(pod)) is not None
    up(world.home)

    assert has_one_engine(world.home)
    if lives:
        assert parent_of(world.folder(pod)) is not None
        world.store.delete("Pod", "default", "p")
        assert world.gone("Pod", "p")
    else:
        assert world.phase("Pod", "p", "Failed", "Succeeded")["status"]["message"] == "Error (exit code 143)"


def test_purge_that_was_killed_can_be_repeated(own_world: World) -> None:
    """Half of a home is no state: ``up`` refuses it, and another purge takes away what is left."""
    world = own_world.begin()
    world.pod("p", "true")
    world.phase("Pod", "p", "Succeeded")
    killed("down", "shutil.rmtree", "purge", world.home)
    world.store.close()
    (world.home / "pods" / "left").mkdir(parents=True)
    (world.home / "metrics").mkdir(exist_ok=True)
    assert voda(world.home, "up").code == 1

    assert voda(world.home, "down", "--purge").code == 0
    assert list(world.home.iterdir()) == []
    assert voda(world.home, "down").code == 3


def test_engine_ends_what_the_state_does_not_know(own_world: World) -> None:
    """A pod of which nothing is in the store (an older copy was put back) is ended, not left to run unseen."""
    world = own_world.begin()
    pod = world.pod("forgotten", "sleep", "600")
    world.phase("Pod", "forgotten", "Running")
    kill(the_engine(world.home))
    left = parent(world, pod)
    world.store.renew("Pod", ())
    start_engine(world.home)

    assert wait_for_ends([left], LIMIT_S) == set()
    world.pod("next", "true")
    world.phase("Pod", "next", "Succeeded")
    assert not world.folder(pod).exists()


def test_file_that_names_nobody_is_no_process(tmp_path: Path) -> None:
    """What is cut off, of another form, or names a later process with the same pid, names nobody."""
    file = tmp_path / "engine.json"
    for text in ("", "{", "[]", '{"pid": 1}', '{"pid": "x", "ticks": 1}', f'{{"pid": {os.getpid()}, "ticks": 1}}'):
        file.write_text(text)

        assert named_by(file) is None

"""Local mode down: the engine and every pod ended, drivers first, so that jobs leave a checkpoint.

It can be repeated, and works whatever is dead already: engine, a pod's parent process, the store. What it ends it
finds among the processes of the machine, by command line and by the mark that every process of a pod carries. Acts on
processes and folders; ``voda down`` is its caller.
"""

from __future__ import annotations

import os
import shutil
import signal
import time
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from scheduler_core.errors import VodaError
from voda_flows.local.processes import (
    engines_in,
    kill_marked,
    kill_marked_in,
    parent_of,
    parents_in,
    send,
    tell,
    wait_for_ends,
)
from voda_flows.local.single import LOCK, only_one
from voda_flows.local.store import LocalStore
from voda_flows.objects import Object

STOP_LIMIT_S = 10.0
DRAIN_S = 30.0
"""How long jobs may take to write their checkpoints when local mode goes down."""
BEGIN_LIMIT_S = 5.0
GOODBYE_S = 5.0
"""How long workers may take to leave once their drivers have."""
LOOK_S = 0.02
FOLDERS = ("pods", "logs", "volumes", "records", "metrics")
STATE = ("state.db", "state.db-wal", "state.db-shm")
FILES = ("engine.lock", "engine.log", "engine.log.1", "engine.out", "engine.json", "clock.json", LOCK)


@dataclass(frozen=True, slots=True, kw_only=True)
class Down:
    """What ``down`` ended.

    Attributes:
        engine: Whether an engine ran.
        drained: Pods that ended by themselves when asked to.
        killed: Pods that did not in time.
    """

    engine: bool
    drained: int
    killed: int


def down(home: Path, *, drain_s: float = DRAIN_S, stop_s: float = STOP_LIMIT_S, purge: bool = False) -> Down:
    """End the engine and every pod; drivers first, so that jobs leave a checkpoint. What is in the store stays.

    Args:
        home: Folder of the state.
        drain_s: How long pods may take to end by themselves.
        stop_s: How long the engine may; then it is killed.
        purge: Take away the state too, volumes and checkpoints included.

    Raises:
        Unreachable: Another ``up`` or ``down`` does not come to its end.
        VodaError: Something does not end.
    """
    if not is_there(home):
        return Down(engine=False, drained=0, killed=0)
    with only_one(home, must_lock=False):
        engine = _stop_engine(home, stop_s)
        drained, killed = _end_pods(home, drain_s)
        if purge:
            _purge(home)
        return Down(engine=engine, drained=drained, killed=killed)


def is_there(home: Path) -> bool:
    """Whether there is anything of local mode in a home, or anything that runs for it."""
    return any((home / name).exists() for name in (*FOLDERS, *STATE, *FILES)) or bool(engines_in(home))


def _stop_engine(home: Path, stop_s: float) -> bool:
    """End the engine, also one that is only about to start."""
    found = engines_in(home)
    for number, limit_s in ((signal.SIGTERM, stop_s), (signal.SIGKILL, STOP_LIMIT_S)):
        for pid in found:
            send(pid, number)
        if not wait_for_ends(found, limit_s):
            return bool(found)
    raise VodaError(
        f"{home}: expected the engine (pid {found}) to end, it does not even when killed; look at 'ps {found[0]}'"
    )


def _end_pods(home: Path, drain_s: float) -> tuple[int, int]:
    """End all pods: drivers are asked first, the others when these are done."""
    end_s, folders = time.monotonic() + drain_s, _live(home)
    drivers, workers = _with_role(home, folders, "driver"), _with_role(home, folders, "worker")
    if drivers:
        _ask_to_end(drivers, end_s)
        # Their driver has said goodbye to them: they leave by themselves.
        wait_for_ends(_parents(workers), min(GOODBYE_S, max(0.0, end_s - time.monotonic())))
    _ask_to_end(folders, end_s)
    late = [folder for folder in folders if parent_of(folder) is not None]
    for folder in late:
        tell(folder, signal.SIGQUIT)
    wait_for_ends(_parents(late), STOP_LIMIT_S)
    # What was too slow even to begin, or to notice that it has to end.
    stuck = parents_in(home)
    for pid in stuck.values():
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    if left := wait_for_ends(stuck.values(), STOP_LIMIT_S):
        raise VodaError(f"{home}: expected its pods to end, processes {sorted(left)} do not even when killed")
    for folder in {*folders, *stuck}:
        kill_marked(folder.name)
    kill_marked_in(home / "pods")  # what pods left whose own parent process was lost
    killed = len({*late, *stuck})
    return len({*folders, *stuck}) - killed, killed


def _live(home: Path) -> list[Path]:
    """Folders of the pods that live; those that were about to begin have begun."""
    found = parents_in(home)
    end_s = time.monotonic() + BEGIN_LIMIT_S
    while time.monotonic() < end_s and not all((folder / "start.json").exists() for folder in found):
        time.sleep(LOOK_S)
        found = parents_in(home)
    return sorted(found)


def _with_role(home: Path, folders: Iterable[Path], role: str) -> list[Path]:
    """Those of the pods that have a role; none where the store cannot tell."""
    pods: list[Object] = []
    if (home / "state.db").exists():
        with suppress(VodaError):
            pods = LocalStore(home).list("Pod", labels={"voda.dev/role": role})
    uids = {pod["metadata"]["uid"] for pod in pods}
    return [folder for folder in folders if folder.name in uids]


def _ask_to_end(folders: Iterable[Path], end_s: float) -> None:
    """Send SIGTERM to pods and wait for their ends."""
    for folder in folders:
        tell(folder, signal.SIGTERM)
    wait_for_ends(_parents(folders), max(0.0, end_s - time.monotonic()))


def _parents(folders: Iterable[Path]) -> list[int]:
    return [pid for folder in folders if (pid := parent_of(folder)) is not None]


def _purge(home: Path) -> None:
    """Take everything away, the state first: what is left of a purge that was cut off is refused as a state."""
    for name in STATE:
        (home / name).unlink(missing_ok=True)
    for folder in FOLDERS:
        shutil.rmtree(home / folder, ignore_errors=True)
    for name in FILES:
        (home / name).unlink(missing_ok=True)

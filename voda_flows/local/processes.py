"""Finding the engine of a home; finding, telling and ending the processes of pods, also of an engine that is gone.

A pod lives as long as the lock on its folder is held; ``start.json`` there names the process that holds it. What is
left of a pod whose parent was lost is found by the mark in its environment.
"""

from __future__ import annotations

import fcntl
import json
import os
import select
import signal
import time
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from voda_flows.local import pod
from voda_flows.local.launch import MARK


def is_held(lock: Path) -> bool:
    """Whether a living process holds the lock (flock) on this file; none holds one that is not there."""
    try:
        handle = os.open(lock, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return False
    try:
        fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(handle)
    return False


def parent_of(folder: Path) -> int | None:
    """The pid of the process that runs the pod of a folder, while it lives."""
    return named_by(folder / "start.json")


def named_by(file: Path) -> int | None:
    """The pid of the process that a file (``pid`` and start in ``ticks``) names, while it lives."""
    try:
        start = json.loads(file.read_text())
        stat = Path(f"/proc/{start['pid']}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return None
    fields = stat.rpartition(")")[2].split()
    same = int(fields[19]) == start["ticks"] and fields[0] != "Z"
    return int(start["pid"]) if same else None


def lock_path(home: Path) -> Path:
    """The file that the engine of a home holds locked."""
    return home / "engine.lock"


def is_running(home: Path) -> bool:
    """Whether an engine serves this home."""
    return is_held(lock_path(home)) and named_by(home / "engine.json") is not None


def parents_in(home: Path) -> dict[Path, int]:
    """The pod processes of a home by their folders, found by their command lines: also those that just begin."""
    found: dict[Path, int] = {}
    for process in Path("/proc").iterdir():
        if not process.name.isdigit():
            continue
        try:
            words = (process / "cmdline").read_bytes().decode(errors="replace").split("\0")[:-1]
        except OSError:  # it ended meanwhile
            continue
        if len(words) > 2 and words[-2] == pod.__file__ and Path(words[-1]).parent == home / "pods":
            found[Path(words[-1])] = int(process.name)
    return found


def tell(folder: Path, number: signal.Signals) -> bool:
    """Send a signal to the pod's parent process; false where it has ended (or not begun)."""
    pid = parent_of(folder)
    if pid is None:
        return False
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        return False
    return True


def kill_marked(uid: str) -> int:
    """Kill every process that belongs to a pod; for one whose parent process was lost.

    Returns:
        How many were killed.
    """
    wanted, killed = f"{MARK}={uid}".encode(), set[int]()
    # Once more after each kill: a process may have forked between being seen and being killed.
    while new := {pid for pid in _marked(wanted) if pid not in killed}:
        for pid in new:
            killed.add(pid)
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                continue
    return len(killed)


def wait_for_ends(pids: Iterable[int], limit_s: float) -> set[int]:
    """Wait until processes have ended.

    Args:
        pids: Their pids.
        limit_s: How long to wait at most; 0 only looks.

    Returns:
        The pids of those that have not ended in time.
    """
    handles: dict[int, int] = {}
    for pid in pids:
        with suppress(ProcessLookupError):
            handles[os.pidfd_open(pid)] = pid
    end_s = time.monotonic() + limit_s
    try:
        while handles:
            ended = select.select(list(handles), [], [], max(0.0, end_s - time.monotonic()))[0]
            if not ended:
                break
            for handle in ended:
                os.close(handle)
                del handles[handle]
        return set(handles.values())
    finally:
        for handle in handles:
            os.close(handle)


def _marked(wanted: bytes) -> list[int]:
    found = []
    for process in Path("/proc").iterdir():
        if not process.name.isdigit():
            continue
        try:
            environment = (process / "environ").read_bytes()
        except OSError:  # it ended, or is somebody else's
            continue
        if wanted in environment.split(b"\0"):
            found.append(int(process.name))
    return found

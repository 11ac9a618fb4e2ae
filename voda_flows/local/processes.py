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
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from pathlib import Path

from voda_flows.local import pod
from voda_flows.local.launch import MARK

ENGINE = "voda_flows.local.engine"


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
        fields = stat.rpartition(")")[2].split()
        same = int(fields[19]) == start["ticks"] and fields[0] != "Z"
        return int(start["pid"]) if same else None
    except (FileNotFoundError, ProcessLookupError):
        return None
    except (KeyError, TypeError, ValueError):  # not written by us, or cut off: it names nobody
        return None


def lock_path(home: Path) -> Path:
    """The file that the engine of a home holds locked."""
    return home / "engine.lock"


def is_running(home: Path) -> bool:
    """Whether an engine serves this home."""
    return is_held(lock_path(home)) and named_by(home / "engine.json") is not None


def is_stopped(pid: int) -> bool:
    """Whether a process was stopped (SIGSTOP, Ctrl-Z, a debugger) and waits to be woken; no for one that is gone."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] in ("T", "t")
    except (FileNotFoundError, ProcessLookupError):
        return False


def engines_in(home: Path) -> list[int]:
    """The engine processes of a home, found by their command lines: also one that just begins, or that hangs.

    What an engine has just forked has its command line until it becomes a pod: it is none.
    """
    found = {pid for pid, words in _command_lines() if words[-2:] == [ENGINE, str(home)]}
    return sorted(pid for pid in found if _parent(pid) not in found)


def parents_in(home: Path) -> dict[Path, int]:
    """The pod processes of a home by their folders, found by their command lines: also those that just begin."""
    return {
        Path(words[-1]): pid
        for pid, words in _command_lines()
        if len(words) > 2 and words[-2] == pod.__file__ and Path(words[-1]).parent == home / "pods"
    }


def _parent(pid: int) -> int | None:
    """The pid of the process that started another; none where that one has ended."""
    try:
        return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
    except (FileNotFoundError, ProcessLookupError):
        return None


def _command_lines() -> Iterator[tuple[int, list[str]]]:
    """Pid and command line of every process."""
    for process in Path("/proc").iterdir():
        if process.name.isdigit():
            with suppress(OSError):  # it ended meanwhile
                text = (process / "cmdline").read_bytes().decode(errors="replace")
                yield int(process.name), text.split("\0")[:-1]


def tell(folder: Path, number: signal.Signals) -> bool:
    """Send a signal to the pod's parent process; false where it has ended (or not begun)."""
    pid = parent_of(folder)
    return pid is not None and send(pid, number)


def send(pid: int, number: signal.Signals) -> bool:
    """Send a signal that a stopped process hears too: it is woken to hear it; false where it has ended.

    Args:
        pid: The process.
        number: The signal; SIGCONT only wakes.
    """
    try:
        os.kill(pid, number)
        os.kill(pid, signal.SIGCONT)
    except ProcessLookupError:
        return False
    return True


def kill_marked(uid: str) -> int:
    """Kill every process that belongs to a pod; for one whose parent process was lost.

    Returns:
        How many were killed.
    """
    return _kill(lambda owner: owner == uid)


def kill_marked_in(pods: Path) -> int:
    """Kill every process that belongs to a pod with a folder here.

    Returns:
        How many were killed.
    """
    uids = {folder.name for folder in pods.iterdir()} if pods.is_dir() else set()
    return _kill(uids.__contains__) if uids else 0


def _kill(is_meant: Callable[[str], bool]) -> int:
    killed = set[int]()
    # Once more after each kill: a process may have forked between being seen and being killed.
    while new := {pid for pid, owner in _marked() if is_meant(owner) and pid not in killed}:
        for pid in new:
            killed.add(pid)
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
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


def _marked() -> Iterator[tuple[int, str]]:
    """Pid and pod of every process that belongs to one."""
    mark = f"{MARK}=".encode()
    for process in Path("/proc").iterdir():
        if not process.name.isdigit():
            continue
        try:
            environment = (process / "environ").read_bytes()
        except OSError:  # it ended, or is somebody else's
            continue
        for variable in environment.split(b"\0") if mark in environment else ():
            if variable.startswith(mark):
                yield int(process.name), variable.removeprefix(mark).decode(errors="replace")

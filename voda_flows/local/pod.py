"""One pod: the small parent process that runs a pod's container and outlives the engine.

Run as ``python -S -E pod.py FOLDER``; imports nothing but the standard library, so that it starts at once. The folder:

- ``pod.json`` (in): command, environment, working folder, time limits, what to collect (``launch.py`` writes it);
- ``lock``: held (flock) for as long as this process lives;
- ``start.json`` (out): pid and start; a folder that has one is never run again;
- ``main.log`` (out): what the container printed;
- ``exit.json`` (out): exit code and outputs, written whole or not at all, once no process of the pod is left; on a full
  disk this process stays until there is room, because an end that was not written down would be lost.

SIGTERM is handed on to the container, and after the grace period everything is killed; SIGQUIT kills at once.
"""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import json
import math
import os
import select
import shutil
import signal
import sys
import time
from pathlib import Path
from typing import Any

PR_SET_PDEATHSIG, PR_SET_CHILD_SUBREAPER = 1, 36
LOCK_TRIES, LOCK_PAUSE_S = 20, 0.05
"""Whoever looks whether a lock is held takes it for a moment: trying for a second tells that from a living holder."""
RESULT_LIMIT_BYTES = 256 * 1024
NOT_STARTED = 64
"""The exit code of Argo's executor where a command cannot be started."""
CHUNK_BYTES = 65536
WRITE_PAUSE_S = 0.5
HANDLED = (signal.SIGTERM, signal.SIGQUIT, signal.SIGCHLD, signal.SIGINT)


def main(folder: Path) -> int:
    """Run the pod of a folder to its end."""
    lock = take_lock(folder / "lock")
    if lock is None or (folder / "start.json").exists():
        return 0
    spec = json.loads((folder / "pod.json").read_text())
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    container = Container(folder, spec)
    write_whole(folder / "start.json", {"pid": os.getpid(), "ticks": start_ticks(), "startedAt": container.now()})
    write_at_last(folder / "exit.json", container.run())
    return 0


def take_lock(path: Path) -> int | None:
    """The open lock, held until this process ends, or none where another process holds it."""
    lock = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    for _ in range(LOCK_TRIES):
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            time.sleep(LOCK_PAUSE_S)
        else:
            return lock
    return None


def start_ticks() -> int:
    """When this process began, in the kernel's ticks: tells it from a later one with its pid."""
    text = Path("/proc/self/stat").read_text()
    return int(text.rpartition(")")[2].split()[19])


def now(offset_s: float) -> str:
    """The time as RFC 3339 with microseconds, by the engine's clock (``clock.py``): so long after the boot."""
    ns = time.clock_gettime_ns(time.CLOCK_BOOTTIME) + round(offset_s * 10**9)
    return f"{time.strftime('%Y-%m-%dT%H:%M:%S', time.gmtime(ns // 10**9))}.{ns // 1000 % 10**6:06d}Z"


def write_whole(path: Path, content: dict[str, Any]) -> None:
    """Write a file so that it is seen whole or not at all, also after a loss of power."""
    partial = path.with_name(path.name + ".partial")
    with partial.open("w") as file:
        json.dump(content, file)
        file.flush()
        os.fsync(file.fileno())
    partial.rename(path)
    folder = os.open(path.parent, os.O_RDONLY)
    os.fsync(folder)
    os.close(folder)


def write_at_last(path: Path, content: dict[str, Any]) -> None:
    """Write a file whole, again and again until it is written, or its folder was taken away."""
    while path.parent.exists():
        try:
            write_whole(path, content)
        except OSError:
            time.sleep(WRITE_PAUSE_S)
        else:
            return


class Container:
    """The pod's command as a child process, and all that it leaves behind."""

    def __init__(self, folder: Path, spec: dict[str, Any]) -> None:
        self.spec = spec
        self.log = os.open(folder / "main.log", os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        self.status: int | None = None
        self.result: list[bytes] = []
        self.pid = 0
        self.kill_at_s: float | None = None
        self.end_at_s = time.monotonic() + (math.inf if spec["deadline_s"] is None else spec["deadline_s"])
        self.reason = ""
        self.stdout: int | None = None

    def run(self) -> dict[str, Any]:
        """Start it, wait for its end, end what it left, and say how it went."""
        problem = self._problem()
        if problem:
            self._log((problem + "\n").encode())
            return {"exitCode": NOT_STARTED, "reason": "", "message": problem, "finishedAt": self.now(), "outputs": {}}
        wake, wake_in = os.pipe()
        os.set_blocking(wake_in, False)
        signal.set_wakeup_fd(wake_in, warn_on_full_buffer=False)
        for number in HANDLED:
            signal.signal(number, lambda *_: None)
        self._start()
        while self.status is None:
            self._wait(wake)
        end_children()
        while self.stdout is not None:
            self._keep()
        code = self.status >> 8 if self.status & 0x7F == 0 else 128 + (self.status & 0x7F)
        end = {"exitCode": code, "reason": self.reason, "message": "", "finishedAt": self.now()}
        return {**end, "outputs": self._outputs()}

    def now(self) -> str:
        """The moment, for those who read the folder."""
        return now(self.spec["clock_s"])

    def _log(self, content: bytes) -> None:
        """Write to the log; on a full disk lines are lost there, and nothing else."""
        with contextlib.suppress(OSError):
            os.write(self.log, content)

    def _problem(self) -> str:
        """Why the command cannot be started, in the words of Argo's executor, or nothing."""
        name, path = self.spec["command"][0], self.spec["env"].get("PATH", os.defpath)
        if not Path(self.spec["cwd"]).is_dir():
            return f"chdir {self.spec['cwd']}: no such file or directory"
        os.chdir(self.spec["cwd"])
        if shutil.which(name, path=path) is None:
            return f'failed to find name in PATH: exec: "{name}": executable file not found in $PATH'
        return ""

    def _start(self) -> None:
        """Start the command; standard output goes through this process only where it is to be kept.

        What comes that way stands in the log up to a millisecond after what standard error said at the same time.
        """
        self.stdout, writing = os.pipe() if self.spec["result"] else (None, None)
        parent = os.getpid()
        # Blocked until the child has the default actions again: no signal is lost in between.
        signal.pthread_sigmask(signal.SIG_BLOCK, HANDLED)
        self.pid = os.fork()
        if self.pid == 0:
            try:
                self._become_command(parent, self.log if writing is None else writing)
            finally:
                os._exit(NOT_STARTED)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, HANDLED)
        if writing is not None:
            os.close(writing)

    def _become_command(self, parent: int, stdout: int) -> None:
        signal.set_wakeup_fd(-1)
        for number in (*HANDLED, signal.SIGPIPE):
            signal.signal(number, signal.SIG_DFL)
        os.setpgid(0, 0)
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0)
        if os.getppid() != parent:  # it died before the line above
            return
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        os.dup2(stdout, 1)
        os.dup2(self.log, 2)
        signal.pthread_sigmask(signal.SIG_SETMASK, set())
        try:
            os.execvpe(self.spec["command"][0], self.spec["command"], self.spec["env"])  # noqa: S606 - as asked
        except OSError as error:
            os.write(2, f"cannot start {self.spec['command'][0]}: {error.strerror}\n".encode())

    def _wait(self, wake: int) -> None:
        """Wait for a signal, for output or for a time limit, and deal with it."""
        limit_s = min(self.end_at_s, math.inf if self.kill_at_s is None else self.kill_at_s)
        left_s = None if limit_s == math.inf else max(0.0, limit_s - time.monotonic())
        ready = select.select([wake] if self.stdout is None else [wake, self.stdout], [], [], left_s)[0]
        if self.stdout in ready:
            self._keep()
        if wake in ready:
            for number in os.read(wake, 512):
                self._handle(number)
        if self.kill_at_s is not None and time.monotonic() >= self.kill_at_s:
            self._signal(signal.SIGKILL)
            self.kill_at_s = None
        if time.monotonic() >= self.end_at_s:
            self.end_at_s, self.reason = math.inf, "DeadlineExceeded"
            self._handle(signal.SIGTERM)

    def _handle(self, number: int) -> None:
        if number == signal.SIGCHLD:
            self._reap()
        elif number == signal.SIGQUIT:
            self._signal(signal.SIGKILL)
        else:
            self._signal(signal.SIGTERM)
            if self.kill_at_s is None:
                self.kill_at_s = time.monotonic() + self.spec["grace_s"]

    def _signal(self, number: int) -> None:
        if self.status is None:  # not reaped: the pid is still the container's
            os.kill(self.pid, number)

    def _reap(self) -> None:
        """Take the ends of the container and of orphans that were handed to this process."""
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if pid == 0:
                return
            if pid == self.pid:
                self.status = status

    def _keep(self) -> None:
        """Take a piece of standard output, until all its writers have closed it."""
        assert self.stdout is not None
        chunk = os.read(self.stdout, CHUNK_BYTES)
        if not chunk:
            os.close(self.stdout)
            self.stdout = None
            return
        self._log(chunk)
        if sum(map(len, self.result)) < RESULT_LIMIT_BYTES:
            self.result.append(chunk)

    def _outputs(self) -> dict[str, Any]:
        """What the container left: declared files that are there, standard output; without a last line's end."""
        outputs: dict[str, Any] = {"parameters": {}}
        for name, path in self.spec["parameters"].items():
            try:
                outputs["parameters"][name] = as_text(Path(path).read_bytes())
            except OSError:
                continue  # not there: whoever declared it has a default, or an error to tell
        if self.spec["result"]:
            outputs["result"] = as_text(b"".join(self.result)[:RESULT_LIMIT_BYTES])
        return outputs


def as_text(content: bytes) -> str:
    """The text without one newline at its end, as Argo takes outputs."""
    text = content.decode(errors="replace")
    return text.removesuffix("\n")


def end_children() -> None:
    """Kill every process that descends from this one: as a subreaper it inherits what its children leave behind."""
    while True:
        for pid in children():
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                continue
        try:
            os.waitpid(-1, 0)
        except ChildProcessError:
            return


def children() -> list[int]:
    """The pids of this process's children."""
    mine = str(os.getpid())
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except OSError:
            continue  # it ended meanwhile
        if fields[1] == mine:
            found.append(int(stat.parent.name))
    return found


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))

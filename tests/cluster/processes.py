"""Starts, watches and ends the parts of a cluster: plain processes that outlive whoever started them.

A part is a command with a name. Its record holds the process id and the time of its start, written by the process
itself before it becomes the program: however a start is interrupted, what runs is known, and no foreign process that
was given the same id later is ever touched. Parts inside a machine are started through ``nsenter``, which stays and
waits: the program is its child.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import subprocess
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from tests.cluster.faults import ClusterError
from tests.cluster.places import Home

DEATH_LIMIT_S = 30.0
LOOK_AGAIN_S = 0.05
TAIL_LINES = 15
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
# "$1" is the record, "$2" the log, the rest the command. Field 22 of stat is the start, and stays the same over exec.
BECOME = """
line="$$ $(cut -d' ' -f22 /proc/$$/stat)"
record=$1; log=$2; shift 2
echo "$line" >"$record.new" && mv "$record.new" "$record" && exec "$@" </dev/null >>"$log" 2>&1
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """One program of the cluster.

    Attributes:
        name: Unique in the cluster; also the name of its log.
        command: Program and arguments.
        machine: The machine that it runs in; None for a machine itself.
        environment: Added to an otherwise empty environment.
        is_ready: Whether it does its work now.
        ready_limit_s: How long it may take until then.
    """

    name: str
    command: tuple[str, ...]
    machine: str | None
    environment: Mapping[str, str] = field(default_factory=dict)
    is_ready: Callable[[], bool]
    ready_limit_s: float = 180.0


class Processes:
    """The processes of one cluster, by the names of their parts."""

    def __init__(self, home: Home) -> None:
        self._home = home

    def start(self, part: Part) -> None:
        """Start a part's process, which must not run; returns when it has become its program.

        Raises:
            ClusterError: It could not be started, or its machine does not run.
        """
        self._home.records.mkdir(parents=True, exist_ok=True)
        self._home.logs.mkdir(parents=True, exist_ok=True)
        record, log = self._record(part.name), self.log(part.name)
        command = [*self._entering(part), *part.command]
        starter = ["setsid", "--fork", "sh", "-c", BECOME, "sh", str(record), str(log), *command]
        environment = {"PATH": PATH, "HOME": "/root", **part.environment}
        with log.open("a", encoding="utf-8") as output:
            # The pipe ends when the process has become its program: only then is the record sure to be there.
            done = subprocess.run(
                starter, env=environment, cwd="/", stdout=subprocess.PIPE, stderr=output, stdin=subprocess.DEVNULL,
                check=False,
            )  # fmt: skip
        if done.returncode or not record.exists():
            raise ClusterError(f"{part.name}: expected its process to start, it did not; see {log}")

    def pid(self, name: str) -> int | None:
        """Process id of a part's program, as this machine counts; None where it does not run."""
        outer = self._outer(name)
        return None if outer is None else next(iter(children(outer)), outer)

    def is_alive(self, name: str) -> bool:
        """Whether a part's process runs."""
        return self._outer(name) is not None

    def kill(self, *names: str) -> None:
        """End parts at once (``kill -9``), and with a machine all that runs in it; returns when they are gone.

        Args:
            names: The parts; a machine before what was started in it, all of which has to be named too.

        Raises:
            ClusterError: One is still there after half a minute.
        """
        doomed: list[int] = []
        for outer in filter(None, map(self._outer, names)):
            # What waits for a program dies with it: it may have been stopped (SIGSTOP), and a machine's holder ends
            # only when all that ran there has been buried by those who wait for it.
            doomed += [*children(outer), outer]
        _signal(doomed, signal.SIGKILL)
        for pid in doomed:
            if not wait_for_end(pid, DEATH_LIMIT_S):
                raise ClusterError(f"{names}: expected process {pid} to end within {DEATH_LIMIT_S:.0f} s of SIGKILL")
        for name in names:
            self._record(name).unlink(missing_ok=True)

    def stop(self, name: str, *, grace_s: float = 5.0) -> None:
        """Ask a part to end (SIGTERM), and make it end when it has not after ``grace_s``.

        Raises:
            ClusterError: It is still there after half a minute more.
        """
        outer = self._outer(name)
        if outer is not None:
            _signal(children(outer) or [outer], signal.SIGTERM)
            wait_for_end(outer, grace_s)
        self.kill(name)

    def wait_until_ready(self, part: Part) -> None:
        """Wait until a started part does its work.

        Raises:
            ClusterError: It ended before, or was not ready in time; with the end of its log.
        """
        deadline_s = time.monotonic() + part.ready_limit_s
        while not part.is_ready():
            outer = self._outer(part.name)
            if outer is None or wait_for_end(outer, LOOK_AGAIN_S):
                raise ClusterError(f"{part.name}: expected it to run, it ended\n{self.tail(part.name)}")
            if time.monotonic() > deadline_s:
                expected = f"expected it to be ready within {part.ready_limit_s:.0f} s, it is not"
                raise ClusterError(f"{part.name}: {expected}\n{self.tail(part.name)}")

    def recorded(self) -> list[str]:
        """Names of all parts that were ever started and not ended by us."""
        return sorted(path.name for path in self._home.records.glob("*") if not path.name.endswith(".new"))

    def log(self, name: str) -> Path:
        """The log of a part."""
        return self._home.logs / f"{name}.log"

    def tail(self, name: str) -> str:
        """The end of a part's log and where the rest is."""
        with contextlib.suppress(OSError):
            lines = self.log(name).read_text(encoding="utf-8", errors="replace").splitlines()[-TAIL_LINES:]
            return "\n".join([*lines, f"(from {self.log(name)})"])
        return f"(there is no {self.log(name)})"

    def _record(self, name: str) -> Path:
        return self._home.records / name

    def _entering(self, part: Part) -> list[str]:
        if part.machine is None:
            return []
        init = self.pid(part.machine)
        if init is None:
            raise ClusterError(f"{part.name}: expected machine {part.machine} to run, it does not; start it first")
        return ["nsenter", "--target", str(init), "--all", "--"]

    def _outer(self, name: str) -> int | None:
        """The recorded process: the program itself, or what entered the machine and waits for it there."""
        try:
            pid, start = self._record(name).read_text(encoding="ascii").split()
        except (OSError, ValueError):
            return None
        return int(pid) if _start_time(int(pid)) == start else None


def children(pid: int) -> list[int]:
    """The living children of a process."""
    try:
        return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="ascii").split()]
    except OSError:
        return []


def wait_for_end(pid: int, limit_s: float) -> bool:
    """Wait until a process ends; returns whether it did."""
    try:
        descriptor = os.pidfd_open(pid)
    except ProcessLookupError:
        return True
    try:
        ended = select.poll()
        ended.register(descriptor, select.POLLIN)
        return bool(ended.poll(limit_s * 1000))
    finally:
        os.close(descriptor)


def _start_time(pid: int) -> str | None:
    """Start of a process in ticks since boot; None where there is none, or only what is left for its parent to read."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
    except OSError:
        return None
    return None if fields[0] in "ZX" else fields[19]


def _signal(pids: list[int], number: signal.Signals) -> None:
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, number)

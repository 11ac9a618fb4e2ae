"""One job's driver and agents as plain processes on loopback addresses, without scheduler or engine.

The test plays the scheduler: it writes the allocation document. Every pod has an address of its own in 127.0.0.0/8,
as in local mode; waits are for events (a status, a line of a log, an end) with a deadline.
"""

from __future__ import annotations

import contextlib
import functools
import itertools
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.request
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.e2e.agents import AgentProcess, WarmAgents

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

ROOT = Path(__file__).resolve().parents[2]
TRAIN = f"python {ROOT}/tests/e2e/train_tiny.py"
FOREVER = f"{TRAIN} 100000 0.02"
KEY = "5e" * 32
WARM_LIMIT_S = 90.0
EVENT_LIMIT_S = 30.0
_JOBS = itertools.count(os.getpid() % 200)  # an address block per job, so that tests do not meet
_NET = 64 + os.getpid() % 128  # nor those of two runs, nor local mode's pods
_LOOK_S = 0.01


class Pod:
    """A process with an address and a log."""

    def __init__(self, process: subprocess.Popen[bytes] | AgentProcess, address: str, log: Path) -> None:
        self.process = process
        self.address = address
        self.log = log

    def text(self) -> str:
        """Its log so far."""
        return self.log.read_text(errors="replace")

    def wait(self, limit_s: float = EVENT_LIMIT_S) -> int:
        """Its exit code."""
        try:
            return self.process.wait(limit_s)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"{self.log.name} did not end in {limit_s:g} s:\n{self.text()}") from None

    def kill(self) -> None:
        """End it at once."""
        with contextlib.suppress(ProcessLookupError):
            self.process.send_signal(signal.SIGKILL)
        self.process.wait()

    def ranks(self) -> list[int]:
        """Process ids of its children."""
        path = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children")
        return [int(pid) for pid in path.read_text().split()]


class Job:
    """A job: key, command, agents, drivers, document.

    Args:
        agents: what warm agents are forked from; None to start real ones.
        folder: for logs, checkpoints and the document; made by the caller.
        command: what the ranks run.
        settings: further variables of agents and drivers.
    """

    def __init__(self, agents: WarmAgents | None, folder: Path, command: str, **settings: str) -> None:
        self.folder = folder
        self._block = next(_JOBS) % 250 + 1
        self._numbers = itertools.count(2)
        self._agents = agents
        key_file = folder / "key"
        key_file.write_text(KEY)
        self._shared = {
            "VODA_JOB": "uid/train", "VODA_SEGMENT": "0", "VODA_KEY_FILE": str(key_file), "VODA_COMMAND": command,
            "VODA_CHECKPOINT_ROOT": str(folder / "checkpoints"), "VODA_AGENT_TIMEOUT": "4", **settings,
        }  # fmt: skip
        self.workers: dict[str, Pod] = {}
        self.pods: list[Pod] = []
        self.document = folder / "allocation"
        self.generation = 0

    def end_json(self) -> dict[str, Any]:
        """How the segment ended."""
        found: dict[str, Any] = json.loads((self.segment / "end.json").read_text())
        return found

    def started(self, *workers: str, **allocation: Any) -> Pod:
        """A driver that trains with these workers."""
        for worker in workers:
            self.agent(worker)
        driver = self.driver()
        self.await_warm(*workers)
        self.allocate(*workers, **allocation)
        until_acknowledged(driver, self.generation)
        return driver

    @property
    def segment(self) -> Path:
        """The present segment's folder."""
        return self.folder / "checkpoints" / f"segment-{self._shared['VODA_SEGMENT']}"

    def agent(self, worker: str, **settings: str) -> Pod:
        """Start an agent; it is not warm yet."""
        pod = self._pod("agent", worker, {"VODA_WORKER": worker, **settings})
        self.workers[worker] = pod
        return pod

    def driver(self, uid: str = "driver-1", **settings: str) -> Pod:
        """Start a driver."""
        allocation = {"VODA_POD_UID": uid, "VODA_ALLOCATION_FILE": str(self.document), "VODA_EPOCHS": "1"}
        return self._pod("driver", uid, {**allocation, "ARGO_PROGRESS_FILE": str(self.folder / "progress"), **settings})

    def allocate(self, *workers: str, uid: str = "driver-1", stop: str | None = None, **changes: Any) -> float:
        """Write the document's next generation; when it was there (seconds since the epoch)."""
        self.generation += 1
        slots = changes.pop("slots", 1)
        body = {
            "version": 1, "job": "uid/train", "driver_uid": uid, "segment": int(self._shared["VODA_SEGMENT"]),
            "generation": self.generation, "min_workers": 1, "stop": stop,
            "workers": [{"id": worker, "role": "worker", "address": self.workers[worker].address, "node": "n0",
                         "slots": slots} for worker in workers],
            **changes,
        }  # fmt: skip
        beside = self.document.with_suffix(".new")
        beside.write_text(json.dumps(body))
        beside.replace(self.document)
        return time.time()

    def await_warm(self, *workers: str) -> None:
        """Wait until these agents listen."""
        for worker in workers:
            pod = self.workers[worker]
            until(functools.partial(_listens, pod), f"agent {worker} warm", pod, WARM_LIMIT_S)

    def pids(self, worker: str) -> list[int]:
        """Process ids of a worker's ranks."""
        return self.workers[worker].ranks()

    def end(self) -> None:
        """End every process of the job."""
        for pod in self.pods:
            pod.kill()

    def _pod(self, kind: str, name: str, settings: dict[str, str]) -> Pod:
        address = f"127.{_NET}.{self._block}.{next(self._numbers)}"
        log = self.folder / f"{kind}-{name}.log"
        environment = {**self._shared, "VODA_POD_IP": address, **settings}
        if kind == "agent" and self._agents is not None:
            pod = Pod(self._agents.start(environment, log, self.folder), address, log)
        else:
            pod = Pod(_start(f"voda_flows.runtime.{kind}", environment, log), address, log)
        self.pods.append(pod)
        return pod


def _start(module: str, environment: dict[str, str], log: Path) -> subprocess.Popen[bytes]:
    with log.open("ab") as file:
        return subprocess.Popen(
            [sys.executable, "-m", module],
            env={**os.environ, "PYTHONPATH": str(ROOT), **environment},
            cwd=log.parent,
            stdout=file,
            stderr=subprocess.STDOUT,
        )


def status(driver: Pod) -> dict[str, Any]:
    """The driver's status; empty while it does not answer."""
    try:
        with urllib.request.urlopen(f"http://{driver.address}:7071/status", timeout=2) as answer:
            found: dict[str, Any] = json.load(answer)
            return found
    except OSError:
        return {}


def until_status(
    driver: Pod, holds: Callable[[dict[str, Any]], bool], what: str, *, look_s: float = _LOOK_S
) -> dict[str, Any]:
    """Wait until the driver's status is as wanted, looking every ``look_s`` seconds; that status."""
    latest: list[dict[str, Any]] = [{}]

    def look() -> bool:
        latest[0] = status(driver)
        return bool(latest[0]) and holds(latest[0])

    until(look, what, driver, look_s=look_s)
    return latest[0]


def until_acknowledged(driver: Pod, generation: int, *, look_s: float = _LOOK_S) -> dict[str, Any]:
    """Wait until training goes on at a generation's size, its resize record closed; the status."""

    def holds(found: dict[str, Any]) -> bool:
        return bool(found["generation"] == generation and found["resizes"][-1]["generation"] == generation)

    return until_status(driver, holds, f"generation {generation} in effect", look_s=look_s)


def until(
    holds: Callable[[], bool], what: str, pod: Pod, limit_s: float = EVENT_LIMIT_S, *, look_s: float = _LOOK_S
) -> None:
    """Wait for an event; fails with the log of ``pod`` when it does not come in time, or ``pod`` ends before."""
    pause = threading.Event()
    deadline_s = time.monotonic() + limit_s
    while not holds():
        ended = pod.process.poll() is not None and not holds()
        if ended or time.monotonic() > deadline_s:
            raise AssertionError(f"{what}: did not come{' before its end' if ended else ''}\n{pod.text()}")
        pause.wait(look_s)


def lives(pid: int) -> bool:
    """Whether a process runs (one that has ended may stay listed until somebody asks for its exit code)."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except FileNotFoundError:
        return False


@contextlib.contextmanager
def job(agents: WarmAgents | None, folder: Path, command: str, **settings: str) -> Iterator[Job]:
    """A job whose processes are ended at the end of the block."""
    made = Job(agents, folder, command, **settings)
    try:
        yield made
    finally:
        made.end()


def _listens(pod: Pod) -> bool:
    with socket.socket() as probe:
        probe.settimeout(0.2)
        return probe.connect_ex((pod.address, 7070)) == 0

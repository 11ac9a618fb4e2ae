"""Warm agents by the dozen: one process imports what an agent imports, and every agent of the tests is a fork of it.

A real agent takes 5 CPU seconds to warm up; a fork of a warm process takes milliseconds and is then the same. (One
test starts a real one.) Run as ``python -m tests.e2e.agents``: a line ``{"environment", "log", "folder"}`` on stdin
starts an agent, ``{"pid"}`` on stdout says which; ``{"pid", "code"}`` says that it ended.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import traceback
from pathlib import Path
from typing import Self

ROOT = Path(__file__).resolve().parents[2]
END_LIMIT_S = 30.0


class AgentProcess:
    """An agent as the test sees it; the same calls as ``subprocess.Popen`` where they are needed."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self._code: int | None = None
        self._ended = threading.Event()

    def ended(self, code: int) -> None:
        """Its end is known."""
        self._code = code
        self._ended.set()

    def poll(self) -> int | None:
        """Its exit code, None while it lives."""
        return self._code

    def wait(self, timeout: float = END_LIMIT_S) -> int:
        """Its exit code, when it has ended."""
        if not self._ended.wait(timeout) or self._code is None:
            raise subprocess.TimeoutExpired(f"agent {self.pid}", timeout)
        return self._code

    def send_signal(self, number: int) -> None:
        """Send it a signal, unless it has ended."""
        if self._code is None:
            os.kill(self.pid, number)


class WarmAgents:
    """The process that all agents are forks of."""

    def __init__(self, program: str) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.e2e.agents", program],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self._lock = threading.Lock()
        self._agents: dict[int, AgentProcess] = {}
        self._born = threading.Semaphore(0)
        self._latest = 0
        threading.Thread(target=self._listen, daemon=True).start()

    def start(self, environment: dict[str, str], log: Path, folder: Path) -> AgentProcess:
        """Start an agent."""
        line = json.dumps({"environment": environment, "log": str(log), "folder": str(folder)})
        with self._lock:
            assert self._process.stdin is not None
            self._process.stdin.write(line + "\n")
            self._process.stdin.flush()
            self._born.acquire()
            return self._agents[self._latest]

    def __enter__(self) -> Self:
        """Nothing to do: it warms up by itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """End it."""
        self.close()

    def close(self) -> None:
        """End it, and with it all its agents."""
        self._process.kill()
        self._process.wait()
        for stream in (self._process.stdin, self._process.stdout):
            if stream is not None:
                stream.close()

    def _listen(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            told = json.loads(line)
            if "code" in told:
                self._agents[told["pid"]].ended(told["code"])
            else:
                self._latest = told["pid"]
                self._agents[self._latest] = AgentProcess(self._latest)
                self._born.release()


def _main(program: str) -> None:
    from voda_flows.runtime import agent_warm
    from voda_flows.runtime.program import parse_command, stand_in_place

    os.environ.update(agent_warm.prepare_threads(os.environ))
    import torch._dynamo  # noqa: F401

    import voda_flows.runtime.agent
    import voda_flows.runtime.session  # noqa: F401

    made = parse_command(program)
    assert made is not None
    stand_in_place(made)
    signal.signal(signal.SIGCHLD, lambda _number, _frame: _reap())
    for line in sys.stdin:
        order = json.loads(line)
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGCHLD})
        pid = os.fork()
        if pid == 0:
            _be_agent(order)
        os.write(1, (json.dumps({"pid": pid}) + "\n").encode())
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGCHLD})


def _be_agent(order: dict[str, str | dict[str, str]]) -> None:
    import ctypes

    from voda_flows.runtime import agent

    ctypes.CDLL(None).prctl(1, signal.SIGKILL)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGCHLD})
    log = os.open(str(order["log"]), os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    for target in (1, 2):
        os.dup2(log, target)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.chdir(str(order["folder"]))
    os.environ.update({str(name): str(value) for name, value in dict(order["environment"]).items()})  # type: ignore[arg-type]
    code = 1
    try:
        code = agent.main()
    except BaseException:  # noqa: BLE001 - the interpreter itself would print it and end
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def _reap() -> None:
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return
        if not pid:
            return
        os.write(1, (json.dumps({"pid": pid, "code": os.waitstatus_to_exitcode(status)}) + "\n").encode())


if __name__ == "__main__":
    _main(sys.argv[1])

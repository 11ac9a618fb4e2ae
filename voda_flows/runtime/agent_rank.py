"""One rank as the agent sees it: a forked process, its socket, its end.

The fork runs the user's program with everything imported, or execs the command when it is no Python program. Each
rank leads a session of its own, so that it is ended with all it started, and dies with its agent.
"""

from __future__ import annotations

import atexit
import contextlib
import ctypes
import logging
import os
import signal
import socket
import sys
import traceback
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from voda_flows.runtime.lines import LineBuffer
from voda_flows.runtime.program import run

if TYPE_CHECKING:
    from voda_flows.runtime.program import Program

RANK_FD = "VODA_RANK_FD"
SEND_TIMEOUT_S = 5.0
_NOT_FOR_RANKS = ("VODA_KEY_FILE",)  # a training script has no use for the key
_PR_SET_PDEATHSIG = 1  # linux/prctl.h
_ABORTED = (-signal.SIGABRT, 128 + signal.SIGABRT)


@dataclass(frozen=True)
class RankOrder:
    """What to start.

    Attributes:
        host: Host id of this life of the worker (``w1``, later ``w1.2``).
        slot: Which of the worker's ranks.
        command: The user's command, for an exec.
        program: The same as a program, for a fork; None to exec.
        environment: Variables of the rank beyond the agent's own.
    """

    host: str
    slot: int
    command: str
    program: Program | None
    environment: Mapping[str, str]


class RankProcess:
    """A running rank.

    Attributes:
        host, slot: Which rank it is.
        pid: Its process, the leader of its session.
        connection: The agent's end of its socket.
        lines: What came from it and is not yet a line.
        removed: Whether the driver has taken its host out of the world.
    """

    def __init__(self, order: RankOrder, pid: int, connection: socket.socket) -> None:
        self.host, self.slot = order.host, order.slot
        self.pid = pid
        self.connection = connection
        self.lines = LineBuffer()
        self.removed = False

    def kill(self) -> None:
        """End it and all it started, at once."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.pid, signal.SIGKILL)

    def reap(self) -> int | None:
        """Its exit code when it has ended (negative for a signal), else None."""
        pid, status = os.waitpid(self.pid, os.WNOHANG)
        if not pid:
            return None
        self.kill()  # what it started and left behind
        return os.waitstatus_to_exitcode(status)

    def meaning(self, code: int) -> int:
        """The exit code as the driver should take it: Horovod aborts a rank that was drained, which is no failure."""
        return 0 if self.removed and code in _ABORTED else code


def start_rank(order: RankOrder, close: Sequence[int]) -> RankProcess:
    """Start a rank.

    Args:
        order: What to start.
        close: File descriptors of the agent that the rank must not hold open.
    """
    mine, theirs = socket.socketpair()
    mine.settimeout(SEND_TIMEOUT_S)
    sys.stdout.flush()
    sys.stderr.flush()
    pid = os.fork()
    if pid == 0:
        _become_rank(order, theirs, [*close, mine.fileno()])
    theirs.close()
    return RankProcess(order, pid, mine)


def _become_rank(order: RankOrder, connection: socket.socket, close: Sequence[int]) -> NoReturn:
    """The child's whole life: never returns into the agent's code, whatever happens."""
    code = 1
    try:
        _leave_agent(close)
        os.environ.update(order.environment)
        for name in _NOT_FOR_RANKS:
            os.environ.pop(name, None)
        os.environ[RANK_FD] = str(connection.fileno())
        if order.program is None:
            connection.set_inheritable(True)
            _exec(order.command)
        connection.detach()  # the descriptor is the session's now
        code = _run_program(order.program)
    except BaseException:  # noqa: BLE001 - the interpreter itself would print it and end
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def _exec(command: str) -> NoReturn:
    """Let a shell run the command; ``python`` in it is the interpreter that runs the agent."""
    own = Path(sys.executable).parent
    os.environ["PATH"] = f"{own}{os.pathsep}{os.environ.get('PATH', os.defpath)}"
    os.execv("/bin/sh", ["sh", "-c", command])  # noqa: S606 - the user's own command


def _run_program(program: Program) -> int:
    try:
        return run(program)
    finally:
        atexit._run_exitfuncs()  # noqa: SLF001 - a forked process ends by os._exit, which leaves them out


def _leave_agent(close: Sequence[int]) -> None:
    """Undo what makes this fork an agent, so that the program finds itself in an ordinary new process."""
    os.setsid()
    parent = os.getppid()
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)
    signal.set_wakeup_fd(-1)
    for number in (signal.SIGTERM, signal.SIGCHLD):
        signal.signal(number, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    for descriptor in close:
        os.close(descriptor)
    logging.getLogger().handlers.clear()
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(line_buffering=True)
    numpy = sys.modules.get("numpy")
    if numpy is not None:
        numpy.random.seed()  # two forks of one agent would draw the same numbers

"""Decisions made in a process of their own, so that one that hangs can be ended (docs/adr/0008).

In: what ``scheduler_core.cycle.attempt`` takes. Out: what it gives, or ``StageFailed`` within the time limit, even
where the policy is in an endless loop or in C code that never returns. The process is started anew after it was ended;
it is no copy of this one, so it inherits neither threads nor locks nor an open database.
"""

from __future__ import annotations

import contextlib
import logging
import os
import subprocess
import sys
import time
from multiprocessing.connection import Connection, Pipe

from scheduler_core.errors import StageFailed
from scheduler_core.model.decision import Decision
from scheduler_core.model.observation import Observation
from scheduler_core.model.params import Params
from scheduler_core.model.target import Target

log = logging.getLogger(__name__)

#: Starting Python and reading our code takes some tenths of a second; on a machine that is overrun, longer.
_START_LIMIT_S = 10.0
#: A process whose end of the socket is closed has ended, or is about to.
_END_LIMIT_S = 1.0
#: A search for guilty jobs goes on in the next round when this share of one try's limit is used up, so that one round
#: takes a limit and a half at most and the Lease outlives it.
_SHARE_OF_LIMIT = 0.5
#: Numerical libraries start a thread for each core otherwise, each with memory of its own.
_ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")


class ProcessDecider:
    """See ``scheduler_core.model.ports.Decider``; used by one thread.

    Args:
        limit_s: How long a try may take, seconds.
    """

    def __init__(self, limit_s: float) -> None:
        self.limit_s = limit_s
        self._process: subprocess.Popen[bytes] | None = None
        self._questions: Connection | None = None
        self._is_ready = False
        self._round_began_s = time.monotonic()

    @property
    def pid(self) -> int | None:
        """Process id of whoever decides, None while there is nobody."""
        return self._process.pid if self._process else None

    def start(self) -> None:
        """Start the process where there is none; the first decision need not wait for it then."""
        if self._process is not None:
            return
        ours, theirs = Pipe()
        with contextlib.closing(theirs):
            command = [sys.executable, "-m", "voda_flows.control.decider_process", str(theirs.fileno())]
            environment = {**_ONE_THREAD, **os.environ}
            self._process = subprocess.Popen(
                command, pass_fds=(theirs.fileno(),), stdin=subprocess.DEVNULL, env=environment
            )
        self._questions = ours
        self._is_ready = False

    def begin_round(self) -> None:
        """From now on a round's time is counted."""
        self._round_began_s = time.monotonic()

    def has_time(self) -> bool:
        """See ``scheduler_core.model.ports.Decider``."""
        return time.monotonic() - self._round_began_s < self.limit_s * _SHARE_OF_LIMIT

    def attempt(self, observation: Observation, target: Target, params: Params) -> Decision:
        """See ``scheduler_core.model.ports.Decider``.

        Raises:
            StageFailed: A stage raised, ended the process, or gave no answer in time.
        """
        where = f"policy {params.policy}"
        try:
            self.start()
            if not self._is_ready:
                self._receive(_START_LIMIT_S, f"{where}: expected its process to start")
                self._is_ready = True
            assert self._questions is not None
            self._questions.send((self.limit_s, observation, target, params))
            kind, answer = self._receive(self.limit_s, f"{where}: expected a decision")
        except (OSError, EOFError) as gone:
            raise StageFailed(f"{where}: expected a decision, its process {self._end(_END_LIMIT_S)}") from gone
        if kind == "failed":
            raise StageFailed(str(answer))
        assert isinstance(answer, Decision)
        return answer

    def close(self) -> None:
        """End the process."""
        self._end()

    def _receive(self, limit_s: float, expected: str) -> tuple[str, object]:
        """The next message.

        Raises:
            StageFailed: None within the limit; the process is ended.
            EOFError: The process has ended.
        """
        assert self._questions is not None
        if not self._questions.poll(limit_s):
            self._end()
            raise StageFailed(f"{expected} within {limit_s:g} s, got none: its process was ended")
        kind, answer = self._questions.recv()
        return str(kind), answer

    def _end(self, patience_s: float = 0.0) -> str:
        """End the process, if it does not end by itself, and say how it did."""
        process, questions = self._process, self._questions
        self._process = self._questions = None
        if questions is not None:
            questions.close()
        if process is None:
            return "was not there"
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(patience_s)
        process.kill()
        code = process.wait()
        log.info("decider=ended pid=%d exit=%d", process.pid, code)
        return f"ended by signal {-code}" if code < 0 else f"ended with exit code {code}"

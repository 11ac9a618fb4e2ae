"""The process that decides: ``python -m voda_flows.control.decider_process FD``, kept by ``decider.py``.

In: questions over an inherited socket: the limit, the observation, the target and the settings. Out: the decision, or
what went wrong, in words. A policy is foreign code: here it can be ended whatever it does. The kernel's alarm ends the
process even where nobody is left to do so and Python does not get to run.
"""

from __future__ import annotations

import signal
import sys
from multiprocessing.connection import Connection

from scheduler_core.cycle import attempt
from scheduler_core.deciding.search import fault_text

#: Whoever asked ends this process at its limit; the alarm is for when he is gone himself.
_SPARE_S = 5.0


def serve(questions: Connection) -> None:
    """Answer until nobody asks any more."""
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    questions.send(("ready", None))
    while True:
        try:
            limit_s, observation, target, params = questions.recv()
        except EOFError:
            return
        signal.setitimer(signal.ITIMER_REAL, limit_s + _SPARE_S)
        try:
            answer: tuple[str, object] = ("decided", attempt(observation, target, params))
        except Exception as broken:  # noqa: BLE001 -- whatever a policy raises is an answer
            answer = ("failed", fault_text(broken))
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        questions.send(answer)


if __name__ == "__main__":
    # Signals of the terminal and of the pod are for the scheduler, which ends this process by closing the socket.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    serve(Connection(int(sys.argv[1])))

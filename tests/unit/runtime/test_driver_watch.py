"""The driver's watch, around a process that beats and then does not."""

from __future__ import annotations

import os
import signal

import pytest

from voda_flows.runtime.driver_watch import Watch


def _driver(limit_s: float, *, freezes: bool) -> int:
    """A process with a watch of its own that beats once; then it stops itself, or closes the watch; how it ended."""
    pid = os.fork()
    if pid == 0:
        watch = Watch(limit_s)
        watch.beat()
        if freezes:
            os.kill(os.getpid(), signal.SIGSTOP)
        watch.close()
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


@pytest.mark.parametrize(("limit_s", "freezes", "code"), [(0.2, True, -signal.SIGKILL), (1000.0, False, 0)])
def test_a_driver_that_stands_still_is_ended(limit_s: float, freezes: bool, code: int) -> None:
    """A frozen process cannot end itself; one that closes its watch is left alone, and waits for nothing."""
    assert _driver(limit_s, freezes=freezes) == code


def test_the_watch_ends_with_its_driver() -> None:
    """However the driver ends: its end of the pipe goes with it, and with that the watch."""
    reading, writing = os.pipe()  # the watch holds a copy of the end that is written to, for as long as it lives
    pid = os.fork()
    if pid == 0:
        Watch(1000.0)
        os._exit(3)
    os.close(writing)

    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 3
    assert os.read(reading, 1) == b""
    os.close(reading)

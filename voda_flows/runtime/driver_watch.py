"""The driver's watch: a small process beside it that ends it when its loop has stood still for long.

A driver that is frozen (SIGSTOP) or stuck answers nobody and would keep its job for ever: its agents leave, its pod
stays. In: a beat of each turn of the loop, over a pipe. Out: SIGKILL after the limit, so that the pod fails and the
job goes on from its last checkpoint. When the driver ends the pipe does, and the watch with it.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import select
import signal
import time
from typing import NoReturn

from voda_flows.runtime.log import open_log

LOG = open_log("driver")
BEAT_S = 0.5
_PR_SET_PDEATHSIG = 1  # linux/prctl.h
_LOOKS = 2  # one look may be late because the whole machine stood still; then the driver beats before the next


class Watch:
    """The driver's end of it.

    Made before the driver has threads: it forks.
    """

    def __init__(self, limit_s: float) -> None:
        listening, self._beating = os.pipe()
        self._beat_s = 0.0
        os.set_blocking(self._beating, False)
        driver = os.getpid()
        self._pid = os.fork()
        if self._pid == 0:
            os.close(self._beating)
            _keep_watch(driver, listening, limit_s)
        os.close(listening)

    def beat(self) -> None:
        """The loop has turned; cheap enough for every turn."""
        now_s = time.monotonic()
        if now_s - self._beat_s >= BEAT_S:
            self._beat_s = now_s
            with contextlib.suppress(OSError):  # it was killed, or is frozen itself: the driver needs it not
                os.write(self._beating, b".")

    def close(self) -> None:
        """End it: what is left to do has time limits of its own."""
        os.close(self._beating)
        with contextlib.suppress(ProcessLookupError):
            os.kill(self._pid, signal.SIGKILL)
        os.waitpid(self._pid, 0)


def _keep_watch(driver: int, listening: int, limit_s: float) -> NoReturn:
    """The watch's whole life."""
    try:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)  # a pod that is told to end is ended by its driver
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        silent = 0
        while silent < _LOOKS:
            if not select.select([listening], [], [], limit_s / _LOOKS)[0]:
                silent += 1
            elif os.read(listening, 4096):
                silent = 0
            else:
                os._exit(0)
        if os.getppid() == driver:
            LOG.error("the driver stood still for %g s (frozen or stuck): it is killed, and its job goes on from its "
                      "last checkpoint", limit_s)  # fmt: skip
            os.kill(driver, signal.SIGKILL)
    finally:
        os._exit(1)

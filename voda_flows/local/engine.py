"""The engine of local mode: one process for each home that keeps pods, workflows and cron workflows going.

``python -m voda_flows.local.engine HOME`` runs it; ``voda up`` starts it in the background. Everything it knows is in
the store and in the pods' folders: it may be killed at any time, and the next one goes on from there. Pods outlive it.
"""

from __future__ import annotations

import logging
import logging.handlers
import math
import os
import signal
import sys
import time
from pathlib import Path
from types import FrameType

from scheduler_core.errors import Conflict, VodaError
from voda_flows.local.advancing import Workflows
from voda_flows.local.clock import EvenClock
from voda_flows.local.crons import Crons
from voda_flows.local.kubelet import Kubelet, count_devices
from voda_flows.local.pod import start_ticks, take_lock, write_whole
from voda_flows.local.processes import lock_path
from voda_flows.local.prune import Pruning
from voda_flows.local.store import LocalStore
from voda_flows.local.trouble import trouble

LOG_LIMIT_BYTES = 5_000_000
TICK_S = 0.03
"""How often live pods are looked at; the scheduler's alone, less often."""
REST_S = 0.2
"""How long the engine rests at most: so soon it sees that it is to stop."""
TROUBLE_S = 1.0

log = logging.getLogger("voda.local.engine")


class Engine:
    """The loop: look, and when something changed, put each thing where it belongs."""

    def __init__(self, store: LocalStore, num_devices: int, clock: EvenClock) -> None:
        self.store = store
        self.clock = clock
        self.kubelet = Kubelet(store, num_devices, clock)
        self.workflows = Workflows(store)
        self.crons = Crons(store)
        self.pruning = Pruning(store)
        self.stopping = False
        self._is_swept = False

    def run(self) -> None:
        """Go on until told to stop, or until the home is gone."""
        seen = -1
        while not self.stopping and (self.store.home / "state.db").exists():
            try:
                seen = self.step(seen)
                self.store.rest(seen, self._pause_s())
            except Exception:
                # A full disk, a locked file, a defect: all that was not done yet is done once it can be.
                log.exception("the round failed, it is repeated")
                time.sleep(TROUBLE_S)

    def step(self, seen: int) -> int:
        """One look, and one round where something changed since the revision seen or the time has come.

        Returns:
            The revision that is dealt with.
        """
        if not self._is_swept:
            self.kubelet.sweep()
            self._is_swept = True
        self.kubelet.watch()
        revision = self.store.glance()
        if revision != seen or self._due_s() <= 0 or self._is_asked_for():
            self.round()
        return revision

    def round(self) -> None:
        """Every object is brought one step on."""
        self._follow_clock()
        self.kubelet.refresh()
        self.crons.tick(self.clock.wall())
        now = self.clock.now()
        unseen = self.workflows.advance(now)
        self.pruning.turn(now)
        self.kubelet.end(unseen)
        self.kubelet.place()
        self.kubelet.start()

    def _follow_clock(self) -> None:
        """Show the machine's time again after its clock was set, once no Workflow is in the middle of its limits."""
        if self.clock.is_apart() and not self.workflows.has_open():
            self.clock.follow()
            self.workflows.look_again()
            log.info("the machine's clock was set, it is followed")

    def stop(self, number: int, frame: FrameType | None) -> None:  # noqa: ARG002 - a signal handler's shape
        """End after this round; pods go on."""
        self.stopping = True

    def _is_asked_for(self) -> bool:
        """Whether a round is to be made though no object has changed and no Workflow's time has come."""
        return self.clock.was_set() or self.pruning.is_due() or self.kubelet.is_behind()

    def _due_s(self) -> float:
        """How long until a round is to be made though nothing changes."""
        crons, workflows = self.crons.due, self.workflows.due()
        return min(
            math.inf if crons is None else (crons - self.clock.wall()).total_seconds(),
            math.inf if workflows is None else (workflows - self.clock.now()).total_seconds(),
        )

    def _pause_s(self) -> float:
        return max(0.0, min(self._due_s(), TICK_S if self.kubelet.has_work() else REST_S))


def main(home: Path) -> int:
    """Run the engine of a home until SIGTERM."""
    with trouble(home / "engine.log"):
        home.mkdir(parents=True, exist_ok=True)
        if take_lock(lock_path(home)) is None:
            raise Conflict(f"{home}: expected no engine, one runs already; there is nothing to do")
        handler = logging.handlers.RotatingFileHandler(home / "engine.log", maxBytes=LOG_LIMIT_BYTES, backupCount=1)
        logging.basicConfig(level=logging.INFO, handlers=[handler], format="%(asctime)s %(name)s %(message)s")
        logging.raiseExceptions = False  # a line that finds no room is no trouble of its own
        clock = EvenClock(home / "clock.json")
        clock.keep()
        engine = Engine(LocalStore(home), count_devices(), clock)
        signal.signal(signal.SIGTERM, engine.stop)
        signal.signal(signal.SIGINT, engine.stop)
        said = home / "engine.json"
        write_whole(said, {"pid": os.getpid(), "ticks": start_ticks()})
    log.info("engine pid=%d home=%s devices=%d", os.getpid(), home, engine.kubelet.num_devices)
    try:
        engine.run()
    finally:
        said.unlink(missing_ok=True)
        log.info("engine pid=%d ended", os.getpid())
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main(Path(sys.argv[1]).absolute()))
    except VodaError as error:
        sys.stderr.write(f"{error}\n")
        sys.exit(error.exit_code)

"""The engine of local mode: one process for each home that keeps pods, workflows and cron workflows going.

``python -m voda_flows.local.engine HOME`` runs it; ``voda up`` starts it in the background. Everything it knows is in
the store and in the pods' folders: it may be killed at any time, and the next one goes on from there. Pods outlive it.
"""

from __future__ import annotations

import logging
import logging.handlers
import os
import signal
import sys
import time
from datetime import UTC, datetime
from pathlib import Path
from types import FrameType

from scheduler_core.errors import Conflict, VodaError
from voda_flows.local.advancing import Workflows
from voda_flows.local.crons import Crons
from voda_flows.local.kubelet import Kubelet, count_devices
from voda_flows.local.pod import start_ticks, take_lock, write_whole
from voda_flows.local.processes import lock_path
from voda_flows.local.store import LocalStore

LOG_LIMIT_BYTES = 5_000_000
TICK_S = 0.03
"""How often live pods are looked at."""
REST_S = 0.2
"""How long the engine rests at most: so soon it sees that it is to stop."""
TROUBLE_S = 1.0

log = logging.getLogger("voda.local.engine")


class Engine:
    """The loop: look, and when something changed, put each thing where it belongs."""

    def __init__(self, store: LocalStore, num_devices: int) -> None:
        self.store = store
        self.kubelet = Kubelet(store, num_devices)
        self.workflows = Workflows(store)
        self.crons = Crons(store)
        self.stopping = False

    def run(self) -> None:
        """Go on until told to stop, or until the home is gone."""
        seen, due = -1, None
        while not self.stopping and (self.store.home / "state.db").exists():
            try:
                seen, due = self.step(seen, due)
                self.store.wait(seen, self._pause_s(due))
            except Exception:
                # A full disk, a locked file, a defect: all that was not done yet is done once it can be.
                log.exception("the round failed, it is repeated")
                time.sleep(TROUBLE_S)

    def step(self, seen: int, due: datetime | None) -> tuple[int, datetime | None]:
        """One look, and one round where something changed since the revision seen or the time has come.

        Returns:
            The revision that is dealt with, and when to make a round though nothing changes.
        """
        self.kubelet.watch()
        revision, now = self.store.revision(), datetime.now(UTC)
        if revision == seen and (due is None or now < due):
            return seen, due
        return revision, self.round(now)

    def round(self, now: datetime) -> datetime | None:
        """Every object is brought one step on; gives when to do so again though nothing changes."""
        self.kubelet.refresh()
        self.crons.tick(now)
        unseen = self.workflows.advance(now)
        self.kubelet.end(unseen)
        self.kubelet.place()
        self.kubelet.start()
        return min((due for due in (self.crons.due, self.workflows.due()) if due is not None), default=None)

    def stop(self, number: int, frame: FrameType | None) -> None:  # noqa: ARG002 - a signal handler's shape
        """End after this round; pods go on."""
        self.stopping = True

    def _pause_s(self, due: datetime | None) -> float:
        left_s = REST_S if due is None else (due - datetime.now(UTC)).total_seconds()
        return max(0.0, min(left_s, TICK_S if self.kubelet.live else REST_S))


def main(home: Path) -> int:
    """Run the engine of a home until SIGTERM."""
    home.mkdir(parents=True, exist_ok=True)
    if take_lock(lock_path(home)) is None:
        raise Conflict(f"{home}: expected no engine, one runs already; there is nothing to do")
    handler = logging.handlers.RotatingFileHandler(home / "engine.log", maxBytes=LOG_LIMIT_BYTES, backupCount=1)
    logging.basicConfig(level=logging.INFO, handlers=[handler], format="%(asctime)s %(name)s %(message)s")
    engine = Engine(LocalStore(home), count_devices())
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

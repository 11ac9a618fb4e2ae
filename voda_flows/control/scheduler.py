"""The scheduler's process: ``python -m voda_flows.control.scheduler [--for 55m | --once]``.

It holds the Lease, and runs a cycle on every change of the store and at least every two seconds, until its time is
over. It ends just before one of the cron's ticks, which starts another; a run of a tick in between sees that the Lease
is renewed, and ends at once. Everything it knows is in the store: it may be killed at any moment.
"""

from __future__ import annotations

import argparse
import logging
import os
import re
import signal
import socket
import sys
import threading
import time
from dataclasses import dataclass
from pathlib import Path

from scheduler_core.cycle import run_cycle
from scheduler_core.errors import Conflict, InvalidValue, VodaError
from scheduler_core.model.decision import CycleResult
from scheduler_core.model.params import Params
from voda_flows.config import DEFAULT_NAMESPACE, SCHEDULER_TICK_MINUTES, Settings, scheduler_namespace
from voda_flows.control.decider import ProcessDecider
from voda_flows.control.enforce import StoreEnforcer
from voda_flows.control.held import HeldEnforcer
from voda_flows.control.kept import Kept
from voda_flows.control.learning import Learning
from voda_flows.control.lease import POD, Lease, LeaseLost
from voda_flows.control.metrics import Metrics, metrics_file
from voda_flows.control.observe import StoreObserver, is_changing
from voda_flows.control.records import Records, records_folder
from voda_flows.control.reports import Reports
from voda_flows.control.settings import SettingsSource, params_of
from voda_flows.control.targets import StoredTarget
from voda_flows.control.volumes import Claims
from voda_flows.control.why import Why
from voda_flows.store import ObjectStore
from voda_flows.worlds import is_cluster, open_store

log = logging.getLogger(__name__)

#: A wait is cut into pieces, so that SIGTERM is noticed soon.
_PATIENCE_S = 0.5
#: A run ends so long before the tick at which the cron starts the next.
_BEFORE_TICK_S = 2.0
_MINUTE_S = 60
_TICK_S = SCHEDULER_TICK_MINUTES * _MINUTE_S
#: It was told to end before its time, as by a drain of its node: as a failure, so that the pod's retries start another.
_CUT_SHORT = 75
#: Rounds in a row that may fail before the process gives up and is started anew.
_FAULTS_LIMIT = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Pace:
    """How often rounds are run, seconds.

    Attributes:
        gap_s: Least time between two rounds: changes come in bursts.
        heartbeat_s: Most time between two rounds: time limits pass without any object changing.
        changing_s: Most time while a driver is about to acknowledge a document, which changes no object.
    """

    gap_s: float = 0.1
    heartbeat_s: float = 2.0
    changing_s: float = 0.2


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where a scheduler stands.

    Attributes:
        namespace: Its own.
        identity: Who it is, for the Lease.
        records: Folder for records, None for none.
        metrics: File for metrics, None for none.
        has_claims: Whether jobs' volumes are claims that can be looked at: on a cluster, not in local mode.
    """

    namespace: str = DEFAULT_NAMESPACE
    identity: str
    records: Path | None = None
    metrics: Path | None = None
    has_claims: bool = False


class Scheduler:
    """Decides and enforces while it holds the Lease.

    Args:
        store: The world.
        place: Where it stands.
        pace: How often it looks.
    """

    def __init__(self, store: ObjectStore, place: Place, pace: Pace = Pace()) -> None:
        self._store = store
        self._place = place
        self._pace = pace
        self._lease = Lease(store=store, namespace=place.namespace, identity=place.identity)
        self._reports = Reports()
        self._settings = SettingsSource(store, place.namespace)
        settings = self._settings.changed() or Settings(namespace=place.namespace)
        self._decider = ProcessDecider(settings.policy_limit_s)
        self._metrics = Metrics(place.metrics)
        self._learning = Learning(Kept(store, place.namespace, self._lease))
        self._parts = self._wire(settings)
        self._held = False

    def run(self, end_s: float, stop: threading.Event) -> None:
        """Run rounds until a moment on the monotonic clock, until told to stop, or while nobody else does.

        Raises:
            VodaError: Ten rounds in a row failed.
        """
        faults = 0
        while not stop.is_set() and time.monotonic() < end_s:
            revision, began_s = self._store.revision(), time.monotonic()
            try:
                wait_s = self._guarded_round()
                faults = 0
            except Exception:
                faults += 1
                log.exception("round=failed in_a_row=%d", faults)
                if faults >= _FAULTS_LIMIT:
                    raise
                wait_s = self._pace.heartbeat_s
            if self._lease.is_anothers:
                log.info("scheduler=not_needed why='another renews the lease'")
                return
            stop.wait(max(0.0, began_s + self._pace.gap_s - time.monotonic()))
            self._wait(revision, min(began_s + wait_s, end_s), stop)

    def once(self) -> None:
        """One round.

        Raises:
            Conflict: Another scheduler holds the Lease.
        """
        self._guarded_round()
        if not self._held:
            raise Conflict("lease voda-scheduler: expected it to be free, another scheduler holds it; try again later")

    def close(self) -> None:
        """Give the Lease back and let go of threads."""
        if self._held:
            self._learning.save()
            self._lease.give_back()
        self._decider.close()
        self._reports.close()

    def _guarded_round(self) -> float:
        """A round if the Lease is ours.

        Returns:
            Seconds to wait for a change before the next.
        """
        if not self._held or self._lease.renew_due():
            held = self._lease.hold()
            if self._held and not held:
                log.warning("lease=lost")
            self._held = held
        if not self._held:
            return self._pace.heartbeat_s
        self._follow_settings()
        if self._lease.unclean and not self._took_over():
            return self._pace.gap_s
        result = self._round()
        return (
            self._pace.changing_s if result is None or is_changing(result.observation.jobs) else self._pace.heartbeat_s
        )

    def _round(self) -> CycleResult | None:
        """One cycle, None where somebody else replaced the target or took the Lease meanwhile."""
        parts, began_s = self._parts, time.monotonic()
        try:
            self._decider.begin_round()
            result = run_cycle(parts.observer, parts.enforcer, parts.targets, parts.params, self._decider)
        except Conflict as moved:
            log.info("round=again why=%r", str(moved))
            return None
        except LeaseLost as lost:
            self._lost(lost)
            return None
        self._metrics.note(result, parts.targets.loaded, time.monotonic() - began_s)
        if parts.records.keep(result, parts.targets.loaded, parts.params):
            log.info(
                "round=done decision=%d kind=%s jobs=%d actions=%d conflicts=%d fault=%r",
                result.decision.target.decision,
                result.decision.kind.value,
                len(result.observation.jobs),
                len(result.done),
                len(result.conflicts),
                result.fault or result.decision.fault,
            )
        return result

    def _took_over(self) -> bool:
        """Whether the holder before us can write nothing any more; False where we are not the holder either."""
        try:
            self._take_over()
        except (Conflict, LeaseLost) as lost:
            self._lost(lost)
        return self._held

    def _lost(self, why: VodaError) -> None:
        """We hold the Lease no more."""
        log.warning("lease=lost why=%r", str(why))
        self._held = False

    def _take_over(self) -> None:
        """Make stale whatever the holder before us may still want to write."""
        self._parts.observer.observe()
        views = self._parts.observer.views.values()
        bodies = [body for view in views for body in (view.workflow, view.driver, *view.pod_by_worker.values()) if body]
        self._lease.confirm()
        count = self._lease.fence(bodies)
        self._parts.targets.fence(self._lease)
        self._parts.records.fence(self._lease)
        self._lease.unclean = False
        log.info("lease=fenced epoch=%d objects=%d", self._lease.epoch, count)

    def _follow_settings(self) -> None:
        """Take over new settings; bad ones are said once, and the old ones stay."""
        try:
            settings = self._settings.changed()
        except InvalidValue as fault:
            log.error("settings=refused why=%r", str(fault))  # noqa: TRY400 -- a user's mistake needs no traceback
            return
        if settings is not None:
            self._parts = self._wire(settings)
            log.info("settings=read policy=%s", settings.policy)

    def _wire(self, settings: Settings) -> _Parts:
        self._decider.limit_s = settings.policy_limit_s
        claims = Claims(self._store) if self._place.has_claims else None
        observer = StoreObserver(self._store, settings, self._reports, claims=claims)
        observer.learn_by(self._learning)
        why = Why(observer.name_of)
        return _Parts(
            observer=observer,
            enforcer=HeldEnforcer(
                enforcer=StoreEnforcer(self._store, observer, why=why.of),
                lease=self._lease,
            ),
            targets=StoredTarget(self._store, self._place.namespace, self._lease, why.decided),
            records=Records(self._store, settings, self._place.records, self._lease),
            params=params_of(settings),
        )

    def _wait(self, since: int, end_s: float, stop: threading.Event) -> None:
        """Until the store changes, time is over or we are told to stop."""
        while not stop.is_set() and (left_s := end_s - time.monotonic()) > 0:
            if self._store.wait(since, min(left_s, _PATIENCE_S)) > since:
                return


@dataclass(frozen=True, slots=True, kw_only=True)
class _Parts:
    """What a cycle is made of, for one state of the settings."""

    observer: StoreObserver
    enforcer: HeldEnforcer
    targets: StoredTarget
    records: Records
    params: Params


def lifetime_s(text: str) -> float:
    """Seconds of a duration such as 90s, 55m or 1h.

    Raises:
        InvalidValue: It is none.
    """
    found = re.fullmatch(r"([0-9]+)(s|m|h)", text)
    if not found:
        raise InvalidValue(f"--for: expected a duration such as 90s, 55m or 1h, got {text!r}")
    return int(found[1]) * {"s": 1, "m": _MINUTE_S, "h": _MINUTE_S * _MINUTE_S}[found[2]]


def end_before_tick(now_s: float, life_s: float) -> float:
    """When to end: shortly before the last tick within the lifetime; a life of less than two ticks is kept whole.

    Args:
        now_s: Seconds since the epoch.
        life_s: How long to live at most.

    Returns:
        Seconds to live.
    """
    if life_s < 2 * _TICK_S:
        return life_s
    tick_s = (now_s + life_s) // _TICK_S * _TICK_S
    return tick_s - _BEFORE_TICK_S - now_s


def main(arguments: list[str] | None = None) -> int:
    """Run the scheduler; see the module's docstring.

    Returns:
        Exit code: 0 when its time was over or another is at work, 75 when it was told to end before.
    """
    parser = argparse.ArgumentParser(prog="voda_flows.control.scheduler", description="Voda's scheduler.")
    parser.add_argument("--for", dest="life", default="55m", help="how long to live, e.g. 55m (default)")
    parser.add_argument("--since", type=float, help="since when, in seconds since 1970 (default now); over is over")
    parser.add_argument("--once", action="store_true", help="one round")
    options = parser.parse_args(arguments)
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s", stream=sys.stderr)
    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    pod_uid = os.environ.get("VODA_POD_UID")
    identity = POD + pod_uid if pod_uid else f"process/{socket.gethostname()}/{os.getpid()}"
    try:
        since_s = time.time() if options.since is None else options.since
        life_s = since_s + end_before_tick(since_s, lifetime_s(options.life)) - time.time()
        if life_s <= 0 and not options.once:
            log.info("scheduler=ended why='its time was over when it began: the next run has its turn'")
            return 0
        place = Place(
            namespace=scheduler_namespace(),
            identity=identity,
            records=records_folder(os.environ),
            metrics=metrics_file(os.environ),
            has_claims=is_cluster(),
        )
        scheduler = Scheduler(open_store(), place)
        try:
            if options.once:
                scheduler.once()
            else:
                scheduler.run(time.monotonic() + life_s, stop)
        finally:
            scheduler.close()
    except VodaError as fault:
        log.error("scheduler=ended why=%r", str(fault))  # noqa: TRY400 -- the message says it all
        return fault.exit_code
    return _CUT_SHORT if stop.is_set() else 0


if __name__ == "__main__":
    sys.exit(main())

"""Elastic Horovod without ssh, MPI or polling: worlds made by Horovod's own ``ElasticDriver``.

Differences from ``horovodrun``: hosts come from the driver (which reads the allocation document), ranks are started
by agents and wait at the door until their world is decided, a change is acted on when it is told instead of at the
next poll, and ranks hear of it over the agents instead of Horovod's notification service (whose stamps have whole
seconds). Host ids name one life of a worker, because Horovod blacklists a host for good when a rank of it fails.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Callable

from horovod.runner.common.util.hosts import INVALID_SLOT_INFO
from horovod.runner.elastic.discovery import HostDiscovery
from horovod.runner.elastic.driver import ElasticDriver
from horovod.runner.elastic.worker import HostUpdateResult
from horovod.runner.gloo_run import create_run_env_vars, create_slot_env_vars

from voda_flows.runtime.interface import interface_of
from voda_flows.runtime.launch import Member
from voda_flows.runtime.launch.rendezvous import Rendezvous

if TYPE_CHECKING:
    from voda_flows.runtime.launch import Events

# Ranks may wait for a world as long as the driver wishes; its own watchdog is what ends a reset that hangs.
_NO_TIMEOUT_S = 7 * 24 * 3600


class HorovodLauncher:
    """The adapter: an ``ElasticDriver``, its rendezvous, and the ends of ranks that it waits for."""

    def __init__(self, address: str, min_slots: int, events: Events) -> None:
        self._events = events
        self._rendezvous = Rendezvous(address, events.resetting)
        self._hosts = _Hosts()
        self._ends: dict[tuple[str, int], _End] = {}
        self._lock = threading.Lock()
        self._elastic = _Elastic(self._rendezvous, self._hosts, min_slots, events, self._has_ended)
        self._port = self._rendezvous.start(self._elastic)
        self._address = address

    def environment(self, host: str, slot: int) -> Mapping[str, str]:
        """Where the rendezvous is and who the rank is there; its place in the world comes with ``admit``."""
        run = create_run_env_vars(self._address, [interface_of(self._address)], self._port, elastic=True)
        me = {"HOROVOD_HOSTNAME": host, "HOROVOD_LOCAL_RANK": str(slot), "VODA_WORLD": "horovod"}
        return {**{name: str(value) for name, value in run.items()}, **me}

    def allow(self, addresses: Sequence[str]) -> None:
        """Have the rendezvous answer only these addresses."""
        self._rendezvous.allow(addresses)

    def start(self, slots_by_host: Mapping[str, int]) -> None:
        """Make the first world of these hosts."""
        self._hosts.slots_by_host = dict(slots_by_host)
        self._elastic.look()
        self._elastic.start(sum(slots_by_host.values()), self._run)

    def update(self, slots_by_host: Mapping[str, int]) -> None:
        """Want these hosts from now on, and have the ranks told."""
        self._hosts.slots_by_host = dict(slots_by_host)
        self._elastic.look()

    def exited(self, host: str, slot: int, code: int) -> None:
        """Let the thread that waits for this rank go on."""
        self._end_of(host, slot).set(code)

    def stop(self) -> None:
        """Shut the rendezvous and Horovod's threads down."""
        self._elastic.shut_down()

    def _run(self, slot_info: Any, _events: Sequence[threading.Event]) -> tuple[int, float]:  # noqa: ANN401 - horovod has no types
        """What Horovod takes for the start and the life of a rank: admit it, wait for its end."""
        end = self._end_of(slot_info.hostname, slot_info.local_rank)
        self._events.admit(slot_info.hostname, slot_info.local_rank, create_slot_env_vars(slot_info))
        return end.wait(), time.time()

    def _has_ended(self, host: str, slot: int) -> bool:
        """Whether the driver said that this rank has ended; one whose agent was lost may still run, and ask."""
        return self._end_of(host, slot).is_told

    def _end_of(self, host: str, slot: int) -> _End:
        with self._lock:
            return self._ends.setdefault((host, slot), _End())


class _End:
    """The end of one rank, waited for in one thread and told in another."""

    def __init__(self) -> None:
        self._told = threading.Event()
        self._code = 0

    @property
    def is_told(self) -> bool:
        return self._told.is_set()

    def set(self, code: int) -> None:
        if not self._told.is_set():
            self._code = code
            self._told.set()

    def wait(self) -> int:
        self._told.wait()
        return self._code


class _Hosts(HostDiscovery):  # type: ignore[misc]  # horovod has no types
    """Horovod's discovery as a plain value that the driver sets."""

    def __init__(self) -> None:
        super().__init__()
        self.slots_by_host: dict[str, int] = {}

    def find_available_hosts_and_slots(self) -> dict[str, int]:
        return dict(self.slots_by_host)


class _Elastic(ElasticDriver):  # type: ignore[misc]  # horovod has no types
    """Horovod's driver, told of changes instead of polling, and telling ranks through the driver."""

    def __init__(
        self,
        rendezvous: Rendezvous,
        hosts: _Hosts,
        min_slots: int,
        events: Events,
        has_ended: Callable[[str, int], bool],
    ) -> None:
        self._events, self._has_ended = events, has_ended
        super().__init__(rendezvous, hosts, min_num_proc=min_slots, max_num_proc=None, timeout=_NO_TIMEOUT_S)

    def look(self) -> None:
        """Take the wanted hosts in, and tell the ranks when the world should be another.

        Waits for a world that is just being decided (Horovod's lock).
        """
        with self._wait_hosts_cond:
            self._host_manager.update_available_hosts()
            self._notify_workers_host_changes(self._host_manager.current_hosts, HostUpdateResult.mixed)
            self._wait_hosts_cond.notify_all()

    def shut_down(self) -> None:
        """End its threads; those that wait for ranks are daemons."""
        if not self._shutdown.is_set():
            self.stop()

    def stop(self, error_message: str | None = None) -> None:
        """Horovod stops itself when a rank succeeded or all failed; what that means is the driver's decision."""
        if self._shutdown.is_set():
            return
        super().stop(error_message)
        self._events.ended(error_message or "no rank is left to go on from")

    def record_ready(self, host: str, slot: int) -> None:
        """Count a rank as ready for the next world, unless it has ended.

        Horovod would count a rank both as failed and as ready, and take a world for complete without the others.
        """
        if not self._has_ended(host, slot):
            super().record_ready(host, slot)

    def get_slot_info(self, host: str, slot: int) -> Any:  # noqa: ANN401 - horovod has no types
        """A rank's place in the world; none for one that has ended, which ends itself then."""
        return INVALID_SLOT_INFO if self._has_ended(host, slot) else super().get_slot_info(host, slot)

    def _discover_hosts(self) -> None:
        """Horovod's polling thread: nothing to poll, ``look`` is called on every change."""

    def _notify_workers_host_changes(self, current_hosts: Any, _update: Any) -> None:  # noqa: ANN401 - horovod has no types
        if not self._host_assignments or current_hosts.count_available_slots() < self._min_num_proc:
            return  # not begun, or too few until a newcomer stands in for a crashed rank
        wanted, _ = self._get_host_assignments(current_hosts)
        if wanted != self._host_assignments:
            self._events.reset("hosts changed")

    def _update_host_assignments(self, current_hosts: Any) -> Any:  # noqa: ANN401 - horovod has no types
        pending = super()._update_host_assignments(current_hosts)
        members = [Member(host=slot.hostname, slot=slot.local_rank, rank=rank)
                   for rank, slot in sorted(self._rank_assignments.items())]  # fmt: skip
        self._events.world(members)
        return pending

"""Horovod's rendezvous, answering only those whom the allocation document names.

It is plain HTTP without any proof, and Horovod's own server unpickles what workers put into it. This one binds to the
pod's own address, answers three methods, limits what may be put, unpickles nothing, and refuses any address that the
document does not name. On one machine all pods are loopback addresses and connections come from any of them: there a
loopback address in the document stands for all of 127.0.0.0/8.

Differences from Horovod's server beside that: who asks for a value that is not there yet waits for it here, instead of
asking again every 10 ms; and a rank that has met the others takes its own value away, instead of the last one all.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import ipaddress
import threading
from collections import defaultdict
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Callable

from voda_flows.runtime.launch.one_request import BAD_REQUEST, NOT_FOUND, OK, Asked, OneRequest
from voda_flows.runtime.log import open_log

if TYPE_CHECKING:
    from horovod.runner.elastic.driver import ElasticDriver

    Reply = Callable[[int, bytes], None]
    Place = tuple[str, str]

LOG = open_log("driver")
MAX_VALUE_BYTES = 1_048_576  # addresses of one rank towards all others: a few kilobytes
WAIT_S = 1.0
"""So long a value is waited for; Horovod's client then asks again, until its own limit."""
RANK_AND_SIZE = "rank_and_size"  # horovod.runner.elastic.rendezvous.GET_RANK_AND_SIZE
_METHODS = frozenset({"GET", "PUT", "DELETE"})
_BACKLOG = 256


class Allowed:
    """The addresses that are answered."""

    def __init__(self) -> None:
        self._addresses: frozenset[str] = frozenset()

    def replace(self, addresses: Sequence[str]) -> None:
        """Answer these from now on; also the ranks that a change is about to drop must still be among them."""
        self._addresses = frozenset(addresses)

    def __contains__(self, address: object) -> bool:
        """Whether a connection from this address is answered."""
        if address in self._addresses:
            return True
        return _is_loopback(str(address)) and any(_is_loopback(known) for known in self._addresses)


class Rendezvous:
    """The server behind Horovod's interface (``init`` and ``stop`` are called by its driver).

    Args:
        address: Where to listen.
        on_reset: Called when a rank asks for its place in the next world.
    """

    def __init__(self, address: str, on_reset: Callable[[], None]) -> None:
        self._address = address
        self._on_reset = on_reset
        self._allowed = Allowed()
        self._loop = asyncio.new_event_loop()
        self._values: dict[Place, bytes] = {}
        self._awaited: defaultdict[Place, list[Reply]] = defaultdict(list)
        self._elastic: Any = None

    def start(self, elastic: ElasticDriver) -> int:
        """Serve, in a thread of its own; the port."""
        self._elastic = elastic
        opening = self._loop.create_server(lambda: OneRequest(self, self._loop), self._address, 0, backlog=_BACKLOG)
        server = self._loop.run_until_complete(opening)
        threading.Thread(target=self._serve, args=(server,), name="rendezvous", daemon=True).start()
        return int(server.sockets[0].getsockname()[1])

    def allow(self, addresses: Sequence[str]) -> None:
        """Answer only these addresses from now on."""
        self._allowed.replace(addresses)

    def init(self, host_alloc_plan: Any) -> None:  # noqa: ANN401, ARG002 - horovod has no types; a shape of its own
        """Forget the last world's values."""
        self._values = {}

    def stop(self) -> None:
        """End the server; from any thread."""
        self._call(self._loop.stop)

    def is_refused(self, asked: Asked) -> bool:
        """Whether it comes from one who has no business here, or is none."""
        is_known = asked.address in self._allowed and asked.method in _METHODS
        if is_known and asked.length <= MAX_VALUE_BYTES:
            return False
        LOG.warning("rendezvous refused address=%s method=%s", asked.address, asked.method[:10])
        return True

    def answer(self, asked: Asked, value: bytes, reply: Reply) -> None:
        """Put, give or take away a value, or tell a rank its place."""
        place = (asked.scope, asked.key)
        if asked.method == "PUT":
            self._put(place, value)
            reply(OK, b"")
        elif asked.method == "DELETE":
            self._values.pop(place, None)
            reply(OK, b"")
        elif asked.scope == RANK_AND_SIZE:
            self._seek_place(asked.key, reply)
        elif place in self._values:
            reply(OK, self._values[place])
        else:
            self._awaited[place].append(reply)
            self._loop.call_later(WAIT_S, self._give_up, place, reply)

    def _put(self, place: Place, value: bytes) -> None:
        self._values[place] = value
        for reply in self._awaited.pop(place, ()):
            reply(OK, value)

    def _give_up(self, place: Place, reply: Reply) -> None:
        waiting = self._awaited.get(place, [])
        if reply in waiting:
            waiting.remove(reply)
            reply(NOT_FOUND, b"")

    def _seek_place(self, key: str, reply: Reply) -> None:
        host, _, slot = key.rpartition(":")
        if not host or not slot.isdigit():  # a path is ASCII: so are its digits
            reply(BAD_REQUEST, b"")
            return
        # It waits for all other ranks there, and as it does so must keep neither the loop nor the driver's end.
        threading.Thread(target=self._tell_place, args=(host, int(slot), reply), daemon=True).start()

    def _tell_place(self, host: str, slot: int, reply: Reply) -> None:
        self._on_reset()
        self._elastic.record_ready(host, slot)
        found = self._elastic.get_slot_info(host, slot)
        self._call(functools.partial(reply, OK, found.to_response_string().encode("ascii")))

    def _call(self, deed: Callable[[], None]) -> None:
        with contextlib.suppress(RuntimeError):  # the loop has ended
            self._loop.call_soon_threadsafe(deed)

    def _serve(self, server: asyncio.AbstractServer) -> None:
        try:
            self._loop.run_forever()
        finally:
            server.close()
            self._loop.close()


def _is_loopback(address: str) -> bool:
    try:
        return ipaddress.ip_address(address).is_loopback
    except ValueError:
        return False

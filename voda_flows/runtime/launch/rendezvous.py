"""Horovod's rendezvous, answering only those whom the allocation document names.

It is plain HTTP without any proof, and Horovod's own handler unpickles what workers put into it. This one binds to
the pod's own address, answers three methods, limits what may be put, unpickles nothing, and refuses any address that
the document does not name. On one machine all pods are loopback addresses and connections come from any of them:
there a loopback address in the document stands for all of 127.0.0.0/8.
"""

from __future__ import annotations

import ipaddress
import threading
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Callable

from horovod.runner.elastic.rendezvous import create_rendezvous_handler
from horovod.runner.http.http_server import KVStoreHandler, RendezvousHTTPServer

from voda_flows.runtime.log import open_log

if TYPE_CHECKING:
    from horovod.runner.elastic.driver import ElasticDriver

LOG = open_log("driver")
MAX_VALUE_BYTES = 1_048_576  # addresses of one rank towards all others: a few kilobytes
_METHODS = frozenset({"GET", "PUT", "DELETE"})
_FORBIDDEN = 403


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


class _Server(RendezvousHTTPServer):  # type: ignore[misc]  # horovod has no types
    """A rank that waits for its world must not keep the driver from ending."""

    daemon_threads = True
    request_queue_size = 256


class Rendezvous:
    """The server behind Horovod's interface (``init`` and ``stop`` are called by its driver)."""

    def __init__(self, address: str, on_reset: Callable[[], None]) -> None:
        self._address = address
        self._on_reset = on_reset
        self._allowed = Allowed()
        self._server: Any = None

    def start(self, elastic: ElasticDriver) -> int:
        """Serve; the port."""
        handler = _guarded(create_rendezvous_handler(elastic), self._allowed, self._on_reset)
        self._server = _Server((self._address, 0), handler, 0)
        threading.Thread(target=self._server.serve_forever, name="rendezvous", daemon=True).start()
        return int(self._server.server_address[1])

    def allow(self, addresses: Sequence[str]) -> None:
        """Answer only these addresses from now on."""
        self._allowed.replace(addresses)

    def init(self, host_alloc_plan: Any) -> None:  # noqa: ANN401 - horovod has no types
        """Forget the last world's values."""
        self._server.init(host_alloc_plan)

    def stop(self) -> None:
        """End the server."""
        threading.Thread(target=self._server.shutdown, daemon=True).start()  # may be called from one of its threads


def _guarded(base: Any, allowed: Allowed, on_reset: Callable[[], None]) -> Any:  # noqa: ANN401 - horovod has no types
    class GuardedHandler(base):  # type: ignore[misc]  # horovod has no types
        """Horovod's handler behind the list of addresses."""

        # An answer goes out as one packet at once: all ranks of a resize stand still while they ask.
        wbufsize = -1
        disable_nagle_algorithm = True

        def parse_request(self) -> bool:
            if not super().parse_request():
                return False
            refused = self.client_address[0] not in allowed or self.command not in _METHODS
            if refused or int(self.headers.get("Content-Length") or 0) > MAX_VALUE_BYTES:
                LOG.warning("rendezvous refused address=%s method=%s", self.client_address[0], self.command[:10])
                self.close_connection = True
                self.send_status_code(_FORBIDDEN)
                return False
            return True

        def _get_rank_and_size(self, host: str, local_rank: int) -> Any:  # noqa: ANN401 - horovod has no types
            on_reset()
            return super()._get_rank_and_size(host, local_rank)

        def _put_value(self, scope: str, key: str, value: bytes) -> None:
            KVStoreHandler._put_value(self, scope, key, value)  # noqa: SLF001 - past the one that unpickles

    return GuardedHandler


def _is_loopback(address: str) -> bool:
    try:
        return ipaddress.ip_address(address).is_loopback
    except ValueError:
        return False

"""Horovod's rendezvous answers only those whom the document names, and unpickles nothing."""

from __future__ import annotations

import http.client
import pickle
from collections.abc import Iterator

import pytest

from voda_flows.runtime.launch.rendezvous import MAX_VALUE_BYTES, Allowed, Rendezvous


class _Elastic:
    """Horovod's driver as its handler sees it."""

    def __init__(self) -> None:
        self.servers: list[object] = []

    def register_worker_server(self, *registered: object) -> None:
        self.servers.append(registered)


@pytest.fixture
def served() -> Iterator[tuple[Rendezvous, int, _Elastic]]:
    """A rendezvous on loopback that answers nobody yet."""
    elastic = _Elastic()
    rendezvous = Rendezvous("127.0.0.1", lambda: None)
    port = rendezvous.start(elastic)
    rendezvous.init([])
    yield rendezvous, port, elastic
    rendezvous.stop()


def _ask(port: int, method: str, path: str, body: bytes = b"") -> int:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
    try:
        connection.request(method, path, body)
        return connection.getresponse().status
    finally:
        connection.close()


@pytest.mark.parametrize(
    ("named", "address", "answered"),
    [
        (["10.0.0.7"], "10.0.0.7", True),
        (["10.0.0.7"], "10.0.0.8", False),
        (["10.0.0.7"], "127.0.0.1", False),
        (["127.1.0.5"], "127.0.0.1", True),
        ([], "127.0.0.1", False),
        (["127.1.0.5"], "10.0.0.7", False),
    ],
)
def test_an_address_is_answered_when_the_document_names_it(named: list[str], address: str, answered: bool) -> None:
    """A loopback address stands for all of loopback: connections there come from any of them."""
    allowed = Allowed()
    allowed.replace(named)

    assert (address in allowed) is answered


def test_a_stranger_is_refused(served: tuple[Rendezvous, int, _Elastic]) -> None:
    """Until the document names its address, and for methods that nobody needs."""
    rendezvous, port, _ = served

    before = _ask(port, "GET", "/global/0")
    rendezvous.allow(["127.1.0.5"])

    assert [before, _ask(port, "PUT", "/global/0", b"x"), _ask(port, "GET", "/global/0")] == [403, 200, 200]
    assert [_ask(port, method, "/setup.cfg") for method in ("HEAD", "POST")] == [403, 403]


def test_what_is_put_is_stored_and_never_unpickled(served: tuple[Rendezvous, int, _Elastic]) -> None:
    """Horovod's own handler would run whatever a pickle says."""
    rendezvous, port, elastic = served
    rendezvous.allow(["127.1.0.5"])

    status = _ask(port, "PUT", "/worker_addresses/w0:0", pickle.dumps(({}, b"secret")))

    assert (status, elastic.servers) == (200, [])


def test_too_large_a_value_is_refused(served: tuple[Rendezvous, int, _Elastic]) -> None:
    """The length is looked at before the value is read."""
    rendezvous, port, _ = served
    rendezvous.allow(["127.1.0.5"])
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
    connection.putrequest("PUT", "/global/0")
    connection.putheader("Content-Length", str(MAX_VALUE_BYTES + 1))
    connection.endheaders()

    assert connection.getresponse().status == 403
    connection.close()

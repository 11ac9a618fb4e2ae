"""Horovod's rendezvous answers only those whom the document names, and unpickles nothing."""

from __future__ import annotations

import contextlib
import http.client
import pickle
import socket
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

import pytest

from voda_flows.runtime.launch import one_request, rendezvous
from voda_flows.runtime.launch.rendezvous import MAX_VALUE_BYTES, Allowed, Rendezvous

LIMIT_S = 30.0


@dataclass
class Elastic:
    """Horovod's driver as its rendezvous sees it: a rank's place is known once all have asked."""

    ranks: threading.Barrier = field(default_factory=lambda: threading.Barrier(1))
    ready: list[tuple[str, int]] = field(default_factory=list)
    servers: list[object] = field(default_factory=list)

    def record_ready(self, host: str, slot: int) -> None:
        """A rank asks for its place."""
        self.ready.append((host, slot))
        self.ranks.wait(LIMIT_S)

    def get_slot_info(self, host: str, slot: int) -> Elastic:
        """A rank's place."""
        return self

    def to_response_string(self) -> str:
        """As Horovod's own."""
        return "0,2,0,1,0,2"

    def register_worker_server(self, *registered: object) -> None:
        """What Horovod's own server does with a pickle."""
        self.servers.append(registered)


@dataclass
class Served:
    """A rendezvous on loopback."""

    rendezvous: Rendezvous
    elastic: Elastic
    port: int = 0
    resets: list[None] = field(default_factory=list)

    def ask(self, method: str, path: str, body: bytes = b"") -> tuple[int, bytes]:
        """Status and body of an answer."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=LIMIT_S)
        try:
            connection.request(method, path, body)
            answer = connection.getresponse()
            return answer.status, answer.read()
        finally:
            connection.close()

    def status(self, method: str, path: str, body: bytes = b"") -> int:
        """Status of an answer."""
        return self.ask(method, path, body)[0]

    def say(self, *pieces: bytes) -> bytes:
        """What comes back for bytes sent one after the other, until the other side closes."""
        with socket.create_connection(("127.0.0.1", self.port), timeout=LIMIT_S) as connection:
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            for piece in pieces:
                connection.sendall(piece)
            return everything(connection)


def everything(connection: socket.socket) -> bytes:
    """What comes until the other side closes."""
    return b"".join(iter(lambda: connection.recv(4096), b""))


@pytest.fixture
def stranger() -> Iterator[Served]:
    """One that answers nobody yet."""
    resets: list[None] = []
    elastic = Elastic()
    served = Served(Rendezvous("127.0.0.1", lambda: resets.append(None)), elastic, resets=resets)
    served.port = served.rendezvous.start(elastic)
    served.rendezvous.init([])
    yield served
    served.rendezvous.stop()


@pytest.fixture
def served(stranger: Served) -> Served:
    """One that answers this machine."""
    stranger.rendezvous.allow(["127.1.0.5"])
    return stranger


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


def test_a_stranger_is_refused(stranger: Served) -> None:
    """Until the document names its address, and for methods that nobody needs."""
    before = stranger.status("GET", "/global/0")
    stranger.rendezvous.allow(["127.1.0.5"])

    assert [before, stranger.status("PUT", "/global/0", b"x"), stranger.status("GET", "/global/0")] == [403, 200, 200]
    assert [stranger.status(method, "/global/0") for method in ("HEAD", "POST")] == [403, 403]


def test_what_is_put_is_stored_and_never_unpickled(served: Served) -> None:
    """Horovod's own handler would run whatever a pickle says."""
    status = served.status("PUT", "/worker_addresses/w0:0", pickle.dumps(({}, b"secret")))

    assert (status, served.elastic.servers) == (200, [])


def test_too_large_a_value_is_refused(served: Served) -> None:
    """The length is looked at before the value is read."""
    head = f"PUT /global/0 HTTP/1.1\r\nContent-Length: {MAX_VALUE_BYTES + 1}\r\n\r\n"

    assert served.say(head.encode()).split()[1] == b"403"


def test_a_value_is_given_until_it_is_taken_away_or_a_new_world_begins(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The rest of a scope is not touched by one rank's taking away."""
    monkeypatch.setattr(rendezvous, "WAIT_S", 0.01)
    for key in ("0", "1"):
        served.status("PUT", f"/global/{key}", key.encode())
    served.status("DELETE", "/global/0")
    deleted = [served.ask("GET", "/global/0"), served.ask("GET", "/global/1")]
    served.rendezvous.init([])

    assert deleted == [(404, b""), (200, b"1")]
    assert served.ask("GET", "/global/1") == (404, b"")


def test_who_asks_before_a_value_is_there_waits_for_it(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    """All who do, and nobody who has left is waited for; Horovod's own server would have them ask every 10 ms."""
    monkeypatch.setattr(rendezvous, "WAIT_S", LIMIT_S)
    request = b"GET /global/0 HTTP/1.1\r\n\r\n"
    with socket.create_connection(("127.0.0.1", served.port), timeout=LIMIT_S) as leaves:
        leaves.sendall(request)
    with contextlib.ExitStack() as connections:
        asked = [connections.enter_context(socket.create_connection(("127.0.0.1", served.port))) for _ in range(3)]
        for connection in asked:
            connection.settimeout(LIMIT_S)
            connection.sendall(request)
        served.status("PUT", "/global/1", b"another")
        served.status("PUT", "/global/0", b"here")

        assert [everything(connection) for connection in asked] == [
            b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nhere"
        ] * 3


def test_ranks_are_told_their_places_once_all_have_asked(served: Served) -> None:
    """Each in a thread of its own: who waits holds up neither the others nor the values."""
    served.elastic.ranks = threading.Barrier(3)
    with ThreadPoolExecutor() as pool:
        asked = [pool.submit(served.ask, "GET", f"/rank_and_size/w{number}.2:0") for number in range(2)]
        between = served.status("PUT", "/global/0", b"x")
        asked.append(pool.submit(served.ask, "GET", "/rank_and_size/w2:1"))

        assert [answer.result() for answer in asked] == [(200, b"0,2,0,1,0,2")] * 3
    assert between == 200
    assert sorted(served.elastic.ready) == [("w0.2", 0), ("w1.2", 0), ("w2", 1)]
    assert len(served.resets) == 3


@pytest.mark.parametrize("key", ["w0", "w0:", ":0", "w0:one", "w0:-1", "w0:+1", "w0:1_0", "w0:0x1"])
def test_a_place_of_nobody_is_refused(served: Served, key: str) -> None:
    """400 for what names no host and slot; nobody is told that a rank has come."""
    assert served.say(f"GET /rank_and_size/{key} HTTP/1.1\r\n\r\n".encode()).split()[1] == b"400"
    assert (served.elastic.ready, served.resets) == ([], [])


def test_it_ends_though_a_rank_waits_for_its_place(served: Served) -> None:
    """The driver's end waits for nobody; what the rank is told then goes nowhere."""
    served.elastic.ranks = threading.Barrier(2)
    waiting = threading.Thread(target=served.say, args=(b"GET /rank_and_size/w0:0 HTTP/1.1\r\n\r\n",), daemon=True)
    waiting.start()
    served.elastic.ranks.wait(LIMIT_S)  # the only rank is there, and about to be told
    (thread,) = (found for found in threading.enumerate() if found.name == "rendezvous")
    served.rendezvous.stop()
    served.rendezvous.stop()
    thread.join(LIMIT_S)

    assert not thread.is_alive()


@pytest.mark.parametrize(
    "head",
    [b"GET", b"GET / HTTP/1.1", b"GET /a HTTP/1.1", b"GET /a/b/c HTTP/1.1", b"GET x/a/b HTTP/1.1",
     b"\xff /a/b HTTP/1.1",
     b"PUT /a/b HTTP/1.1\r\nContent-Length: -1", b"PUT /a/b HTTP/1.1\r\nContent-Length: much", b""],
)  # fmt: skip
def test_what_is_no_request_is_answered_so(served: Served, head: bytes) -> None:
    """400, and the next one is served."""
    assert served.say(head + b"\r\n\r\n").split()[1] == b"400"
    assert served.status("PUT", "/a/b", b"x") == 200


def test_a_head_without_end_is_not_read_on(served: Served) -> None:
    """Nobody fills the driver's memory."""
    assert served.say(b"GET /a/b HTTP/1.1\r\n" + b"x" * (one_request.MAX_HEAD_BYTES + 1)).split()[1] == b"400"


def test_a_request_may_come_in_pieces(served: Served) -> None:
    """However a connection cuts it; header names are of any case."""
    whole = b"PUT /a/b HTTP/1.1\r\ncontent-length: 5\r\nHost: x\r\n\r\nvalue"

    assert served.say(*(whole[number : number + 1] for number in range(len(whole)))).split()[1] == b"200"
    assert served.ask("GET", "/a/b") == (200, b"value")


def test_a_request_that_does_not_come_is_hung_up_on(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    """A connection without a whole request in time."""
    monkeypatch.setattr(one_request, "REQUEST_LIMIT_S", 0.01)
    try:
        said = served.say(b"PUT /a/b HTTP/1.1\r\nContent-Length: 5\r\n\r\nval")
    except ConnectionResetError:
        said = b""

    assert said == b""

"""A proxy before an API server that fails as networks and busy servers do, for whoever speaks with it by plain HTTP.

``Manner`` says how badly: which share of requests is answered with 409, 429 or 500, reset before or after it was
carried out, or kept for seconds; how soon watches are dropped; how late pods appear in lists and watches.
``Proxy.hold`` stops one request on its way and tells the test, so that it can do what it likes before it goes on.
"""

from __future__ import annotations

import contextlib
import http.client
import http.server
import json
import random
import socket
import ssl
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Self
from urllib.parse import parse_qs, urlsplit

from voda_flows.objects import Object, seconds

if TYPE_CHECKING:
    from types import TracebackType

LIMIT_S = 60.0
PODS = "/api/v1/pods"
WRITES = frozenset({"POST", "PUT", "PATCH", "DELETE"})
FAULTS = ("409", "429", "500", "reset before", "reset after", "late")
#: Headers of one connection only.
_OWN = {"connection", "host", "transfer-encoding", "content-length", "keep-alive", "accept-encoding"}
_LOOK_S = 0.25


@dataclass(frozen=True, slots=True, kw_only=True)
class Manner:
    """How badly a proxy behaves.

    Attributes:
        share: Of the requests that go wrong, 0 to 1.
        late_s: How long one that is kept is kept, seconds.
        watch_s: Longest life of a watch, seconds; each has a random part of it.
        pods_late_s: How long after its creation a pod appears, seconds.
        seed: Of its chances.
    """

    share: float = 0.0
    late_s: float = 5.0
    watch_s: float = 3600.0
    pods_late_s: float = 0.0
    seed: int = 1


@dataclass(slots=True)
class Held:
    """A request that is stopped on its way.

    Attributes:
        is_wanted: Which is: by method, path and body.
        is_answered: Whether it is stopped after it was carried out, before its answer goes back.
        status: What the server said to it.
    """

    is_wanted: Callable[[str, str, bytes], bool]
    is_answered: bool = False
    status: int = 0
    came: threading.Event = field(default_factory=threading.Event)
    go: threading.Event = field(default_factory=threading.Event)
    over: threading.Event = field(default_factory=threading.Event)


class Proxy:
    """A proxy on loopback, for as long as its block lasts.

    Args:
        server: The API server's address.
        certificate: Its authority's certificate; None for the system's authorities.
        manner: How it behaves.
    """

    def __init__(self, server: str, certificate: Path | None, manner: Manner = Manner()) -> None:
        self.manner = manner
        self.done: Counter[str] = Counter()
        self._address = urlsplit(server).netloc
        self._context = ssl.create_default_context(cafile=None if certificate is None else str(certificate))
        self._chance, self._lock = random.Random(manner.seed), threading.Lock()
        self._hidden: dict[str, Object] = {}
        self._held: Held | None = None
        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, name="proxy", daemon=True)

    @property
    def url(self) -> str:
        """Where it listens."""
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def hold(self, is_wanted: Callable[[str, str, bytes], bool], *, is_answered: bool = False) -> Held:
        """Stop the next request that is wanted."""
        self._held = Held(is_wanted, is_answered)
        return self._held

    def __enter__(self) -> Self:
        """Listen."""
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Listen no more."""
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    def fate(self, method: str) -> str:
        """What becomes of a request: one of ``FAULTS``, or nothing."""
        with self._lock:
            if self._chance.random() >= self.manner.share:
                self.done["passed"] += 1
                return ""
            found = self._chance.choice(FAULTS if method in WRITES else FAULTS[1:])
            self.done[found] += 1
            return found

    def watch_life_s(self) -> float:
        """How long a watch lives."""
        with self._lock:
            return self._chance.uniform(0.1, 1.0) * self.manner.watch_s

    def take_held(self, method: str, path: str, body: bytes) -> Held | None:
        """The hold that this request is meant by, once."""
        with self._lock:
            held = self._held
            if held is None or not held.is_wanted(method, path, body):
                return None
            self._held = None
            return held

    def open(self, limit_s: float = LIMIT_S) -> http.client.HTTPSConnection:
        """A connection to the server."""
        return http.client.HTTPSConnection(self._address, timeout=limit_s, context=self._context)

    def hide(self, listed: bytes) -> bytes:
        """A list of pods without those that are not to be seen yet."""
        found = json.loads(listed)
        if found.get("kind") != "PodList":
            return listed
        items = found.get("items") or []
        found["items"] = [pod for pod in items if not self._is_young(pod)]
        with self._lock:
            self._hidden |= {pod["metadata"]["uid"]: pod for pod in items if self._is_young(pod)}
        return json.dumps(found).encode()

    def is_shown(self, event: Object) -> bool:
        """Whether an event of a watch is passed on: not of a pod that is not to be seen yet."""
        pod = event["object"]
        uid = pod["metadata"].get("uid") or ""
        with self._lock:
            if event["type"] == "DELETED":
                return self._hidden.pop(uid, None) is None  # one that was never shown does not go either
            if event["type"] in ("ADDED", "MODIFIED") and (uid in self._hidden or self._is_young(pod)):
                self._hidden[uid] = pod
                return False
        return True

    def due(self) -> list[Object]:
        """Events of pods that may be seen from now on."""
        with self._lock:
            found = {uid: pod for uid, pod in self._hidden.items() if not self._is_young(pod)}
            for uid in found:
                del self._hidden[uid]
        shape = {"kind": "Pod", "apiVersion": "v1"}
        return [{"type": "ADDED", "object": {**shape, **pod}} for pod in found.values()]

    def _is_young(self, pod: Object) -> bool:
        created_s = seconds(pod["metadata"].get("creationTimestamp")) or 0.0
        return time.time() - created_s < self.manner.pods_late_s


def _handler(proxy: Proxy) -> type[http.server.BaseHTTPRequestHandler]:
    class Handler(http.server.BaseHTTPRequestHandler):
        """One connection of a client's."""

        protocol_version = "HTTP/1.1"

        def handle_one_request(self) -> None:
            """A request, whatever its method."""
            self.raw_requestline = self.rfile.readline(65537)
            if not self.raw_requestline or not self.parse_request():
                self.close_connection = True
                return
            with contextlib.suppress(OSError):
                _Exchange(proxy, self).run()

        def log_message(self, format: str, *args: object) -> None:
            """Say nothing."""

    return Handler


class _Exchange:
    """One request and what becomes of it."""

    def __init__(self, proxy: Proxy, client: http.server.BaseHTTPRequestHandler) -> None:
        self._proxy, self._client = proxy, client
        self._body = client.rfile.read(int(client.headers.get("Content-Length") or 0))
        self._held = proxy.take_held(client.command, client.path, self._body)
        self._fate = "" if self._held else proxy.fate(client.command)
        url = urlsplit(client.path)
        self._is_watch = "watch" in parse_qs(url.query)
        self._is_of_pods = url.path == PODS and proxy.manner.pods_late_s > 0

    def run(self) -> None:
        try:
            self._run()
        finally:
            if self._held:
                self._held.over.set()

    def _run(self) -> None:
        if self._fate == "reset before":
            self._reset()
            return
        if self._fate in ("409", "429", "500"):
            self._answer(int(self._fate), _status(int(self._fate)))
            return
        if self._fate == "late":
            time.sleep(self._proxy.manner.late_s)
        if self._held and not self._held.is_answered:
            self._wait(self._held)
        with contextlib.closing(self._proxy.open()) as upstream:
            upstream.request(self._client.command, self._client.path, self._body or None, self._headers())
            got = upstream.getresponse()
            if self._is_watch and got.status == http.client.OK:
                self._pass_watch(upstream, got)
            else:
                self._pass_answer(got)

    def _pass_answer(self, got: http.client.HTTPResponse) -> None:
        answer = got.read()
        if self._held:
            self._held.status = got.status
            if self._held.is_answered:
                self._wait(self._held)
        if self._fate == "reset after":
            self._reset()
            return
        if self._is_of_pods and got.status == http.client.OK:
            answer = self._proxy.hide(answer)
        self._answer(got.status, answer, got.getheader("Content-Type") or "application/json")

    def _pass_watch(self, upstream: http.client.HTTPSConnection, got: http.client.HTTPResponse) -> None:
        client, end_s = self._client, time.monotonic() + self._proxy.watch_life_s()
        client.send_response(got.status)
        client.send_header("Content-Type", "application/json")
        client.send_header("Transfer-Encoding", "chunked")
        client.end_headers()
        for line in _lines(upstream, got, end_s):
            for event in self._proxy.due() if self._is_of_pods else ():
                self._chunk(json.dumps(event).encode() + b"\n")
            if line and (not self._is_of_pods or self._proxy.is_shown(json.loads(line))):
                self._chunk(line)
        if time.monotonic() < end_s:
            self._chunk(b"")
        else:
            self._proxy.done["watch dropped"] += 1
            self._reset()

    def _chunk(self, part: bytes) -> None:
        self._client.wfile.write(b"%x\r\n%s\r\n" % (len(part), part))
        self._client.wfile.flush()

    def _answer(self, status: int, body: bytes, kind: str = "application/json") -> None:
        client = self._client
        client.send_response(status)
        client.send_header("Content-Type", kind)
        client.send_header("Content-Length", str(len(body)))
        if status == http.client.TOO_MANY_REQUESTS:
            client.send_header("Retry-After", "1")
        client.end_headers()
        client.wfile.write(body)

    def _reset(self) -> None:
        """End the connection without a word."""
        self._client.close_connection = True
        with contextlib.suppress(OSError):
            self._client.connection.shutdown(socket.SHUT_RDWR)

    def _wait(self, held: Held) -> None:
        held.came.set()
        held.go.wait()

    def _headers(self) -> dict[str, str]:
        return {name: value for name, value in self._client.headers.items() if name.lower() not in _OWN}


def _lines(upstream: http.client.HTTPSConnection, got: http.client.HTTPResponse, end_s: float) -> Iterator[bytes]:
    """Lines of a watch, and an empty one whenever none came for a moment, until a time or the watch's end."""
    found: list[bytes] = []
    state = threading.Condition()
    is_over = False

    def read() -> None:
        nonlocal is_over
        with contextlib.suppress(OSError, http.client.HTTPException, ValueError, AttributeError):  # closed meanwhile
            for line in got:
                with state:
                    found.append(line)
                    state.notify()
        with state:
            is_over = True
            state.notify()

    reader = threading.Thread(target=read, daemon=True)
    reader.start()
    try:
        while time.monotonic() < end_s:
            with state:
                state.wait_for(lambda: found or is_over, _LOOK_S)
                ready, ended = found[:], is_over
                found.clear()
            yield from ready
            yield b""
            if ended:
                return
    finally:
        if upstream.sock is not None:
            with contextlib.suppress(OSError):
                upstream.sock.shutdown(socket.SHUT_RDWR)
        reader.join()


def _status(code: int) -> bytes:
    reasons = {409: "Conflict", 429: "TooManyRequests", 500: "InternalError"}
    said = {"kind": "Status", "apiVersion": "v1", "status": "Failure", "message": "the proxy says so"}
    return json.dumps({**said, "reason": reasons[code], "code": code}).encode()

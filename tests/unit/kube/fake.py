"""A transport for tests: answers as they are laid out beforehand, by request, and what was asked in order.

It knows nothing of Kubernetes: an answer is a value, an exception, or a function of the request. A watch is fed line by
line by the test.
"""

from __future__ import annotations

import json
import queue
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http import HTTPStatus

from voda_flows.kube.api import Api
from voda_flows.kube.retrying import Patience
from voda_flows.kube.transport import Answer, AnswerLost, Request
from voda_flows.objects import Object

Reply = Answer | Exception | Callable[[Request], Answer]


def answer(status: int, body: Object | None = None, **headers: str) -> Answer:
    """An answer."""
    by_name = {name.replace("_", "-"): text for name, text in headers.items()}
    return Answer(status=status, headers=by_name, body=json.dumps(body or {}).encode())


def refused(status: int, reason: str, message: str, **details: object) -> Answer:
    """A refusal, as the API server writes it."""
    body = {"kind": "Status", "status": "Failure", "reason": reason, "message": message, "code": status}
    return answer(status, {**body, **({"details": details} if details else {})})


def pod(name: str, version: int, **metadata: object) -> Object:
    """A pod of some version."""
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "namespace": "ns",
            "uid": f"uid-{name}",
            "resourceVersion": str(version),
            **metadata,
        },
    }


def listed(version: int, *items: Object, more: str = "") -> Answer:
    """A page of a list."""
    metadata = {"resourceVersion": str(version), **({"continue": more} if more else {})}
    return answer(200, {"kind": "PodList", "metadata": metadata, "items": list(items)})


class FakeStream:
    """A watch whose lines the test gives: bytes, an exception that ends it, or None for its end."""

    def __init__(self, head: Answer) -> None:
        self.answer = head
        self.given: queue.Queue[bytes | Exception | None] = queue.Queue()

    def lines(self) -> Iterator[bytes]:
        """See ``Stream.lines``."""
        while (line := self.given.get()) is not None:
            if isinstance(line, Exception):
                raise line
            yield line

    def tell(self, kind: str, body: Object) -> None:
        """Give an event."""
        self.given.put(json.dumps({"type": kind, "object": body}).encode())

    def bookmark(self, version: int) -> None:
        """Give a bookmark."""
        self.tell("BOOKMARK", {"kind": "Pod", "metadata": {"resourceVersion": str(version)}})

    def close(self) -> None:
        """See ``Stream.close``."""
        self.given.put(AnswerLost("closed"))


@dataclass(slots=True)
class FakeTransport:
    """A transport that answers by script.

    Attributes:
        replies: By ``METHOD path``, what is answered in order; the last one for ever.
        otherwise: The answer to what nobody laid out.
        asked: Every request, in order.
        streams: Watches as they are opened; the test takes them from here.
        heads: What the next watches begin with instead of 200.
        watches: The requests that opened them.
    """

    server: str = "https://server"
    replies: dict[str, list[Reply | None]] = field(default_factory=dict)
    otherwise: Reply | None = None
    asked: list[Request] = field(default_factory=list)
    streams: queue.Queue[FakeStream] = field(default_factory=queue.Queue)
    heads: list[Answer | Exception] = field(default_factory=list)
    watches: list[Request] = field(default_factory=list)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def on(self, request: str, *replies: Reply) -> None:
        """Lay out the answers to a request such as ``GET /api/v1/namespaces/ns/pods/a``."""
        self.replies[request] = list(replies)

    def send(self, request: Request) -> Answer:
        """See ``Transport.send``."""
        with self._lock:
            self.asked.append(request)
            replies = self.replies.get(f"{request.method} {request.path}", [self.otherwise])
            reply = replies.pop(0) if len(replies) > 1 else replies[0]
            assert reply is not None, f"nobody laid out an answer to {request.method} {request.path}"
        if isinstance(reply, Exception):
            raise reply
        return reply(request) if callable(reply) else reply

    def stream(self, request: Request, silence_s: float) -> FakeStream:
        """See ``Transport.stream``."""
        self.watches.append(request)
        head = self.heads.pop(0) if self.heads else answer(200)
        if isinstance(head, Exception):
            raise head
        made = FakeStream(head)
        if head.status == HTTPStatus.OK:
            self.streams.put(made)
        return made

    def close(self) -> None:
        """See ``Transport.close``."""

    def methods(self) -> list[str]:
        """What was asked, as methods."""
        return [request.method for request in self.asked]


@dataclass(slots=True)
class FakeTime:
    """A clock that goes on by sleeping only."""

    now_s: float = 0.0
    slept: list[float] = field(default_factory=list)

    def sleep(self, seconds: float) -> None:
        """Go on."""
        self.now_s += seconds
        self.slept.append(seconds)

    def clock(self) -> float:
        """The moment."""
        return self.now_s


def api_of(transport: FakeTransport, time: FakeTime | None = None) -> Api:
    """An Api whose pauses take no time."""
    time = time or FakeTime()
    return Api(transport, Patience(sleep=time.sleep, clock=time.clock))

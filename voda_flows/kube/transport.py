"""Requests and answers as they go over the wire, and what may become of them: the seam below which HTTP begins.

``connection.py`` sends them to an API server; tests put a transport of their own in its place. What matters to those
above is whether a request can have been carried out: one that was not sent was not, one whose answer was lost may have
been.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

MERGE_PATCH = "application/merge-patch+json"
#: JSON is YAML too, and the only name that every server knows for it here.
APPLY_PATCH = "application/apply-patch+yaml"
JSON = "application/json"


class NotSent(Exception):
    """The request did not reach the server: nothing was done."""


class AnswerLost(Exception):
    """The request was sent and no whole answer came: it may have been carried out, or may be yet."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bound:
    """What an answer may be like that somebody else than the API server writes, such as a job's own pod.

    Attributes:
        most_bytes: Of a larger one nothing is taken.
        most_s: How long it may take in all, however steadily it comes, seconds.
    """

    most_bytes: int
    most_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What is asked of the API server.

    Attributes:
        method: HTTP method.
        path: Path below the server's address.
        query: Parameters.
        body: JSON text, None for none.
        content_type: What the body is.
        limit_s: How long nothing may come of an answer before it counts as lost, seconds; the usual time where that is
            less, or none is given.
        bound: Beyond what a whole answer counts as lost; None for one that the API server itself writes.
    """

    method: str = "GET"
    path: str
    query: Mapping[str, str] = field(default_factory=dict)
    body: str | None = None
    content_type: str = JSON
    limit_s: float | None = None
    bound: Bound | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What it answered, as a whole.

    Attributes:
        status: HTTP status.
        headers: By name in lower case.
        body: The body's bytes.
    """

    status: int
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""

    def document(self) -> Any:  # noqa: ANN401 - any JSON
        """The body as JSON, an empty object where it is none; each call gives a new one."""
        try:
            return json.loads(self.body)
        except (ValueError, RecursionError):
            return {}

    def is_document(self) -> bool:
        """Whether the body is a JSON object: what stands before an API server may answer too, with a page to log in."""
        try:
            return isinstance(json.loads(self.body), dict)
        except (ValueError, RecursionError):
            return False


class Stream(Protocol):
    """An answer that goes on."""

    @property
    def answer(self) -> Answer:
        """Status and headers; the body too, and that is all, where the status is no 200."""
        ...

    def lines(self) -> Iterator[bytes]:
        """Its lines as they come, until the server ends it.

        Raises:
            AnswerLost: It was cut off, or nothing came for too long.
        """
        ...

    def close(self) -> None:
        """Let go of it; whoever waits for its lines is woken. May be called from another thread."""
        ...


class Transport(Protocol):
    """Carries requests to one API server; usable from all threads."""

    @property
    def server(self) -> str:
        """Its address, for messages."""
        ...

    def send(self, request: Request) -> Answer:
        """Send a request and wait for its answer, a limited time.

        Raises:
            NotSent: It was not sent.
            AnswerLost: No whole answer came in time.
            VodaError: Nobody can be reached like this, however often one tries (a certificate that is not trusted).
        """
        ...

    def stream(self, request: Request, silence_s: float) -> Stream:
        """Send a request whose answer goes on.

        Args:
            request: The request.
            silence_s: How long nothing may come before it counts as lost, seconds.

        Raises:
            NotSent: It was not sent.
            AnswerLost: No answer began in time.
            VodaError: As ``send``.
        """
        ...

    def close(self) -> None:
        """Let go of connections."""
        ...

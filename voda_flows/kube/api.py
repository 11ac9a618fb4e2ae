"""What is done to objects through the API server, each as often as it may be repeated and never more.

In: keys and raw documents; out: raw documents without ``managedFields`` (half of every object, and of no use to
anybody here), or errors of ours. A read is repeated until it is answered. So is a write, but once its answer was lost
it is first looked whether it was done: a guarded patch that was done would find a version that is not its guard's, a
creation would find its own object, a deletion might hit whoever took the name.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from http import HTTPStatus
from typing import Final

from scheduler_core.errors import NotFound
from voda_flows.kube.refusals import Asked, refusal
from voda_flows.kube.resources import Resource, resource_of
from voda_flows.kube.retrying import Attempts, Patience, is_busy, is_faulty, retry_after_s, said
from voda_flows.kube.transport import (
    APPLY_PATCH,
    MERGE_PATCH,
    Answer,
    AnswerLost,
    Bound,
    NotSent,
    Request,
    Stream,
    Transport,
)
from voda_flows.objects import Key, Object, merge_patch

_SUCCESS = range(200, 300)
_PATIENCE = Patience()
#: Objects in one page of a list: some megabytes of Workflows.
PAGE: Final = 250
#: How long a log may be silent before it is asked for anew, seconds.
SILENCE_S: Final = 60.0
#: What a pod may answer at most, in bytes (the reports of some 10,000 epochs) and in seconds: its job's owner decides
#: what it answers, and how fast.
POD_BYTES: Final = 4 * 2**20
POD_S: Final = 6.0
#: What only the server writes, in metadata.
_SERVERS = ("resourceVersion", "generation", "managedFields", "selfLink")


@dataclass(frozen=True, slots=True, kw_only=True)
class Listed:
    """All objects of a kind at one moment.

    Attributes:
        items: They.
        version: The moment, as a resourceVersion that a watch goes on from.
    """

    items: list[Object]
    version: str


@dataclass(frozen=True, slots=True, kw_only=True)
class _Tried:
    """One try: its answer, None where it is to be repeated, and whether the request may have been carried out."""

    answer: Answer | None
    may_be_done: bool


class Gone(Exception):
    """The API server has forgotten the version that a list or a watch was to go on from."""


class Api:
    """Calls to one API server; usable from all threads.

    Args:
        transport: Carries them.
        patience: How long they are repeated.
    """

    def __init__(self, transport: Transport, patience: Patience = _PATIENCE) -> None:
        self._transport = transport
        self._patience = patience

    def get(self, key: Key) -> Object:
        """The object as it is now.

        Raises:
            NotFound: There is none.
        """
        asked = Asked(verb="get", resource=resource_of(key.kind), key=key)
        answer = self._read(Request(path=asked.resource.path(key)), asked, self._attempts(asked))
        return plain(answer.document(), asked.resource)

    def list(self, resource: Resource, namespace: str, labels: Mapping[str, str] | None = None) -> Listed:
        """All objects of a kind as they are now, in one namespace or (where it is empty) in all.

        They are fetched in pages. Where a page comes too late for the moment that the first one is of, all are fetched
        at once.
        """
        asked = Asked(verb="list", resource=resource, key=Key(resource.kind, namespace, ""))
        query = {"labelSelector": ",".join(f"{name}={text}" for name, text in labels.items())} if labels else {}
        try:
            return self._pages(asked, query, PAGE)
        except Gone:
            return self._pages(asked, query, 0)

    def ask(
        self, resource: Resource, key: Key, path: str, query: Mapping[str, str], *, is_text: bool = False
    ) -> Answer:
        """What the server says at a path beside or below an object's, such as a pod's log.

        Args:
            resource: What the right to it is called, such as ``pods/log``.
            key: The object; of a list, the name is empty.
            path: The whole path.
            query: Parameters.
            is_text: Whether the answer is no JSON.

        Raises:
            NotFound: There is nothing.
            Forbidden: One may not see it.
        """
        asked = Asked(verb="get" if key.name else "list", resource=resource, key=key)
        return self._read(Request(path=path, query=query), asked, self._attempts(asked), is_text=is_text)

    def ask_once(self, path: str, limit_s: float, bound: Bound | None = None) -> Answer:
        """The answer at a path, whatever it is, in one try; it is lost after so many seconds of silence.

        Raises:
            NotSent, AnswerLost: As a transport.
        """
        return self._transport.send(Request(path=path, limit_s=limit_s, bound=bound))

    def follow(self, resource: Resource, key: Key, path: str, query: Mapping[str, str]) -> Stream:
        """As ``ask``, of an answer that goes on; one try.

        Raises:
            NotSent, AnswerLost: As a transport.
            VodaError: As ``ask``.
        """
        asked = Asked(verb="get", resource=resource, key=key)
        stream = self._transport.stream(Request(path=path, query=query), SILENCE_S)
        if stream.answer.status == HTTPStatus.OK:
            return stream
        if is_busy(stream.answer) or is_faulty(stream.answer):
            raise AnswerLost(said(stream.answer))
        raise _error(stream.answer, asked)

    def watch(self, resource: Resource, namespace: str, query: Mapping[str, str], silence_s: float) -> Stream:
        """The changes of a kind from a version on; one try.

        Raises:
            Gone: That version is forgotten: list anew.
            NotSent, AnswerLost: As a transport.
            VodaError: The server refuses.
        """
        asked = Asked(verb="watch", resource=resource, key=Key(resource.kind, namespace, ""))
        request = Request(path=resource.collection(namespace), query={"watch": "true", **query})
        stream = self._transport.stream(request, silence_s)
        if stream.answer.status == HTTPStatus.OK:
            return stream
        if is_busy(stream.answer) or is_faulty(stream.answer):
            raise AnswerLost(said(stream.answer))
        raise _error(stream.answer, asked)

    def create(self, key: Key, text: str, *, is_trial: bool = False) -> Answer:
        """Make an object; unknown fields are refused by name.

        Args:
            key: The object; its name may be empty where it is only tried.
            text: The document.
            is_trial: Whether the server only says what it would do.

        Raises:
            Conflict: The name is taken.
            InvalidValue: It is no such object.
        """
        asked = Asked(verb="create", resource=resource_of(key.kind), key=key)
        request = Request(
            method="POST",
            path=asked.resource.collection(key.namespace),
            query={"fieldValidation": "Strict", **({"dryRun": "All"} if is_trial else {})},
            body=text,
        )
        if is_trial:
            return self._read(request, asked, self._attempts(asked))
        return self._write(request, asked, self._if(asked, lambda found: _holds(found, text)))

    def patch(self, key: Key, text: str, is_done: Callable[[Object], bool]) -> Answer:
        """Lay a merge-patch over an object.

        Args:
            key: The object.
            text: The patch; a version in it is a guard.
            is_done: Whether an object is as the patch leaves it.

        Raises:
            NotFound: There is none.
            Conflict: A guard does not hold.
        """
        asked = Asked(verb="patch", resource=resource_of(key.kind), key=key)
        path = asked.resource.path(key)
        request = Request(method="PATCH", path=path, body=text, content_type=MERGE_PATCH)
        return self._write(request, asked, self._if(asked, is_done))

    def apply(self, resource: Resource, key: Key, text: str, query: Mapping[str, str]) -> Answer:
        """Server-side apply: make an object, or make it so; sent until it is answered, as again changes nothing.

        Args:
            resource: Of what kind; any that the server knows.
            key: Which object.
            text: What is wanted of it.
            query: ``fieldManager``, and what else matters (``dryRun``, ``force``).

        Returns:
            The object; status 201 where it was made.

        Raises:
            NotFound: The namespace or the kind is not there.
            Conflict: Somebody else set a field to something else.
            InvalidValue: It is no such object.
        """
        asked = Asked(verb="apply", resource=resource, key=key)
        request = Request(
            method="PATCH",
            path=resource.path(key),
            query={"fieldValidation": "Strict", **query},
            body=text,
            content_type=APPLY_PATCH,
        )
        return self._read(request, asked, self._attempts(asked))

    def replace(self, key: Key, text: str) -> Answer:
        """Put an object in the place of the version that it names; raises as ``patch``."""
        asked = Asked(verb="update", resource=resource_of(key.kind), key=key)
        request = Request(method="PUT", path=asked.resource.path(key), body=text)
        return self._write(request, asked, self._if(asked, lambda found: _holds(found, text)))

    def delete(self, key: Key, text: str, uid: str, resource: Resource | None = None) -> Answer:
        """Delete the object of that uid.

        Args:
            key: Where it is.
            text: DeleteOptions, guarded by the uid.
            uid: The uid.
            resource: Of what kind, where it is none that a store has.

        Raises:
            NotFound: There is none of that name.
            Conflict: A guard does not hold.
        """
        asked = Asked(verb="delete", resource=resource or resource_of(key.kind), key=key)
        request = Request(method="DELETE", path=asked.resource.path(key), body=text)

        def is_done(attempts: Attempts) -> Answer | None:
            found = self._look(asked, attempts)
            if found is None:
                return Answer(status=HTTPStatus.OK)
            metadata = found.document()["metadata"]
            is_other = metadata["uid"] != uid
            return Answer(status=HTTPStatus.OK) if is_other else found if "deletionTimestamp" in metadata else None

        return self._write(request, asked, is_done)

    def ask_pod(self, key: tuple[str, str], port: int, path: str, limit_s: float) -> Object | None:
        """One GET of a pod's own HTTP server, through the API server; tried once.

        Args:
            key: Namespace and name of the pod.
            port: Where it listens.
            path: Path of the resource there.
            limit_s: How long it may be silent, seconds.

        Returns:
            The JSON object that it answered; None where nobody answers in time, too much, or one may not ask.
        """
        place = f"{resource_of('Pod').path(Key('Pod', *key))}:{port}/proxy/{path}"
        try:
            answer = self.ask_once(place, limit_s, Bound(most_bytes=POD_BYTES, most_s=POD_S))
        except (NotSent, AnswerLost):
            return None
        found = answer.document() if answer.status == HTTPStatus.OK else None
        return found if isinstance(found, dict) else None

    def close(self) -> None:
        """Let go of connections."""
        self._transport.close()

    def _attempts(self, asked: Asked) -> Attempts:
        return Attempts(asked.words, self._patience, self._transport.server)

    def _pages(self, asked: Asked, query: Mapping[str, str], limit: int) -> Listed:
        items: list[Object] = []
        more = ""
        while True:
            page = {**({"limit": str(limit)} if limit else {}), **query, **({"continue": more} if more else {})}
            request = Request(path=asked.resource.collection(asked.key.namespace), query=page)
            found = self._read(request, asked, self._attempts(asked)).document()
            items += [plain(body, asked.resource) for body in found.get("items") or ()]
            metadata = found.get("metadata") or {}
            more = metadata.get("continue") or ""
            if not more:
                return Listed(items=items, version=str(metadata.get("resourceVersion") or ""))

    def _read(self, request: Request, asked: Asked, attempts: Attempts, *, is_text: bool = False) -> Answer:
        """Send a request that changes nothing until it is answered."""
        for _ in attempts:
            answer = self._try(request, attempts, is_text=is_text).answer
            if answer is not None:
                return _success(answer, asked)
        raise AssertionError

    def _write(self, request: Request, asked: Asked, done: Callable[[Attempts], Answer | None]) -> Answer:
        """Send a request that changes something, and never again where it was carried out."""
        doubt, attempts = False, self._attempts(asked)
        for _ in attempts:
            if doubt and (found := done(attempts)) is not None:
                return found
            tried = self._try(request, attempts)
            if tried.answer is None:
                doubt = doubt or tried.may_be_done
                continue
            # In doubt, a refusal may be the echo of our own deed, which arrived after we had looked.
            if doubt and tried.answer.status not in _SUCCESS and (found := done(attempts)) is not None:
                return found
            return _success(tried.answer, asked)
        raise AssertionError

    def _try(self, request: Request, attempts: Attempts, *, is_text: bool = False) -> _Tried:
        """One try; no answer where it is to be repeated."""
        try:
            answer = self._transport.send(replace(request, limit_s=attempts.left_s()))
        except NotSent as fault:
            attempts.note(f"no connection ({fault})")
            return _Tried(answer=None, may_be_done=False)
        except AnswerLost as fault:
            attempts.note(f"no whole answer ({fault})")
            return _Tried(answer=None, may_be_done=True)
        if is_busy(answer) or is_faulty(answer):
            attempts.note(said(answer), retry_after_s(answer))
            return _Tried(answer=None, may_be_done=is_faulty(answer))
        if answer.status in _SUCCESS and not is_text and not answer.is_document():
            attempts.note("an answer that is no JSON object: is something before the API server?")
            return _Tried(answer=None, may_be_done=True)
        return _Tried(answer=answer, may_be_done=True)

    def _look(self, asked: Asked, attempts: Attempts) -> Answer | None:
        """The object as it is, None where there is none."""
        try:
            return self._read(Request(path=asked.resource.path(asked.key)), asked, attempts)
        except NotFound:
            return None

    def _if(self, asked: Asked, is_done: Callable[[Object], bool]) -> Callable[[Attempts], Answer | None]:
        """Looks at the object: the answer that shows it where it is as the write leaves it, else None."""

        def done(attempts: Attempts) -> Answer | None:
            found = self._look(asked, attempts)
            return found if found is not None and is_done(found.document()) else None

        return done


def plain(body: Object, resource: Resource) -> Object:
    """A document as everybody here has it: with its kind, which lists leave out, and without ``managedFields``."""
    body.setdefault("kind", resource.kind)
    body.setdefault("apiVersion", resource.api_version)
    body.get("metadata", {}).pop("managedFields", None)
    return body


def _success(answer: Answer, asked: Asked) -> Answer:
    if answer.status in _SUCCESS:
        return answer
    raise _error(answer, asked)


def _error(answer: Answer, asked: Asked) -> Exception:
    if answer.status == HTTPStatus.GONE:
        return Gone(said(answer))
    return refusal(answer, asked)


def _holds(found: Object, text: str) -> bool:
    """Whether an object has all that a document says, but for what the server alone writes."""
    wanted = json.loads(text)
    for name in _SERVERS:
        wanted["metadata"].pop(name, None)
    return bool(merge_patch(found, wanted) == found)

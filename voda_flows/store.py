"""What every part that reads or changes objects asks of the world it is in.

``voda_flows/local/store.py`` is the store of this machine, ``voda_flows/kube/store.py`` that of a cluster. Errors are
those of ``scheduler_core.errors``, whatever lies below; what all stores say in the same words is here.
"""

from __future__ import annotations

import json
import re
import secrets
from collections.abc import Mapping
from typing import Protocol

from scheduler_core.errors import Conflict, InvalidValue, NotFound
from voda_flows.objects import Key, Object, key_of

__all__ = ["Object", "ObjectStore", "absent", "another", "json_text", "moved", "new_key", "taken"]

_NAME = re.compile(r"[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?")
_SUFFIX_LETTERS = "bcdfghjklmnpqrstvwxz2456789"


class ObjectStore(Protocol):
    """Keeps objects by kind, namespace and name; every change gets a version of its own."""

    def get(self, kind: str, namespace: str, name: str) -> Object:
        """The object.

        Raises:
            NotFound: There is none of that name.
        """
        ...

    def list(self, kind: str, namespace: str | None = None, labels: Mapping[str, str] | None = None) -> list[Object]:
        """Objects of a kind, of one namespace or of all, with all these labels; sorted by (namespace, name)."""
        ...

    def snapshot(self, kind: str) -> Mapping[Key, Object]:
        """All objects of a kind by key, in order of (namespace, name); for reading only: the values are shared.

        Only what changed since the last call is read anew. One thread may use it.
        """
        ...

    def create(self, body: Object) -> Object:
        """Keep a new object and return it with uid, creationTimestamp and resourceVersion.

        ``metadata.generateName`` gives a name where there is none.

        Raises:
            Conflict: One of that name exists.
            InvalidValue: Its kind or name is none.
        """
        ...

    def merge_patch(
        self, kind: str, namespace: str, name: str, patch: Object, *, resource_version: str | None = None
    ) -> Object:
        """Lay a patch over the object (RFC 7386) and return the result; what changes nothing makes no new version.

        A ``metadata.resourceVersion`` or ``metadata.uid`` in the patch is a guard too.

        Raises:
            NotFound: There is none of that name.
            Conflict: It has another version (or uid) than the guard's.
        """
        ...

    def replace(self, body: Object) -> Object:
        """Put the document in the place of the one with its version.

        Raises:
            NotFound: There is none of that name.
            Conflict: It has another version or uid than the body's.
        """
        ...

    def delete(
        self, kind: str, namespace: str, name: str, *, uid: str | None = None, version: str | None = None
    ) -> None:
        """Delete the object, and with it what it owns.

        A Pod or a Workflow gets ``metadata.deletionTimestamp`` and goes once its processes have ended.

        Raises:
            NotFound: There is none of that name.
            Conflict: It has another uid or version than asked for.
        """
        ...

    def revision(self) -> int:
        """A number that grows with every change of an object that the store watches; local mode watches all."""
        ...

    def wait(self, since: int, timeout_s: float) -> int:
        """The revision, as soon as it is higher than ``since`` or the time is over."""
        ...


def new_key(body: Object) -> Key:
    """The place of an object that is to be made; ``metadata.generateName`` gives a name where there is none.

    Raises:
        InvalidValue: Its kind or its name is none.
    """
    key = key_of(body)
    if not key.name and (prefix := body["metadata"].get("generateName")):
        suffix = "".join(secrets.choice(_SUFFIX_LETTERS) for _ in range(5))
        key = key._replace(name=f"{prefix}{suffix}")
    if not _NAME.fullmatch(key.name):
        raise InvalidValue(
            f"{key}: expected a name of at most 253 lower-case letters, digits, '-' and '.', got {key.name!r} "
            "(at $.metadata.name)"
        )
    return key


def json_text(key: Key, body: Object) -> str:
    """A document as JSON.

    Raises:
        InvalidValue: It holds something that JSON does not know.
    """
    try:
        return json.dumps(body, separators=(",", ":"), allow_nan=False)
    except (TypeError, ValueError) as error:
        raise InvalidValue(f"{key}: expected a document that can be JSON, got one that cannot: {error}") from error


def absent(key: Key) -> NotFound:
    """The error for an object that is not there."""
    return NotFound(f"{key}: expected it to exist, there is none of that name")


def taken(key: Key) -> Conflict:
    """The error for a new object whose name exists."""
    return Conflict(f"{key}: expected a new name, it exists already; delete it first or choose another name")


def moved(key: Key, expected: str, found: str) -> Conflict:
    """The error for an object that has another version than the guard's."""
    return Conflict(
        f"{key}: expected version {expected}, found {found}: it changed since it was read; read it again and repeat"
    )


def another(key: Key, expected: str, found: str) -> Conflict:
    """The error for an object that has another uid than the guard's."""
    return Conflict(f"{key}: expected uid {expected}, found {found}: another object took its name; read it again")

"""What every part that reads or changes objects asks of the world it is in.

``voda_flows/local/store.py`` is the store of this machine. Errors are those of ``scheduler_core.errors``, whatever
lies below.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from voda_flows.objects import Key, Object

__all__ = ["Object", "ObjectStore"]


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
        """A number that grows with every change of any object."""
        ...

    def wait(self, since: int, timeout_s: float) -> int:
        """The revision, as soon as it is higher than ``since`` or the time is over."""
        ...

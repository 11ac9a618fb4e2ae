"""A cluster's objects for people: asked of the server once, and taken from watches by whoever stays with them.

A command that lists and returns sends one request. One that follows (it has asked for the store's ``revision``) lists
again at every change, and must not ask the server for that each time.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from scheduler_core.errors import Forbidden
from voda_flows.kube.store import KubeStore
from voda_flows.objects import CLUSTER_SCOPED, Key, Object, has_labels
from voda_flows.store import absent

#: Kinds of which much is seen at every look.
FOLLOWED = frozenset({"Workflow", "Pod", "Node"})


class LiveStore:
    """``ObjectStore`` on another one.

    Args:
        store: The cluster's.
        is_followed: Whether somebody else follows; None for when it is this store itself that is followed.
    """

    def __init__(self, store: KubeStore, is_followed: Callable[[], bool] | None = None) -> None:
        self._store = store
        self._is_live = False
        self._is_followed = is_followed or (lambda: self._is_live)
        self._denied: dict[str, Forbidden] = {}

    @property
    def is_live(self) -> bool:
        """Whether somebody stays with it."""
        return self._is_live

    def get(self, kind: str, namespace: str, name: str) -> Object:
        """See ``ObjectStore.get``."""
        if not self._knows(kind, namespace):
            return self._store.get(kind, namespace, name)
        key = Key(kind, namespace, name)
        found = self.snapshot(kind).get(key)
        if found is None:
            raise absent(key)
        return found

    def list(self, kind: str, namespace: str | None = None, labels: Mapping[str, str] | None = None) -> list[Object]:
        """See ``ObjectStore.list``."""
        if not self._knows(kind, namespace):
            return self._store.list(kind, namespace, labels)
        return [
            body
            for key, body in self.snapshot(kind).items()
            if namespace in (None, key.namespace) and has_labels(body, labels or {})
        ]

    def snapshot(self, kind: str) -> Mapping[Key, Object]:
        """See ``ObjectStore.snapshot``; what was refused once is not asked for again."""
        if kind in self._denied:
            raise self._denied[kind]
        try:
            return self._store.snapshot(kind)
        except Forbidden as denied:
            self._denied[kind] = denied
            raise

    def create(self, body: Object) -> Object:
        """See ``ObjectStore.create``."""
        return self._store.create(body)

    def merge_patch(
        self, kind: str, namespace: str, name: str, patch: Object, *, resource_version: str | None = None
    ) -> Object:
        """See ``ObjectStore.merge_patch``."""
        return self._store.merge_patch(kind, namespace, name, patch, resource_version=resource_version)

    def replace(self, body: Object) -> Object:
        """See ``ObjectStore.replace``."""
        return self._store.replace(body)

    def delete(
        self, kind: str, namespace: str, name: str, *, uid: str | None = None, version: str | None = None
    ) -> None:
        """See ``ObjectStore.delete``."""
        self._store.delete(kind, namespace, name, uid=uid, version=version)

    def revision(self) -> int:
        """See ``ObjectStore.revision``."""
        self._is_live = True
        return self._store.revision()

    def wait(self, since: int, timeout_s: float) -> int:
        """See ``ObjectStore.wait``."""
        return self._store.wait(since, timeout_s)

    def ask_pod(self, key: tuple[str, str], port: int, path: str) -> Object | None:
        """See ``KubeStore.ask_pod``."""
        return self._store.ask_pod(key, port, path)

    def close(self) -> None:
        """End watches and let go of connections."""
        self._store.close()

    def _knows(self, kind: str, namespace: str | None) -> bool:
        """Whether watches tell of these objects."""
        if kind not in FOLLOWED or not self._is_followed():
            return False
        places = self._store.scope.namespaces
        return kind in CLUSTER_SCOPED or not places or namespace is None or namespace in places

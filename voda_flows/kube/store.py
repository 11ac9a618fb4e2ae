"""The object store of a Kubernetes cluster: ``ObjectStore`` on its API server.

``get`` and ``list`` ask the server: what they give is as it is now. ``snapshot`` gives what watches have told, and
never an object older than our own last write to it; ``revision`` counts the changes of what is watched, our own among
them. Bodies are raw documents, checked by the server.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from scheduler_core.errors import Conflict, InvalidValue, VodaError
from voda_flows.kube.api import Api, plain
from voda_flows.kube.cache import Cache, Changes
from voda_flows.kube.resources import resource_of
from voda_flows.kube.transport import Answer
from voda_flows.kube.watching import Place, Watcher
from voda_flows.objects import Key, Object, key_of, merge_patch
from voda_flows.store import another, json_text, moved, new_key

#: What no writer may change.
_IDENTITY = ("name", "namespace", "creationTimestamp", "deletionTimestamp")
#: A Workflow stays until its pods are gone; what others own goes after them, and nobody waits for that.
_PROPAGATION = {"Workflow": "Foreground"}
#: Argo's controller goes on with a Workflow that is being deleted, makes pods anew that were deleted with it, and runs
#: steps that continue on failure; only one that was terminated gets no more pods.
_LAST_WORDS = {"Workflow": {"spec": {"shutdown": "Terminate"}}}
_GRACE = "deletionGracePeriodSeconds"
#: A driver answers from memory; the way there is through the API server and its tunnel to the node.
_POD_ANSWER_S = 3.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Scope:
    """Which objects a store is about.

    Attributes:
        namespaces: Those whose objects are listed and watched; none for all of the cluster's.
        everywhere: Kinds that are listed and watched in all namespaces in any case.
        watched: Kinds whose changes, whoever makes them, are counted and waited for.
    """

    namespaces: tuple[str, ...] = ()
    everywhere: frozenset[str] = frozenset()
    watched: tuple[str, ...] = ("Workflow", "Pod", "Node")

    def places(self, kind: str) -> tuple[Place, ...]:
        """Where the objects of a kind are."""
        resource = resource_of(kind)
        is_whole = not resource.namespaced or kind in self.everywhere or not self.namespaces
        return tuple(Place(resource=resource, namespace=name) for name in ([""] if is_whole else self.namespaces))


class KubeStore:
    """Objects of a cluster; an instance is usable from all threads.

    Args:
        api: The API server.
        scope: Which objects it is about.
    """

    def __init__(self, api: Api, scope: Scope = Scope()) -> None:
        self._api = api
        self.scope = scope
        self._changes = Changes()
        self._starting = threading.Lock()
        self._kinds: Mapping[str, _Watched] = MappingProxyType({})

    def get(self, kind: str, namespace: str, name: str) -> Object:
        """See ``ObjectStore.get``."""
        return self._api.get(Key(kind, namespace, name))

    def list(self, kind: str, namespace: str | None = None, labels: Mapping[str, str] | None = None) -> list[Object]:
        """See ``ObjectStore.list``."""
        resource = resource_of(kind)
        chosen = [place.namespace for place in self.scope.places(kind)] if namespace is None else [namespace]
        found = [body for name in chosen for body in self._api.list(resource, name, labels).items]
        return sorted(found, key=key_of)

    def snapshot(self, kind: str) -> Mapping[Key, Object]:
        """See ``ObjectStore.snapshot``; the first call for a kind lists it and begins to watch it.

        Raises:
            Unreachable: There was no contact for so long that what is known is too old.
            Forbidden: The account may not list or watch that.
        """
        return self._watch(kind).snapshot()

    def create(self, body: Object) -> Object:
        """See ``ObjectStore.create``."""
        key = new_key(body)
        metadata = {**body["metadata"], "name": key.name, **({"namespace": key.namespace} if key.namespace else {})}
        metadata.pop("deletionTimestamp", None)
        if not key.namespace:
            metadata.pop("namespace", None)
        answer = self._api.create(key, json_text(key, {**body, "metadata": metadata}))
        return self._wrote(key, answer)

    def merge_patch(
        self, kind: str, namespace: str, name: str, patch: Object, *, resource_version: str | None = None
    ) -> Object:
        """See ``ObjectStore.merge_patch``."""
        key = Key(kind, namespace, name)
        change = _without_identity(key, patch)
        guard = change.get("metadata") or {}
        version, uid = resource_version or guard.get("resourceVersion"), guard.get("uid")
        sent = merge_patch(change, {"metadata": {"resourceVersion": version}}) if version else change
        pure = merge_patch(change, {"metadata": {"resourceVersion": None}}) if guard else change

        def is_done(found: Object) -> bool:
            return bool(merge_patch(found, pure) == found)

        try:
            return self._wrote(key, self._api.patch(key, json_text(key, sent), is_done))
        except Conflict as conflict:
            raise self._seen(key, version, uid, conflict) from conflict

    def replace(self, body: Object) -> Object:
        """See ``ObjectStore.replace``."""
        key, metadata = key_of(body), body["metadata"]
        version, uid = metadata.get("resourceVersion"), metadata.get("uid")
        if not version:
            raise InvalidValue(f"{key}: expected the version it was read at, got none (at $.metadata.resourceVersion)")
        try:
            return self._wrote(key, self._api.replace(key, json_text(key, body)))
        except Conflict as conflict:
            raise self._seen(key, version, uid, conflict) from conflict

    def delete(
        self, kind: str, namespace: str, name: str, *, uid: str | None = None, version: str | None = None
    ) -> None:
        """See ``ObjectStore.delete``; objects that others own are deleted by the cluster, soon after."""
        key = Key(kind, namespace, name)
        wanted = uid or str(self._api.get(key)["metadata"]["uid"])
        if kind in _LAST_WORDS:
            change = {**_LAST_WORDS[kind], "metadata": {"uid": wanted}}
            ended = self.merge_patch(kind, namespace, name, change, resource_version=version)
            version = version and str(ended["metadata"]["resourceVersion"])
        guards = {"uid": wanted, **({"resourceVersion": version} if version else {})}
        options = {
            "apiVersion": "v1",
            "kind": "DeleteOptions",
            "preconditions": guards,
            "propagationPolicy": _PROPAGATION.get(kind, "Background"),
        }
        try:
            answer = self._api.delete(key, json_text(key, options), wanted)
        except Conflict as conflict:
            raise self._seen(key, version, uid, conflict) from conflict
        self._deleted(key, wanted, answer)

    def revision(self) -> int:
        """See ``ObjectStore.revision``: changes of the kinds that are watched; the first call begins that."""
        for kind in self.scope.watched:
            self._watch(kind)
        return self._changes.count()

    def wait(self, since: int, timeout_s: float) -> int:
        """See ``ObjectStore.wait``."""
        revision = self.revision()
        return revision if revision > since else self._changes.wait(since, timeout_s)

    def ask_pod(self, key: tuple[str, str], port: int, path: str) -> Object | None:
        """See ``report.drivers.PodProxy``: through the API server, whose account needs ``get`` of ``pods/proxy``."""
        return self._api.ask_pod(key, port, path, _POD_ANSWER_S)

    def close(self) -> None:
        """End watches and let go of connections."""
        with self._starting:
            for watched in self._kinds.values():
                watched.close()
            self._kinds = MappingProxyType({})
        self._api.close()

    def _watch(self, kind: str) -> _Watched:
        """The watched kind; the first call begins to watch it."""
        found = self._kinds.get(kind)
        if found is None:
            with self._starting:
                found = self._kinds.get(kind)
                if found is None:
                    found = self._begin(kind)
                    self._kinds = MappingProxyType({**self._kinds, kind: found})
        return found

    def _begin(self, kind: str) -> _Watched:
        cache = Cache(self._changes)
        watchers = tuple(Watcher(place, self._api, cache) for place in self.scope.places(kind))
        watched = _Watched(cache=cache, watchers=watchers)
        try:
            for watcher in watched.watchers:
                watcher.start()
        except BaseException:
            watched.close()
            raise
        return watched

    def _wrote(self, key: Key, answer: Answer) -> Object:
        """The answer to a write, which the cache has before anybody else."""
        resource = resource_of(key.kind)
        watched = self._kinds.get(key.kind)
        if watched is not None and watched.has(key):
            watched.cache.wrote(plain(answer.document(), resource))
        return plain(answer.document(), resource)

    def _deleted(self, key: Key, uid: str, answer: Answer) -> None:
        """Tell the cache what became of an object: gone at once, or told to go."""
        watched, body = self._kinds.get(key.kind), answer.document()
        if watched is None or not watched.has(key):
            return
        metadata = body.get("metadata") or {}
        if "deletionTimestamp" in metadata and (metadata.get("finalizers") or metadata.get(_GRACE)):
            watched.cache.wrote(plain(body, resource_of(key.kind)))
        else:
            watched.cache.deleted(key, uid)

    def _seen(self, key: Key, version: str | None, uid: str | None, conflict: Conflict) -> VodaError:
        """What a conflict is about; the object as it is now goes into the cache, which is behind."""
        try:
            found = self._api.get(key)
        except VodaError:
            return conflict
        metadata, watched = found["metadata"], self._kinds.get(key.kind)
        if watched is not None and watched.has(key):
            watched.cache.wrote(found)
        if uid and metadata["uid"] != uid:
            return another(key, uid, metadata["uid"])
        if version and metadata["resourceVersion"] != version:
            return moved(key, version, metadata["resourceVersion"])
        return conflict


@dataclass(frozen=True, slots=True, kw_only=True)
class _Watched:
    """A kind that is watched.

    Attributes:
        cache: What is known.
        watchers: What keeps it up to date, one for each place.
    """

    cache: Cache
    watchers: tuple[Watcher, ...]

    def has(self, key: Key) -> bool:
        """Whether an object is in one of the places."""
        return any(watcher.place.namespace in ("", key.namespace) for watcher in self.watchers)

    def snapshot(self) -> Mapping[Key, Object]:
        """What is known, where that is not too old."""
        for watcher in self.watchers:
            watcher.check()
        return self.cache.snapshot()

    def close(self) -> None:
        """End the watches."""
        for watcher in self.watchers:
            watcher.close()


def _without_identity(key: Key, patch: Object) -> Object:
    """A patch without what no writer may change."""
    metadata = patch.get("metadata", {})
    if not isinstance(metadata, dict):
        raise InvalidValue(f"{key}: expected an object, got {metadata!r} (at $.metadata)")
    kept = {name: value for name, value in metadata.items() if name not in _IDENTITY}
    rest = {name: value for name, value in patch.items() if name not in ("kind", "apiVersion", "metadata")}
    return {**rest, **({"metadata": kept} if kept else {})}

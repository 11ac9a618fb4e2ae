"""The stored target: one ConfigMap, replaced by compare-and-swap, so that a scheduler that restarts goes on from it."""

from __future__ import annotations

import logging
from collections.abc import Callable

from scheduler_core.errors import InvalidValue, NotFound
from scheduler_core.model.target import Target
from voda_flows.control.lease import EPOCH, Lease
from voda_flows.objects import Object
from voda_flows.store import ObjectStore
from voda_flows.wire import from_json, to_json

log = logging.getLogger(__name__)

TARGET_MAP = "voda-target"
_KEY = "target"


class StoredTarget:
    """The target in an object store.

    Args:
        store: Where it is kept.
        namespace: The scheduler's own.
        lease: What gives the right to decide on it, None for readers.
        decided: Told of each target that was stored, with the one before.
    """

    def __init__(
        self,
        store: ObjectStore,
        namespace: str,
        lease: Lease | None = None,
        decided: Callable[[Target, Target], None] = lambda _before, _after: None,
    ) -> None:
        self._store = store
        self._namespace = namespace
        self._lease = lease
        self._decided = decided
        self._seen: Object | None = None
        self.loaded = Target()
        """What ``load`` gave last."""

    def load(self) -> Target:
        """See ``scheduler_core.model.ports.TargetStore``; one that cannot be read counts as none.

        Raises:
            Conflict: The Lease was lost meanwhile: what was observed must not be decided on.
        """
        self.loaded = self._read()
        if self._lease is not None:
            self._lease.confirm()
        return self.loaded

    def save(self, target: Target) -> None:
        """See ``scheduler_core.model.ports.TargetStore``."""
        self._keep(target)
        self._decided(self.loaded, target)

    def _keep(self, target: Target) -> None:
        data = {_KEY: to_json(target)}
        if self._seen is None:
            self._seen = self._store.create(
                {
                    "apiVersion": "v1",
                    "kind": "ConfigMap",
                    "metadata": {"name": TARGET_MAP, "namespace": self._namespace},
                    "data": data,
                }
            )
            return
        version = self._seen["metadata"]["resourceVersion"]
        self._seen = self._store.merge_patch(
            "ConfigMap", self._namespace, TARGET_MAP, {"data": data}, resource_version=version
        )

    def fence(self, lease: Lease) -> None:
        """Make the version that an older holder of the Lease may know stale, even that there was none."""
        try:
            found = self._store.get("ConfigMap", self._namespace, TARGET_MAP)
        except NotFound:
            metadata = {"name": TARGET_MAP, "namespace": self._namespace, "annotations": {EPOCH: str(lease.epoch)}}
            data = {_KEY: to_json(Target())}
            self._store.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data})
            return
        lease.confirm()
        lease.fence([found])

    def _read(self) -> Target:
        try:
            self._seen = self._store.get("ConfigMap", self._namespace, TARGET_MAP)
        except NotFound:
            self._seen = None
            return Target()
        try:
            return from_json((self._seen.get("data") or {}).get(_KEY) or "", Target)
        except InvalidValue as fault:
            log.warning("configmap=%s unreadable=%r decisions begin anew", TARGET_MAP, str(fault))
            return Target()

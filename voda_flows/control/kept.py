"""What was learned of jobs, kept in the ConfigMap ``voda-learned``: a scheduler that restarts goes on from it.

Nothing depends on it but how good estimates are: what cannot be read counts as nothing, what cannot be written is tried
again later, and neither stops anything. It is bounded: what was heard of last stays.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeVar

from scheduler_core.errors import Conflict, InvalidValue, NotFound, VodaError
from scheduler_core.estimate.costs import Changes
from scheduler_core.estimate.rows import History
from voda_flows.control.lease import EPOCH, Lease
from voda_flows.objects import Object
from voda_flows.store import ObjectStore
from voda_flows.wire import encode, from_json, to_json

log = logging.getLogger(__name__)

LEARNED_MAP = "voda-learned"
_KEY = "learned"
#: A ConfigMap holds 1 MB at most; categories have a quarter of this for sure.
_MOST_BYTES = 600_000

T = TypeVar("T", "JobLearned", History)


@dataclass(frozen=True, slots=True, kw_only=True)
class JobLearned:
    """What is known of a live job, and how far its driver was read.

    Attributes:
        history: What is known.
        driver: Uid of the driver that was read last.
        rows_read: Report rows of it that were read.
        resizes_read: Resize records of it that were read.
    """

    history: History = History()
    driver: str = ""
    rows_read: int = 0
    resizes_read: int = 0

    @property
    def last_s(self) -> float:
        """When it was last heard of, seconds since the epoch."""
        return self.history.last_s


@dataclass(frozen=True, slots=True, kw_only=True)
class Learned:
    """All that was learned.

    Attributes:
        jobs: Live jobs by id.
        categories: Categories, by name and GPU type.
        changes: What changes of running jobs cost, by kind.
    """

    jobs: Mapping[str, JobLearned] = field(default_factory=dict)
    categories: Mapping[str, History] = field(default_factory=dict)
    changes: Mapping[str, Changes] = field(default_factory=dict)


class Kept:
    """What was learned, in an object store.

    Args:
        store: Where it is kept.
        namespace: The scheduler's own.
        lease: Who writes it; one that was taken over meanwhile writes no more. None for readers.
    """

    def __init__(self, store: ObjectStore, namespace: str, lease: Lease | None = None) -> None:
        self._store = store
        self._namespace = namespace
        self._lease = lease

    def load(self) -> Learned:
        """What is kept, nothing where that cannot be read."""
        try:
            found = self._store.get("ConfigMap", self._namespace, LEARNED_MAP)
            return from_json((found.get("data") or {}).get(_KEY) or "", Learned)
        except NotFound:
            return Learned()
        except VodaError as fault:
            log.warning("configmap=%s unreadable=%r learning begins anew", LEARNED_MAP, str(fault))
            return Learned()

    def save(self, learned: Learned) -> None:
        """Keep it in the place of what was kept."""
        try:
            data = {_KEY: to_json(bounded(learned))}
            epoch = {EPOCH: str(self._lease.epoch)} if self._lease else {}
            try:
                found = self._store.get("ConfigMap", self._namespace, LEARNED_MAP)
            except NotFound:
                metadata = {"name": LEARNED_MAP, "namespace": self._namespace, "annotations": epoch}
                body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}
                self._store.create(body)
                return
            self._check_epoch(found)
            change = {"metadata": {"annotations": epoch}, "data": data}
            version = found["metadata"]["resourceVersion"]
            self._store.merge_patch("ConfigMap", self._namespace, LEARNED_MAP, change, resource_version=version)
        except (VodaError, ValueError) as fault:
            log.warning("configmap=%s not_written=%r", LEARNED_MAP, str(fault))

    def _check_epoch(self, found: Object) -> None:
        text = (found["metadata"].get("annotations") or {}).get(EPOCH) or "0"
        if not text.isdigit():
            raise InvalidValue(f"ConfigMap {LEARNED_MAP}: expected an epoch, got {text!r}")
        if self._lease is not None and int(text) > self._lease.epoch:
            raise Conflict(f"ConfigMap {LEARNED_MAP}: expected epoch {self._lease.epoch} at most, got {text}")


def bounded(learned: Learned, most_bytes: int = _MOST_BYTES) -> Learned:
    """What fits into a ConfigMap: of categories, then of jobs, those heard of last."""
    categories, used = _newest(learned.categories, most_bytes // 4)
    jobs, _ = _newest(learned.jobs, most_bytes - used)
    return Learned(jobs=jobs, categories=categories, changes=learned.changes)


def _newest(entries: Mapping[str, T], most_bytes: int) -> tuple[dict[str, T], int]:
    """The entries heard of last that fit, by name in order, and the bytes that they take."""
    found, used = {}, 0
    for name in sorted(entries, key=lambda one: (-entries[one].last_s, one)):
        size = len(json.dumps({name: encode(entries[name])}))
        if used + size > most_bytes:
            break
        found[name], used = entries[name], used + size
    return dict(sorted(found.items())), used

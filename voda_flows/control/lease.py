"""Who decides: a Lease in the scheduler's namespace, whose expiry is judged by the observer's own clock.

A holder renews it; whoever sees it unchanged for its whole duration, by his own clock, may take it. A holder whose pod
has ended is not waited for. A Lease cannot guard writes to other objects: after an unclean takeover the new holder
writes its epoch onto every open job's Workflow and pods, and onto what the scheduler keeps for itself (``fence``), so
that every version the old holder knew is stale, and only then decides. A holder that was stopped between two of its
own steps finds out by ``confirm``, or by a stale version.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime

from scheduler_core.errors import Conflict, NotFound, VodaError
from voda_flows.control import pods
from voda_flows.objects import Object, format_time
from voda_flows.store import ObjectStore

log = logging.getLogger(__name__)

NAME = "voda-scheduler"
#: Long enough for a holder that is busy for a few rounds, short enough for a crash to be noticed soon.
DURATION_S = 15.0
#: An object that changes under our hands is read anew so often; pods change a few times a second at most.
_FENCE_TRIES = 20
POD = "pod/"
EPOCH = "voda.dev/scheduler-epoch"


class LeaseLost(VodaError):
    """Somebody else may decide by now; no conflict, as that would end what is done to one job only."""


@dataclass(slots=True, kw_only=True)
class Lease:
    """The right to decide.

    Attributes:
        store: Where the Lease is.
        namespace: The scheduler's own.
        identity: ``pod/<uid>`` of our pod, or another name that nobody else has.
        clock: Seconds on a clock that never goes back.
        epoch: Number of our holdership, 0 before the first.
        unclean: Whether the one before us had not given it back.
        is_anothers: Whether somebody else holds it and has renewed it under our eyes: we are not needed.
    """

    store: ObjectStore
    namespace: str
    identity: str
    clock: Callable[[], float] = time.monotonic
    epoch: int = 0
    unclean: bool = False
    is_anothers: bool = False
    _version: str = field(default="", init=False)
    _since_s: float = field(default=0.0, init=False)

    def hold(self) -> bool:
        """Take the Lease or renew it.

        Returns:
            Whether it is ours now; False while somebody else holds it.
        """
        try:
            return self._hold()
        except Conflict:
            return False

    def confirm(self) -> None:
        """Make sure that it is still ours.

        Called when all that a round will write to has been read: who holds it then knows that a later holder's fence
        comes after these reads, and makes them stale.

        Raises:
            Conflict: Somebody else has taken it.
        """
        try:
            spec = self.store.get("Lease", self.namespace, NAME)["spec"]
        except NotFound as gone:
            raise Conflict(f"lease {NAME}: expected it to be there, somebody deleted it") from gone
        found = (spec.get("holderIdentity"), int(spec.get("leaseTransitions") or 0))
        if found != (self.identity, self.epoch):
            raise Conflict(
                f"lease {NAME}: expected {self.identity!r} in epoch {self.epoch}, got {found[0]!r} in {found[1]}"
            )

    def keep(self) -> None:
        """Renew it where that is due, within a round: it is to be the same holdership as when the round began.

        Raises:
            LeaseLost: It is not ours any more, or ours anew.
        """
        epoch = self.epoch
        if self.renew_due() and not (self.hold() and self.epoch == epoch):
            raise LeaseLost(f"lease {NAME}: expected {self.identity!r} to renew it in epoch {epoch}, it was lost")

    def renew_due(self) -> bool:
        """Whether a third of its duration is over since it was last written."""
        return self.clock() - self._since_s >= DURATION_S / 3

    def give_back(self) -> None:
        """Let the next one take it at once; nothing happens where it is not ours any more."""
        try:
            lease = self.store.get("Lease", self.namespace, NAME)
            if lease["spec"].get("holderIdentity") == self.identity:
                self._write(lease, holder="")
        except (Conflict, NotFound):
            return

    def fence(self, objects: Iterable[Object]) -> int:
        """Write our epoch onto objects, so that nobody can write to them by an older version.

        Args:
            objects: Workflows and pods of open jobs, and what the scheduler itself keeps, as they were read before the
                Lease was last confirmed.

        Returns:
            How many were written.

        Raises:
            Conflict, LeaseLost: The Lease was lost meanwhile: it is the next holder who fences now.
        """
        return sum(self._fence(body) for body in objects)

    def _fence(self, seen: Object) -> bool:
        """Fence one object; guarded, because whoever fences may be an old holder himself by now."""
        self.keep()  # there may be hundreds
        kind, metadata = seen["kind"], seen["metadata"]
        namespace, name = metadata.get("namespace") or "default", metadata["name"]
        change = {"metadata": {"annotations": {EPOCH: str(self.epoch)}}}
        for _ in range(_FENCE_TRIES):
            version = seen["metadata"]["resourceVersion"]
            try:
                self.store.merge_patch(kind, namespace, name, change, resource_version=version)
                return True
            except NotFound:
                return False
            except Conflict:
                found = self._look(kind, namespace, name)
            if found is None:
                return False
            seen = found
            self.confirm()
        raise Conflict(
            f"{kind} {namespace}/{name}: expected to write an epoch, it changed {_FENCE_TRIES} times meanwhile"
        )

    def _look(self, kind: str, namespace: str, name: str) -> Object | None:
        try:
            return self.store.get(kind, namespace, name)
        except NotFound:
            return None

    def _hold(self) -> bool:
        is_new = False
        try:
            lease = self.store.get("Lease", self.namespace, NAME)
        except NotFound:  # the first of all, or somebody deleted it: then nobody knows who held it
            lease, is_new = self.store.create(_new_lease(self.namespace)), True
        has_changed = self._note(lease)
        holder = lease["spec"].get("holderIdentity") or ""
        if holder == self.identity and self.epoch:
            self.epoch = int(lease["spec"].get("leaseTransitions") or 0)
            self._write(lease, holder=self.identity)
            return True
        anothers = holder not in ("", self.identity)  # a process that starts anew in our pod is a new holder
        if anothers and self.clock() - self._since_s < DURATION_S and not self._is_gone(holder):
            self.is_anothers = has_changed
            return False
        self.unclean = bool(holder) or is_new
        self.epoch = int(lease["spec"].get("leaseTransitions") or 0) + 1
        self._write(lease, holder=self.identity)
        log.info("lease=taken epoch=%d before=%r", self.epoch, holder)
        return True

    def _note(self, lease: Object) -> bool:
        """Remember since when, by our clock, the Lease has not changed.

        Returns:
            Whether it has changed since we last looked; no, where we look for the first time.
        """
        before, version = self._version, lease["metadata"]["resourceVersion"]
        if version != before:
            self._version, self._since_s = version, self.clock()
        return bool(before) and version != before

    def _is_gone(self, holder: str) -> bool:
        """Whether the holder is a pod that has ended."""
        if not holder.startswith(POD):
            return False
        there = [pod for pod in self.store.list("Pod", self.namespace) if POD + pods.uid(pod) == holder]
        return all(pods.has_ended(pod) for pod in there)

    def _write(self, lease: Object, *, holder: str) -> None:
        spec = {
            "holderIdentity": holder,
            "leaseDurationSeconds": int(DURATION_S),
            "leaseTransitions": self.epoch,
            "renewTime": format_time(datetime.now(UTC)),
        }
        version, sent_s = lease["metadata"]["resourceVersion"], self.clock()
        self._note(self.store.merge_patch("Lease", self.namespace, NAME, {"spec": spec}, resource_version=version))
        self._since_s = sent_s  # others count from when the server wrote it, which may be long before it answers


def _new_lease(namespace: str) -> Object:
    return {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {"name": NAME, "namespace": namespace},
        "spec": {"holderIdentity": "", "leaseTransitions": 0},
    }

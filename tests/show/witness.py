"""Notes when things were first seen on a cluster, to the millisecond: Kubernetes' own times have whole seconds.

In: the watches of an installation's store. Out: moments in seconds since the epoch, by what was seen. What was seen of
a watch was so a few milliseconds before.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from types import TracebackType
from typing import Self

from scheduler_core.errors import VodaError
from tests.cluster.installed import NAMESPACE, ROLE, Installation
from voda_flows.objects import CRON_LABEL, POD_ENDED, Object, owner_uids, phase_of

#: What is seen: ``("gate", workflow uid, node, phase)``, ``("pod", uid, state)``, ``("document", pod uid, number)``.
Seen = tuple[str, ...]
_LOOK_S = 0.2
_STOP = "stop"


class Witness:
    """Looks at every change, in a thread of its own, from the beginning of its block to the end.

    Args:
        voda: What is watched.
    """

    def __init__(self, voda: Installation) -> None:
        self._voda = voda
        self._first: dict[Seen, float] = {}
        self._pods: dict[str, Object] = {}
        self._over = threading.Event()
        self._noted = threading.Condition()
        self._thread = threading.Thread(target=self._look, name="witness", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, fault: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._over.set()
        self._thread.join()

    def at(self, *seen: str) -> float:
        """When something was first seen.

        Raises:
            KeyError: It never was.
        """
        return self._first[seen]

    def gates(self, workflow_uid: str, phase: str, kind: str = "gate") -> list[float]:
        """When the gates of a Workflow were seen in a phase, in order; ``kind`` is ``gate`` or ``grow-gate``."""
        with self._noted:
            found = list(self._first.items())
        return sorted(at for seen, at in found if seen[:2] == (kind, workflow_uid) and seen[3] == phase)

    def pods(self, workflow_uid: str, role: str) -> list[Object]:
        """All pods of a role that were seen of a Workflow, in the order in which they were; gone ones too."""
        found = [pod for pod in self._pods.values() if workflow_uid in owner_uids(pod) and _role(pod) == role]
        return sorted(found, key=lambda pod: self.at("pod", pod["metadata"]["uid"], "made"))

    def wait_for(self, *seen: str, limit_s: float = 120.0) -> float:
        """Wait until something is seen; when it was.

        Raises:
            TimeoutError: It was not, in so long.
        """
        with self._noted:
            if not self._noted.wait_for(lambda: seen in self._first, limit_s):
                raise TimeoutError(f"expected to see {' '.join(seen)} within {limit_s:.0f} s")
        return self._first[seen]

    def _look(self) -> None:
        store, revision = self._voda.store, -1
        while not self._over.is_set():
            try:
                revision = store.wait(revision, _LOOK_S)
                seen, now_s = list(self._seen()), time.time()
            except VodaError:  # no contact for a while: what is seen later is noted later
                continue
            with self._noted:
                for each in seen:
                    self._first.setdefault(each, now_s)
                self._noted.notify_all()

    def _seen(self) -> Iterator[Seen]:
        for key, body in self._voda.store.snapshot("Workflow").items():
            if key.namespace == NAMESPACE and CRON_LABEL not in (body["metadata"].get("labels") or {}):
                yield from _of_workflow(body)
        for key, body in self._voda.store.snapshot("Pod").items():
            if key.namespace == NAMESPACE:
                self._pods[body["metadata"]["uid"]] = body
                yield from _of_pod(body)


def _of_workflow(body: Object) -> Iterator[Seen]:
    for node_id, node in ((body.get("status") or {}).get("nodes") or {}).items():
        if node.get("templateName") in ("gate", "grow-gate"):
            yield (str(node["templateName"]), body["metadata"]["uid"], node_id, str(node.get("phase")))


def _of_pod(pod: Object) -> Iterator[Seen]:
    uid, status = pod["metadata"]["uid"], pod.get("status") or {}
    yield ("pod", uid, "made")
    if phase_of(pod) == "Running":
        yield ("pod", uid, "running")
    if any(row["type"] == "Ready" and row["status"] == "True" for row in status.get("conditions") or ()):
        yield ("pod", uid, "ready")
    if phase_of(pod) in POD_ENDED:
        yield ("pod", uid, "ended")
    text = (pod["metadata"].get("annotations") or {}).get("voda.dev/allocation")
    if text:
        document = json.loads(text)
        yield ("document", uid, str(document["generation"]))
        if document.get("stop"):
            yield ("document", uid, _STOP)


def _role(pod: Object) -> str:
    return str((pod["metadata"].get("labels") or {}).get(ROLE) or "")

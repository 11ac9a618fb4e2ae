"""A cluster seen through its argo-server, as a world."""

from __future__ import annotations

import os
import threading
import time
from collections import deque
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import NoReturn

from scheduler_core.errors import NotFound, VodaError
from voda_flows.argo_server.address import Address, address
from voda_flows.argo_server.client import Client
from voda_flows.argo_server.store import ArgoStore
from voda_flows.config import scheduler_namespace
from voda_flows.kube.pod_logs import timed_line
from voda_flows.objects import Object
from voda_flows.world import Line, NotGiven

#: A log that is read to its end has come to it when nothing came for so long; a server sends what there is at once.
_SILENCE_S = 10.0


def open_argo_world(place: str, namespace: str | None, environment: Mapping[str, str] = os.environ) -> ArgoWorld:
    """See ``voda_flows.worlds.open_world``."""
    where = address(place, environment)
    return ArgoWorld(where, where.namespace if namespace == "" else namespace or "")


class ArgoWorld:
    """``World`` of an argo-server.

    Args:
        where: The server and who asks.
        namespace: Whose Workflows are meant; empty for all.
    """

    home = None
    busy_s = 0.0

    def __init__(self, where: Address, namespace: str) -> None:
        self.namespace = where.namespace
        self.scheduler_namespace = scheduler_namespace()
        self._client = Client(where)
        self.store = ArgoStore(self._client, namespace)
        self._remarks: list[str] = []

    @property
    def whole(self) -> ArgoStore:
        """See ``World.whole``."""
        return self.store

    def note(self) -> str:
        """See ``World.note``: nobody can tell."""
        return ""

    def now(self) -> datetime:
        """See ``World.now``."""
        return datetime.now(UTC)

    def logs(self) -> ServerLogs:
        """See ``World.logs``."""
        return ServerLogs(self._client, self._remarks)

    def meter(self) -> NoReturn:
        """See ``World.meter``.

        Raises:
            NotGiven: Always.
        """
        raise NotGiven("an argo-server does not tell what pods use; name the cluster with --context or --kubeconfig")

    def fetch(self, address: str, path: str, limit_s: float) -> bytes:
        """See ``World.fetch``: nobody leads to drivers."""
        raise OSError(f"{address}{path}: an argo-server does not lead to pods ({limit_s:g} s)")

    def check(self, document: Object) -> None:
        """See ``World.check``: the server's own lint; it is asked for Workflows only."""
        if document["kind"] == "Workflow":
            self._client.lint(document["metadata"]["namespace"], document)

    def remarks(self) -> Sequence[str]:
        """See ``World.remarks``."""
        return self._remarks

    def close(self) -> None:
        """See ``World.close``."""
        self.store.close()
        self._client.close()


class ServerLogs:
    """``Logs`` of an argo-server."""

    def __init__(self, client: Client, remarks: list[str]) -> None:
        self._client = client
        self._remarks = remarks

    def gone(self, workflow: Object, there: Sequence[Object]) -> Sequence[Object]:  # noqa: ARG002 - all pods are told by nodes
        """See ``Logs.gone``: none that nodes do not tell of."""
        return ()

    def open(self, workflow: Object, pod: Object, *, tail: int | None, follow: bool) -> ServerLog:
        """See ``Logs.open``."""
        options: dict[str, str | bool] = {} if tail is None else {"tail_lines": str(tail)}
        return ServerLog(self._client, (workflow, pod), {**options, "follow": follow}, self._remarks)

    def is_over(self) -> bool:
        """See ``Logs.is_over``."""
        return False

    def close(self) -> None:
        """See ``Logs.close``: threads end with the client's connections."""


class ServerLog:
    """``PodLog`` of an argo-server, read by a thread of its own.

    Args:
        client: Calls of the server.
        whose: The Workflow and the pod.
        options: Of the log: ``follow``, and how many lines.
        remarks: What could not be read, and why, is said there.
        silence_s: How long nothing may come before nothing more is waited for, seconds.
    """

    def __init__(
        self,
        client: Client,
        whose: tuple[Object, Object],
        options: Mapping[str, str | bool],
        remarks: list[str],
        silence_s: float = _SILENCE_S,
    ) -> None:
        self._silence_s = silence_s
        self._heard_s = time.monotonic()
        self._client = client
        self._whose = whose
        self._options = options
        self._remarks = remarks
        self._new: deque[Line] = deque()
        self._over = threading.Event()
        threading.Thread(target=self._run, name=f"log-{whose[1]['metadata']['name']}", daemon=True).start()

    def read(self, *, last: bool) -> list[Line]:
        """See ``PodLog.read``; the end of an ended pod's log is waited for."""
        if last or not self._options["follow"]:
            self._wait()
        found = []
        while self._new:
            found.append(self._new.popleft())
        return found

    def _wait(self) -> None:
        """Until all has come, or nothing came for too long: that is said once."""
        began_s = time.monotonic()
        while not self._over.is_set():
            left_s = max(began_s, self._heard_s) + self._silence_s - time.monotonic()
            if left_s > 0:
                self._over.wait(left_s)
            else:
                name = self._whose[1]["metadata"]["name"]
                said = f"{name}: the rest of its output may be missing: nothing came for {self._silence_s:g} s"
                if said not in self._remarks:
                    self._remarks.append(said)
                return

    def _run(self) -> None:
        workflow, pod = (body["metadata"] for body in self._whose)
        try:
            for text in self._client.logs(workflow["namespace"], workflow["name"], pod["name"], **self._options):
                self._new.append(timed_line(text.encode()))
                self._heard_s = time.monotonic()
        except NotFound:
            pass
        except VodaError as wrong:
            self._remarks.append(f"{pod['name']}: its output cannot be read: {wrong}")
        finally:
            self._over.set()

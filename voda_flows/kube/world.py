"""A cluster as a world: its API server, by the rights of whoever asks.

In: which cluster, and which namespace is meant. Nothing is guessed: what one may not see is said, or left out with a
line that says which right it needs (docs/guides/command-line.md has them by verb).
"""

from __future__ import annotations

import contextlib
import os
import threading
import time
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from functools import cached_property
from http import HTTPStatus
from typing import Final

from scheduler_core.errors import Forbidden, NotFound, VodaError
from voda_flows.config import NAMESPACE_VARIABLE, scheduler_namespace
from voda_flows.kube.api import POD_BYTES, POD_S, Api
from voda_flows.kube.cluster import Cluster
from voda_flows.kube.connection import connect, namespace_of
from voda_flows.kube.live import LiveStore
from voda_flows.kube.pod_logs import KubeLogs
from voda_flows.kube.resources import resource_of
from voda_flows.kube.store import KubeStore, Scope
from voda_flows.kube.transport import AnswerLost, Bound, NotSent
from voda_flows.kube.usage import MetricsMeter
from voda_flows.objects import POD_ENDED, Key, Object, key_of, phase_of, seconds
from voda_flows.store import json_text
from voda_flows.workflows.parameters import DRIVER_PORT

LEASE: Final = "voda-scheduler"
#: A holder renews its Lease every few seconds; where its life ends, or its pod is told to, the next has it within half
#: a minute. One that was lost or stopped is missed for longer, until the cron's next tick: that is what is told.
_SILENT_S: Final = 60.0
#: Argo's controller looks at a new Workflow within a second or two, with its default settings too.
_UNSEEN_S: Final = 30.0
#: A note stays true for so long, for those who ask at every look.
_NOTE_S: Final = 5.0
_PHASE: Final = "workflows.argoproj.io/phase"


def open_kube_world(
    cluster: Cluster | None, namespace: str | None, environment: Mapping[str, str] = os.environ
) -> KubeWorld:
    """See ``voda_flows.worlds.open_world``."""
    chosen = cluster or Cluster()
    api = Api(connect(chosen, environment))
    own = namespace_of(chosen, environment)
    return KubeWorld(api, own, scheduler_namespace(environment), namespace=own if namespace == "" else namespace)


class KubeWorld:
    """``World`` of a cluster.

    Args:
        api: Its API server.
        own: Namespace of jobs where none is named.
        scheduler_namespace: The scheduler's.
        namespace: Whose objects are meant; None for all.
    """

    home = None
    #: Argo's controller counts a Workflow that has ended out when it has done all that its end brings; one that was
    #: begun again before is counted out as well, and left alone for 20 minutes (seen on 4.0.5).
    busy_s = 3.0

    def __init__(self, api: Api, own: str, scheduler_namespace: str, *, namespace: str | None) -> None:
        self.namespace = own
        self.scheduler_namespace = scheduler_namespace
        self._api = api
        self._meant = namespace
        self._noted: tuple[float, str] | None = None
        self._remarks: list[str] = []
        self._meters: list[MetricsMeter] = []
        self._drivers: dict[str, Key] = {}
        self._looking = threading.Lock()

    @cached_property
    def store(self) -> LiveStore:
        """See ``World.store``."""
        if self._meant is None:
            return self.whole
        scope = Scope(namespaces=(self._meant,), watched=("Workflow", "Pod"))
        return LiveStore(KubeStore(self._api, scope))

    @cached_property
    def whole(self) -> LiveStore:
        """See ``World.whole``; it is followed where somebody follows ``store``."""
        store = KubeStore(self._api, Scope(watched=("Workflow", "Pod")))
        return LiveStore(store) if self._meant is None else LiveStore(store, lambda: self.store.is_live)

    def note(self) -> str:
        """See ``World.note``: whether the scheduler renews its Lease, and Argo's controller takes up Workflows."""
        moment_s = time.monotonic()
        if self._noted is None or moment_s - self._noted[0] > _NOTE_S:
            self._noted = (moment_s, self._look())
        return self._noted[1]

    def now(self) -> datetime:
        """See ``World.now``."""
        return datetime.now(UTC)

    def logs(self) -> KubeLogs:
        """See ``World.logs``."""
        return KubeLogs(api=self._api, remarks=self._remarks)

    def meter(self) -> MetricsMeter:
        """See ``World.meter``."""
        self._meters.append(MetricsMeter(self._api, ""))
        return self._meters[-1]

    def fetch(self, address: str, path: str, limit_s: float) -> bytes:
        """See ``World.fetch``: through the API server, since pods' addresses lead nowhere from outside."""
        key = self._driver_at(address)
        place = f"{resource_of('Pod').collection(key.namespace)}/{key.name}:{DRIVER_PORT}/proxy{path}"
        try:
            answer = self._api.ask_once(place, limit_s, Bound(most_bytes=POD_BYTES, most_s=POD_S))
        except (NotSent, AnswerLost) as lost:
            raise OSError(str(lost)) from lost
        if answer.status == HTTPStatus.FORBIDDEN:
            said = f"what drivers say is not known: expected the right to get pods/proxy in namespace {key.namespace!r}"
            if said not in self._remarks:
                self._remarks.append(said)
        if answer.status == HTTPStatus.NOT_FOUND:
            self._forget_driver(address)  # it is gone; another pod may have its address by now
        if answer.status != HTTPStatus.OK:
            raise OSError(f"{key}: {answer.status}")
        return answer.body

    def check(self, document: Object) -> None:
        """See ``World.check``: the API server tries it."""
        key = key_of(document)
        self._api.create(key, json_text(key, document), is_trial=True)

    def remarks(self) -> Sequence[str]:
        """See ``World.remarks``."""
        return [*self._remarks, *(meter.remark for meter in self._meters if meter.remark)]

    def close(self) -> None:
        """See ``World.close``."""
        for opened in (self.__dict__.get("store"), self.__dict__.get("whole")):
            if opened is not None:
                opened.close()
        self._api.close()

    def _look(self) -> str:
        """What stands still, as far as one may see it."""
        try:
            return self._unseen() or self._scheduler()
        except Forbidden:
            return ""

    def _scheduler(self) -> str:
        """What is to be said of the scheduler's Lease, by the server's own clock."""
        key, lease = Key("Lease", self.scheduler_namespace, LEASE), resource_of("Lease")
        where = f"namespace {self.scheduler_namespace}"
        try:
            answer = self._api.ask(lease, key, lease.path(key), {})
        except NotFound:
            return (
                f"no scheduler has run in {where} (no Lease {LEASE}): `voda install` starts one; "
                f"{NAMESPACE_VARIABLE} names its namespace where it is another"
            )
        renewed_s = seconds((answer.document().get("spec") or {}).get("renewTime"))
        silent_s = _server_s(answer.headers) - renewed_s if renewed_s is not None else 0.0
        if silent_s < _SILENT_S:
            return ""
        return (
            f"no scheduler is at work in {where}: its Lease was last renewed {silent_s:.0f} s ago; "
            f"see `kubectl get workflows -n {self.scheduler_namespace}`"
        )

    def _unseen(self) -> str:
        """What is to be said of Workflows that Argo's controller has not taken up."""
        kind = resource_of("Workflow")
        place = Key("Workflow", self._meant or "", "")
        answer = self._api.ask(
            kind, place, kind.collection(place.namespace), {"labelSelector": f"!{_PHASE}", "limit": "20"}
        )
        now_s = _server_s(answer.headers)
        waiting = [
            body["metadata"]["name"]
            for body in answer.document().get("items") or ()
            if not (body.get("status") or {}).get("phase")
            and now_s - (seconds(body["metadata"].get("creationTimestamp")) or now_s) > _UNSEEN_S
        ]
        if not waiting:
            return ""
        return (
            f"Argo's workflow-controller has not taken up {waiting[0]}; see whether it runs and watches its namespace"
        )

    def _driver_at(self, address: str) -> Key:
        """Which driver's pod has an address."""
        with self._looking:
            if address not in self._drivers:
                self._drivers = {
                    pod["status"]["podIP"]: Key("Pod", pod["metadata"]["namespace"], pod["metadata"]["name"])
                    for pod in self._driver_pods()
                    if (pod.get("status") or {}).get("podIP") and phase_of(pod) not in POD_ENDED
                }
            found = self._drivers.get(address)
        if found is None:
            raise OSError(f"no driver has the address {address}")
        return found

    def _driver_pods(self) -> list[Object]:
        labels = {"voda.dev/role": "driver"}
        try:
            with contextlib.suppress(Forbidden):
                return self.whole.list("Pod", None, labels)
            return self.store.list("Pod", None, labels)
        except VodaError as wrong:
            raise OSError(str(wrong)) from wrong

    def _forget_driver(self, address: str) -> None:
        with self._looking:
            self._drivers.pop(address, None)


def _server_s(headers: Mapping[str, str]) -> float:
    """The server's time of day, seconds since the epoch; ours where it does not say."""
    try:
        return parsedate_to_datetime(headers["date"]).timestamp()
    except (KeyError, ValueError):
        return time.time()

"""What pods use of a cluster, as its metrics-server tells (the API ``metrics.k8s.io``, which ``kubectl top`` shows).

In: the API server. Out: readings for ``voda top``. A cluster need not have one: then nothing
is known, and that is said. So it is while it is down: its API is known then, and answers 503.
"""

from __future__ import annotations

import math
import re
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Final

from scheduler_core.errors import Forbidden, NotFound
from voda_flows.kube.api import Api
from voda_flows.kube.refusals import Asked, refusal
from voda_flows.kube.resources import Resource
from voda_flows.kube.retrying import is_busy, is_faulty, said
from voda_flows.kube.transport import Answer, AnswerLost, NotSent
from voda_flows.objects import Key, Object
from voda_flows.world import Used

_METRICS: Final = Resource(kind="PodMetrics", plural="pods", group="metrics.k8s.io", version="v1beta1")
#: How long an answer is waited for: in one try, as nobody is to wait for a server that is down; and when it is asked
#: again then, seconds.
_LIMIT_S: Final = 5.0
_AGAIN_S: Final = 60.0
_UNKNOWN: Final = "CPU and memory are not known: "
_QUANTITY: Final = re.compile(r"(\d+(?:\.\d+)?)([a-zA-Z]*)")
_UNITS: Final[Mapping[str, float]] = {
    "n": 1e-9, "u": 1e-6, "m": 1e-3, "": 1.0, "k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12,
    "Ki": 2.0**10, "Mi": 2.0**20, "Gi": 2.0**30, "Ti": 2.0**40,
}  # fmt: skip


class MetricsMeter:
    """``Meter`` that asks the metrics-server.

    Args:
        api: The API server.
        namespace: Whose pods; empty for all.
        clock: Seconds on a clock that never goes back.
    """

    def __init__(self, api: Api, namespace: str, clock: Callable[[], float] = time.monotonic) -> None:
        self._api = api
        self._namespace = namespace
        self._clock = clock
        self._again_s = 0.0
        self.remark = ""

    def read(self) -> MetricsReading:
        """See ``Meter.read``; CPU is of the metrics-server's own interval."""
        if self.remark and self._clock() < self._again_s:
            return MetricsReading()
        try:
            answer = self._api.ask_once(_METRICS.collection(self._namespace), _LIMIT_S)
        except (NotSent, AnswerLost) as silent:
            return self._unknown(f"the cluster's metrics-server does not answer ({silent})", _AGAIN_S)
        if is_busy(answer) or is_faulty(answer):
            return self._unknown(f"the cluster's metrics-server does not answer ({said(answer)})", _AGAIN_S)
        if answer.status != HTTPStatus.OK:
            return self._refused(answer)
        if not answer.is_document():
            return self._unknown("something else answers in the place of the cluster's metrics-server", _AGAIN_S)
        self.remark = ""
        return MetricsReading(by_pod={_place(body): _used(body) for body in answer.document().get("items") or ()})

    def _refused(self, answer: Answer) -> MetricsReading:
        """What stays so for as long as one looks: there is no metrics-server, or one may not ask it."""
        wrong = refusal(answer, Asked(verb="list", resource=_METRICS, key=Key(_METRICS.kind, self._namespace, "")))
        match wrong:
            case NotFound():
                return self._unknown("the cluster has no metrics-server", math.inf)
            case Forbidden():
                return self._unknown(str(wrong), math.inf)
        raise wrong

    def _unknown(self, why: str, again_s: float) -> MetricsReading:
        self.remark, self._again_s = f"{_UNKNOWN}{why}", self._clock() + again_s
        return MetricsReading()


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricsReading:
    """What pods used, by namespace and name: cores and bytes."""

    by_pod: Mapping[tuple[str, str], tuple[float, float]] = field(default_factory=dict)

    def of(self, pods: Sequence[Object]) -> Used:
        """See ``Reading.of``."""
        known = [self.by_pod[place] for place in map(_place, pods) if place in self.by_pod]
        if not known:
            return Used()
        cores, held = (sum(column) for column in zip(*known, strict=True))
        return Used(cpu_percent=100.0 * cores, memory_bytes=round(held))


def amount(quantity: str) -> float:
    """A quantity as Kubernetes writes it, as a number; 0 for what is none.

    >>> amount("250m"), amount("2Ki"), amount("?")
    (0.25, 2048.0, 0.0)
    """
    found = _QUANTITY.fullmatch(quantity)
    return float(found[1]) * _UNITS.get(found[2], 0.0) if found else 0.0


def _used(body: Object) -> tuple[float, float]:
    rows = [each.get("usage") or {} for each in body.get("containers") or ()]
    return sum(amount(str(row.get("cpu", "0"))) for row in rows), sum(
        amount(str(row.get("memory", "0"))) for row in rows
    )


def _place(body: Object) -> tuple[str, str]:
    return body["metadata"].get("namespace") or "", body["metadata"]["name"]

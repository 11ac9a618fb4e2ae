"""What pods use of a cluster, as its metrics-server tells (the API ``metrics.k8s.io``, which ``kubectl top`` shows).

In: the API server. Out: readings for ``voda top``. A cluster need not have one: then nothing
is known, and that is said.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from scheduler_core.errors import Forbidden, NotFound
from voda_flows.kube.api import Api
from voda_flows.kube.resources import Resource
from voda_flows.objects import Key, Object
from voda_flows.world import Used

_METRICS: Final = Resource(kind="PodMetrics", plural="pods", group="metrics.k8s.io", version="v1beta1")
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
    """

    def __init__(self, api: Api, namespace: str) -> None:
        self._api = api
        self._namespace = namespace
        self.remark = ""

    def read(self) -> MetricsReading:
        """See ``Meter.read``; CPU is of the metrics-server's own interval."""
        if self.remark:
            return MetricsReading()
        key = Key(_METRICS.kind, self._namespace, "")
        try:
            answer = self._api.ask(_METRICS, key, _METRICS.collection(self._namespace), {})
        except NotFound:
            self.remark = "CPU and memory are not known: the cluster has no metrics-server"
            return MetricsReading()
        except Forbidden as denied:
            self.remark = f"CPU and memory are not known: {denied}"
            return MetricsReading()
        return MetricsReading(by_pod={_place(body): _used(body) for body in answer.document().get("items") or ()})


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

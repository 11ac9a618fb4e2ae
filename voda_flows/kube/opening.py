"""Opens the store of a cluster: which one, and which of its objects it is about, by the environment or as asked."""

from __future__ import annotations

from collections.abc import Mapping

from voda_flows.kube.api import Api
from voda_flows.kube.cluster import Cluster
from voda_flows.kube.connection import connect
from voda_flows.kube.store import KubeStore, Scope

#: Namespaces of a cluster whose jobs are meant, joined by commas; all where it is empty.
NAMESPACES_VARIABLE = "VODA_NAMESPACES"


def open_kube_store(cluster: Cluster | None, scope: Scope | None, environment: Mapping[str, str]) -> KubeStore:
    """See ``voda_flows.worlds.open_cluster``."""
    return KubeStore(open_api(cluster, environment), scope or _scope(environment))


def open_api(cluster: Cluster | None, environment: Mapping[str, str]) -> Api:
    """See ``voda_flows.worlds.open_api``."""
    return Api(connect(cluster or Cluster(), environment))


def _scope(environment: Mapping[str, str]) -> Scope:
    """What a scheduler looks at: the jobs of some namespaces, and the pods of all, as any may hold GPUs."""
    names = [name.strip() for name in environment.get(NAMESPACES_VARIABLE, "").split(",") if name.strip()]
    return Scope(namespaces=tuple(names), everywhere=frozenset({"Pod"}))

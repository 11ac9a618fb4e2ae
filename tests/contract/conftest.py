"""The worlds in which one suite is run: local mode, and a cluster's API server.

It is a control plane of the tests' own, where ``VODA_TEST_KUBECONFIG`` names no other.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path

import pytest

from tests.contract.bodies import to_text
from voda_flows.kube.api import Api
from voda_flows.kube.cluster import Cluster
from voda_flows.kube.connection import HttpTransport, connect
from voda_flows.kube.store import KubeStore, Scope
from voda_flows.kube.transport import Request
from voda_flows.local.store import LocalStore
from voda_flows.objects import Object
from voda_flows.store import ObjectStore

KUBECONFIG = "VODA_TEST_KUBECONFIG"
#: What the suite waits for: changes of these kinds.
WATCHED = ("Secret", "Workflow", "Pod", "Lease")


@pytest.fixture(autouse=True)
def _api_server(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests that need an API server and no nodes have one."""
    has_nodes = "cluster" in request.fixturenames
    if request.node.get_closest_marker("cluster") and not has_nodes and not os.environ.get(KUBECONFIG):
        monkeypatch.setenv(KUBECONFIG, str(request.getfixturevalue("control_plane").kubeconfig))


@dataclass(frozen=True, slots=True, kw_only=True)
class Bench:
    """A world with two empty namespaces.

    Attributes:
        store: Its store.
        other: Another store of the same world, as another process would have it.
        one: A namespace.
        two: Another, later in the alphabet.
    """

    store: ObjectStore
    other: ObjectStore
    one: str = "one"
    two: str = "two"


@pytest.fixture(params=["local", pytest.param("cluster", marks=pytest.mark.cluster)])
def bench(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Bench]:
    """Each world in turn."""
    if request.param == "local":
        yield Bench(store=LocalStore(tmp_path), other=LocalStore(tmp_path))
        return
    transport = cluster()
    name = f"contract-{secrets.token_hex(4)}"
    one, two = f"{name}-one", f"{name}-two"
    for namespace in (one, two):
        make_namespace(transport, namespace)
    scope = Scope(namespaces=(one, two), watched=WATCHED)
    store, other = KubeStore(Api(transport), scope), KubeStore(Api(cluster()), scope)
    try:
        yield Bench(store=store, other=other, one=one, two=two)
    finally:
        store.close()
        other.close()
        for namespace in (one, two):
            transport.send(Request(method="DELETE", path=f"/api/v1/namespaces/{namespace}"))


@pytest.fixture
def store(bench: Bench) -> ObjectStore:
    """The world's store."""
    return bench.store


def cluster() -> HttpTransport:
    """A connection to the cluster that the tests were given."""
    return connect(Cluster(kubeconfig=os.environ[KUBECONFIG]))


def make_namespace(transport: HttpTransport, name: str) -> None:
    """A namespace in which pods can be made at once: its service account is there."""
    body: Object = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
    account: Object = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default"}}
    made = transport.send(Request(method="POST", path="/api/v1/namespaces", body=to_text(body)))
    assert made.status == HTTPStatus.CREATED, made.body
    path = f"/api/v1/namespaces/{name}/serviceaccounts"
    made = transport.send(Request(method="POST", path=path, body=to_text(account)))
    assert made.status in (HTTPStatus.CREATED, HTTPStatus.CONFLICT), made.body

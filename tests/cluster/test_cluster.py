"""What a cluster is for: Workflows run, pods reach each other and the API server, GPUs are counted, rules hold."""

from __future__ import annotations

import sys
from collections.abc import Iterator

import pytest

from tests.cluster.api import Api
from tests.cluster.cluster import Cluster
from tests.cluster.control_plane import answers
from tests.cluster.trial import (
    PODS,
    SERVER_PORT,
    allow_jobs,
    delete_pods,
    logs_of_ended,
    run_pod,
    run_server,
    run_workflow,
    wait_for_phase,
)

pytestmark = pytest.mark.cluster
ASK = "import sys, urllib.request as r; print(r.urlopen(sys.argv[1], timeout=30).status)"
ASK_API = """
import os, ssl, urllib.error, urllib.request
account = "/var/run/secrets/kubernetes.io/serviceaccount/"
context = ssl.create_default_context(cafile=account + "ca.crt")
base = f"https://{os.environ['KUBERNETES_SERVICE_HOST']}:{os.environ['KUBERNETES_SERVICE_PORT']}"
for path in ("/version", "/api/v1/namespaces/default/pods"):
    request = urllib.request.Request(base + path, headers={"Authorization": "Bearer " + open(account + "token").read()})
    try:
        print(urllib.request.urlopen(request, context=context, timeout=30).status)
    except urllib.error.HTTPError as refused:
        print(refused.code)
"""


@pytest.fixture(autouse=True)
def no_pods_left(cluster: Cluster) -> Iterator[None]:
    """Each test begins and ends with free GPUs."""
    yield
    delete_pods(cluster)


def test_a_workflow_succeeds_and_hands_out_its_output(cluster: Cluster) -> None:
    """Controller and executor work, and a pod runs the programs of this computer."""
    allow_jobs(cluster)

    ended = run_workflow(cluster, sys.executable, "-c", "open('/tmp/out', 'w').write('42')", node="n1")

    (node,) = ended["status"]["nodes"].values()
    assert (ended["status"]["phase"], node["outputs"]["parameters"][0]["value"]) == ("Succeeded", "42")


def test_a_pod_cannot_change_the_files_of_this_computer(cluster: Cluster) -> None:
    """They are mounted read-only for whoever asks."""
    name = run_pod(cluster, "sh", "-c", f"echo x >'/host{__file__}.new' || echo refused", node="n0")

    phase, said = logs_of_ended(cluster, name)

    assert (phase, min(said.splitlines())) == ("Succeeded", "refused")


@pytest.mark.parametrize(("server", "client"), [("n0", "n2"), ("n1", "n1")])
def test_pods_reach_each_other(cluster: Cluster, server: str, client: str) -> None:
    """Across nodes and on one node, by the pod's own address."""
    address = run_server(cluster, node=server)

    asking = run_pod(cluster, sys.executable, "-c", ASK, f"http://{address}:{SERVER_PORT}/", node=client)

    assert logs_of_ended(cluster, asking) == ("Succeeded", "200\n")


def test_this_computer_reaches_pods(cluster: Cluster) -> None:
    """So that a test outside the cluster can ask a driver for its report."""
    assert answers(run_server(cluster, node="n2"), SERVER_PORT, "/")


def test_a_pod_reaches_the_api_server_and_has_no_rights_there(cluster: Cluster) -> None:
    """The API server's service address leads somewhere, its certificate holds for it, and RBAC is on."""
    name = run_pod(cluster, sys.executable, "-c", ASK_API, node="n1")

    assert logs_of_ended(cluster, name) == ("Succeeded", "200\n403\n")


def test_gpus_are_given_out_once(cluster: Cluster) -> None:
    """A pod waits while another holds the node's GPUs, and runs when it has gone."""
    first = run_pod(cluster, "sleep", "600", node="n0", gpus=2)
    wait_for_phase(cluster, first, "Running")
    second = run_pod(cluster, "echo", "ran", node="n0", gpus=1)

    waiting = cluster.api.wait(PODS, second, lambda pod: bool(pod["status"].get("conditions")))
    cluster.api.delete(f"{PODS}/{first}?gracePeriodSeconds=1")

    assert "Insufficient nvidia.com/gpu" in waiting["status"]["conditions"][0]["message"]
    assert logs_of_ended(cluster, second) == ("Succeeded", "ran\n")


def test_a_node_may_change_only_what_is_its_own(cluster: Cluster) -> None:
    """Kubelets are held to the Node authorizer's rules."""
    as_node = Api(f"https://{_control(cluster)}:6443", cluster.home.certificates, "n0")

    assert as_node.get("/api/v1/nodes/n0")["metadata"]["name"] == "n0"
    with pytest.raises(Exception, match="403"):
        as_node.patch("/api/v1/nodes/n1", {"metadata": {"annotations": {"a": "b"}}})


def _control(cluster: Cluster) -> str:
    found = cluster.api.get("/api/v1/namespaces/default/endpoints/kubernetes")
    return str(found["subsets"][0]["addresses"][0]["ip"])

"""Which world a command line means: the one that it names, and never two."""

from __future__ import annotations

import http.server
import json
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.unit.cli.test_submit import CRON
from tests.unit.cli.world import World
from voda_flows.objects import Object

CONFIG = """
apiVersion: v1
kind: Config
clusters: [{name: c, cluster: {server: "http://127.0.0.1:1"}}]
users: [{name: u, user: {}}]
contexts:
  - {name: one, context: {cluster: c, user: u, namespace: team}}
  - {name: two, context: {cluster: c, user: u}}
current-context: two
"""


@pytest.mark.parametrize(
    "words",
    [
        ("--home", "/somewhere", "--context", "one"),
        ("--home", "/somewhere", "--argo-server", "a:1"),
        ("--argo-server", "a:1", "--context", "one"),
    ],
)
def test_two_worlds_are_a_usage_error(world: World, words: tuple[str, ...]) -> None:
    """Nobody can tell which is meant."""
    said = world.voda("list", *words)

    assert (said.code, "expected one" in said.err) == (2, True), said.err


@pytest.mark.parametrize("verb", ["up", "down"])
@pytest.mark.parametrize("words", [("--context", "one"), ("--kubeconfig", "f"), ("--argo-server", "a:1")])
def test_what_is_for_this_machine_says_so(world: World, verb: str, words: tuple[str, ...]) -> None:
    """Before it does anything."""
    said = world.voda(verb, *words)

    assert (said.code, said.err.splitlines()[0]) == (
        2, f"error: `voda {verb}` is for this machine only; on a cluster see `voda install`",
    )  # fmt: skip


@pytest.mark.parametrize("verb", ["up", "down"])
def test_and_so_it_does_where_the_environment_asks_for_a_cluster(
    world: World, verb: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same words."""
    monkeypatch.setenv("VODA_WORLD", "cluster")

    assert "is for this machine only" in world.voda(verb).err


def test_a_context_that_is_none_is_not_found(world: World, tmp_path: Path) -> None:
    """With the nearest."""
    path = tmp_path / "kubeconfig"
    path.write_text(CONFIG, encoding="utf-8")

    said = world.voda("list", "--kubeconfig", str(path), "--context", "ome")

    assert (said.code, "did you mean 'one'?" in said.err) == (3, True), said.err


@pytest.mark.parametrize(("context", "namespace"), [("one", "team"), ("two", "default")])
def test_the_namespace_is_the_contexts(tmp_path: Path, context: str, namespace: str) -> None:
    """Else `default`; nothing is asked of the cluster for that."""
    from voda_flows.kube.cluster import Cluster
    from voda_flows.worlds import open_world

    path = tmp_path / "kubeconfig"
    path.write_text(CONFIG, encoding="utf-8")
    opened = open_world(tmp_path, Cluster(kubeconfig=str(path), context=context))
    opened.close()

    assert (opened.namespace, opened.home) == (namespace, None)


def test_a_pod_without_slots_holds_the_lowest_free_ones() -> None:
    """As on a cluster, where nobody numbers GPUs: written ones first, then in order of birth; by labels or by name."""
    from voda_flows.cli.snapshot import node_views

    pods = [
        pod("late", 1, "2027-01-15T08:00:09Z"),
        pod("mine", 2, "2027-01-15T08:00:00Z", labels={"workflows.argoproj.io/workflow": "w", "voda.dev/job": "train"}),
        pod("fixed", 0, "2027-01-15T08:00:10Z", annotations={"voda.dev/slots": "1"}),
    ]
    node = {"metadata": {"name": "n0"}, "status": {"allocatable": {"nvidia.com/gpu": "5"}}}

    (view,) = node_views([node], pods, [])

    assert view.holders == ("w", "fixed", "w", "late", "")


def pod(name: str, gpus: int, born: str, **metadata: object) -> Object:
    """A pod on n0 that asks for GPUs."""
    limits = {"nvidia.com/gpu": str(gpus)}
    return {
        "metadata": {"name": name, "namespace": "default", "creationTimestamp": born, **metadata},
        "spec": {"nodeName": "n0", "containers": [{"name": "main", "resources": {"limits": limits}}]},
        "status": {"phase": "Running"},
    }


def test_labels_and_annotations_of_others_stay_when_a_document_is_submitted_again(world: World, tmp_path: Path) -> None:
    """A controller notes things on a schedule; what the document itself says goes before it."""
    path = tmp_path / "cron.yaml"
    path.write_text(CRON, encoding="utf-8")
    assert world.voda("submit", str(path)).out == "nightly created\n"
    noted = {"metadata": {"annotations": {"cronworkflows.argoproj.io/last-used-schedule": "0 3 * * *"}}}
    before = world.store.merge_patch("CronWorkflow", "default", "nightly", noted)

    said = world.voda("submit", str(path))

    assert (said.code, said.out) == (0, "nightly unchanged\n"), said.err
    assert world.store.get("CronWorkflow", "default", "nightly") == before


class Lists(http.server.BaseHTTPRequestHandler):
    """An API server that lets everybody list nodes and nothing else."""

    def do_GET(self) -> None:
        """One node, or a refusal."""
        node = {"metadata": {"name": "n0"}, "status": {}}
        is_list = self.path.partition("?")[0] == "/api/v1/nodes"
        body = {"kind": "NodeList", "metadata": {}, "items": [node]} if is_list else {"kind": "Status", "code": 403}
        text = json.dumps(body).encode()
        self.send_response(200 if is_list else 403)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""


@pytest.fixture
def lists(tmp_path: Path) -> Iterator[str]:
    """A kubeconfig for such a server."""
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Lists) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        path = tmp_path / "config"
        path.write_text(CONFIG.replace(':1"', f':{server.server_address[1]}"'))
        yield str(path)
        server.shutdown()
        thread.join()


def test_a_node_may_be_named_by_who_may_only_list_them(world: World, lists: str) -> None:
    """As the guide's table of rights says."""
    said = world.voda("nodes", "n0", "-o", "name", "--kubeconfig", lists)
    other = world.voda("nodes", "n1", "--kubeconfig", lists)

    assert (said.code, said.out) == (0, "n0\n"), said.err
    assert (other.code, other.err) == (3, "error: no node 'n1'; known are n0\n")

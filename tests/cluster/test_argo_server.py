"""With a token of an argo-server and no kubeconfig: submit, list, get, wait, logs, stop; what else is refused."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.cluster.cluster import Cluster
from tests.cluster.command_lines import CommandLine
from tests.cluster.images import HOST_IMAGE, host_mount, host_volume
from tests.cluster.test_command_line import prepare
from tests.cluster.test_ways import allow
from tests.unit.local.argo.builders import call, steps

pytestmark = pytest.mark.cluster

NAMESPACE = "through-argo"


@pytest.fixture(scope="module")
def line(cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[CommandLine]:
    """The command line of somebody who has a token, of an argo-server without TLS."""
    prepare(cluster, NAMESPACE)
    allow(cluster, NAMESPACE, "person")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ARGO_TOKEN", cluster.token(NAMESPACE, "person"))
        patch.setenv("ARGO_SECURE", "false")
        patch.setenv("KUBECONFIG", "/nowhere")
        yield CommandLine(
            options=("--argo-server", cluster.serve_argo()),
            namespace=NAMESPACE,
            folder=tmp_path_factory.mktemp("through-argo"),
            container={"image": HOST_IMAGE, "imagePullPolicy": "Never", "volumeMounts": [host_mount()]},
            spec={"volumes": [host_volume()]},
        )
    cluster.api.delete(f"/api/v1/namespaces/{NAMESPACE}")


def test_a_workflow_is_submitted_seen_and_read(line: CommandLine) -> None:
    """Its document as it is kept, fields that the package does not know among them; what its pods printed."""
    path = line.write("greeting", steps([call("a", "a")], [call("b", "b")]), line.pod("a", "echo hello"),
                      line.pod("b", "echo bye"))  # fmt: skip

    submitted = line.voda("submit", path)
    waited = line.voda("wait", "greeting", "--timeout", "240s")
    listed, got = line.json("list"), line.json("get", "greeting")
    shown, logs = line.voda("get", "greeting"), line.voda("logs", "greeting").out.splitlines()

    assert (submitted.code, submitted.out) == (0, "greeting submitted\n"), submitted.err
    assert (waited.code, waited.err.splitlines()[-1]) == (0, "greeting Succeeded")
    assert [body["metadata"]["name"] for body in listed["items"]] == ["greeting"]
    assert (got["kind"], got["apiVersion"], got["status"]["phase"]) == ("Workflow", "argoproj.io/v1alpha1", "Succeeded")
    assert (shown.code, "greeting" in shown.out) == (0, True), shown.err
    assert [text for text in logs if "argo=true" not in text] == ["a | hello", "b | bye"]


def test_output_is_followed_and_a_workflow_stopped(line: CommandLine) -> None:
    """`submit --log` shows lines as they come; `stop` ends it."""
    said = line.voda("submit", line.write("short", line.pod("say", "echo one; sleep 1; echo two")), "--log")
    line.voda("submit", line.write("endless", line.pod("wait", "trap 'exit 1' TERM; sleep 600 & wait")))
    line.until(
        "endless", lambda body: any(node["phase"] == "Running" for node in (body["status"].get("nodes") or {}).values())
    )

    stopped = line.voda("stop", "endless", "--wait")

    assert [text for text in said.out.splitlines() if "argo=true" not in text] == ["short submitted", "one", "two"]
    assert (said.code, stopped.code, stopped.out) == (0, 0, "endless stopped\n"), stopped.err
    assert line.json("get", "endless")["status"]["message"] == "Stopped with strategy 'Stop'"


def test_what_is_wrong_is_said(line: CommandLine, monkeypatch: pytest.MonkeyPatch) -> None:
    """By the server's own lint, by name, by token."""
    broken = line.voda("submit", line.write("broken", steps([call("a", "nothing")])))
    unknown = line.voda("get", "greetinh")
    monkeypatch.setenv("ARGO_TOKEN", "Bearer of nothing")
    stranger = line.voda("list")

    assert (broken.code, "nothing" in broken.err) == (2, True), broken.err
    assert (unknown.code, "greeting" in unknown.err) == (3, True), unknown.err
    assert (stranger.code, "argo-server" in stranger.err) == (1, True), stranger.err


@pytest.mark.parametrize(
    "words", [("nodes",), ("queue",), ("top", "--once"), ("watch", "--once"), ("cron", "list"),
              ("suspend", "endless"), ("delete", "greeting")]
)  # fmt: skip
def test_what_an_argo_server_does_not_give_is_refused_in_a_line(line: CommandLine, words: tuple[str, ...]) -> None:
    """And what gives it."""
    said = line.voda(*words)

    assert said.code in (1, 4), said.err
    assert said.code == 4 or "name the cluster with --context or --kubeconfig" in said.err

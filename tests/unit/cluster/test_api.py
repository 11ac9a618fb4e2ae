"""The small client, against a server that answers as the API server does, and as it does when it cannot."""

from __future__ import annotations

import json
import shutil
import ssl
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from tests.cluster.api import Api, RefusedError
from tests.cluster.certificates import Holder, make
from tests.cluster.faults import ClusterError

pytestmark = pytest.mark.skipif(shutil.which("openssl") is None, reason="openssl is not installed")
PODS = "/api/v1/namespaces/default/pods"


class Server(ThreadingHTTPServer):
    """Answers with what it was told, in order, and keeps what it was asked."""

    answers: list[tuple[int, str]]
    asked: list[str]


class Handler(BaseHTTPRequestHandler):
    """One request."""

    server: Server

    def do_GET(self) -> None:
        """Give the next answer."""
        self.server.asked.append(f"{self.command} {self.path}")
        status, text = self.server.answers.pop(0)
        self.send_response(status)
        self.end_headers()
        self.wfile.write(text.encode())

    def do_DELETE(self) -> None:
        """The same."""
        self.do_GET()

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing."""


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    """A server with a certificate of the cluster's kind."""
    make(tmp_path, [Holder(name="serving", user="server", names=("IP:127.0.0.1",)), Holder(name="admin", user="admin")])
    made = Server(("127.0.0.1", 0), Handler)
    made.answers, made.asked = [], []
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(tmp_path / "serving.crt", tmp_path / "serving.key")
    made.socket = context.wrap_socket(made.socket, server_side=True)
    thread = threading.Thread(target=made.serve_forever)
    thread.start()
    yield made
    made.shutdown()
    thread.join()
    made.server_close()


@pytest.fixture
def api(server: Server, tmp_path: Path) -> Api:
    """A client of it."""
    return Api(f"https://127.0.0.1:{server.server_address[1]}", tmp_path, "admin")


def listed(version: str, *phases: str) -> tuple[int, str]:
    """A list of one pod in each phase."""
    items = [{"metadata": {"name": "a"}, "status": {"phase": phase}} for phase in phases]
    return 200, json.dumps({"metadata": {"resourceVersion": version}, "items": items})


def event(kind: str, phase: str) -> str:
    """One line of a watch."""
    return json.dumps({"type": kind, "object": {"metadata": {"name": "a"}, "status": {"phase": phase}}}) + "\n"


def is_running(pod: dict[str, Any]) -> bool:
    """What the tests wait for."""
    return bool(pod["status"]["phase"] == "Running")


def test_what_is_so_already_is_not_waited_for(server: Server, api: Api) -> None:
    """One list is all."""
    server.answers = [listed("5", "Running")]

    assert api.wait(PODS, "a", is_running)["status"] == {"phase": "Running"}
    assert server.asked == [f"GET {PODS}?fieldSelector=metadata.name%3Da"]


def test_a_watch_begins_where_the_list_ended(server: Server, api: Api) -> None:
    """And ends with the change that is waited for."""
    server.answers = [listed("5", "Pending"), (200, event("MODIFIED", "Pending") + event("MODIFIED", "Running"))]

    assert api.wait(PODS, "a", is_running, 30)["status"] == {"phase": "Running"}
    assert server.asked[1] == (
        f"GET {PODS}?watch=1&fieldSelector=metadata.name%3Da&resourceVersion=5&timeoutSeconds=30"
    )


def test_a_watch_that_is_too_old_is_begun_again(server: Server, api: Api) -> None:
    """410 comes as an event; its object is no pod."""
    gone = json.dumps({"type": "ERROR", "object": {"kind": "Status", "status": "Failure", "code": 410}}) + "\n"
    server.answers = [listed("5", "Pending"), (200, gone), listed("9", "Running")]

    assert api.wait(PODS, "a", is_running, 30)["status"] == {"phase": "Running"}


def test_what_does_not_become_so_is_told_with_its_status(server: Server, api: Api) -> None:
    """After the limit; here there is none to wait for."""
    server.answers = [listed("5", "Pending")]

    with pytest.raises(
        ClusterError, match=r"expected another state within 0 s, its status is \[{'phase': 'Pending'}\]"
    ):
        api.wait(PODS, "a", is_running, 0)


def test_a_refusal_is_told_with_its_status_and_words(server: Server, api: Api) -> None:
    """What was asked, of whom, and what was said."""
    server.answers = [(403, "not yours")]

    with pytest.raises(RefusedError, match=f"GET https://127.0.0.1:.*{PODS}: 403: not yours") as refused:
        api.get(PODS)
    assert refused.value.status == 403


def test_to_delete_what_is_not_there_is_no_error(server: Server, api: Api) -> None:
    """Another refusal is one."""
    server.answers = [(404, "none"), (409, "conflict")]

    api.delete(f"{PODS}/a")
    with pytest.raises(RefusedError, match="409"):
        api.delete(f"{PODS}/a")


def test_nobody_there_is_told(tmp_path: Path, server: Server) -> None:
    """As a fault of the cluster, with the address."""
    api = Api("https://127.0.0.1:1", tmp_path, "admin")

    with pytest.raises(
        ClusterError, match=r"GET https://127.0.0.1:1/readyz: expected an answer, got ConnectionRefused"
    ):
        api.text("/readyz")

"""Whom one speaks with: kubeconfigs, contexts and worlds, and what is said where they are none."""

from __future__ import annotations

import http.server
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from scheduler_core.errors import InvalidValue, NotFound, VodaError
from voda_flows.kube.cluster import Cluster
from voda_flows.kube.connection import connect
from voda_flows.kube.store import KubeStore, Scope
from voda_flows.kube.transport import AnswerLost, Bound, NotSent, Request
from voda_flows.worlds import is_cluster, open_cluster

KUBECONFIG = """
apiVersion: v1
kind: Config
clusters:
- {name: here, cluster: {server: "http://127.0.0.1:%(port)d"}}
- {name: there, cluster: {server: "http://there:1"}}
users:
- {name: me, user: {token: secret}}
contexts:
- {name: here, context: {cluster: here, user: me}}
- {name: there, context: {cluster: there, user: me}}
current-context: here
"""


class Handler(http.server.BaseHTTPRequestHandler):
    """Says what it was asked, cuts a connection off, or goes on for a while."""

    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        """Answer by path."""
        if self.path == "/silent":
            self.rfile.read(1)  # until the other side hangs up
            self.close_connection = True
        elif self.path in ("/drip", "/flood"):
            self._never_end(b"x" if self.path == "/drip" else b"x" * 65536, 0.01 if self.path == "/drip" else 0.0)
        elif self.path == "/cut":
            self.send_response(200)
            self.send_header("Content-Length", "100")
            self.end_headers()
            self.wfile.write(b"{")
            self.close_connection = True
        elif self.path.startswith("/stream"):
            self.send_response(200)
            self.send_header("Transfer-Encoding", "chunked")
            self.end_headers()
            for part in (b"on", b"e\ntwo\nthr", b"ee\n", *((b"rest",) if "open" in self.path else ())):
                self.wfile.write(b"%x\r\n%s\r\n" % (len(part), part))
            if "cut" in self.path:
                self.close_connection = True
            else:
                self.wfile.write(b"0\r\n\r\n")
        else:
            text = f"{self.path} {self.headers['Authorization']}".encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(text)))
            self.send_header("Retry-After", "1")
            self.end_headers()
            self.wfile.write(text)

    def _never_end(self, part: bytes, pause_s: float) -> None:
        self.send_response(200)
        self.end_headers()
        self.close_connection = True
        try:
            while True:
                self.wfile.write(part)
                time.sleep(pause_s)
        except OSError:  # the other side has hung up
            return

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""


@pytest.fixture
def port() -> Iterator[int]:
    """A server's."""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield server.server_address[1]
    server.shutdown()
    thread.join()
    server.server_close()


def kubeconfig(folder: Path, port: int = 1) -> str:
    """A kubeconfig for a server here."""
    path = folder / "config"
    path.write_text(KUBECONFIG % {"port": port})
    return str(path)


def test_requests_carry_the_contexts_token(tmp_path: Path, port: int) -> None:
    """Address and token are those of the context; query and headers come through."""
    transport = connect(Cluster(kubeconfig=kubeconfig(tmp_path, port)))
    got = transport.send(Request(path="/a", query={"x": "y z"}))

    assert (got.status, got.body, got.headers["retry-after"]) == (200, b"/a?x=y+z Bearer secret", "1")


def test_a_context_can_be_named(tmp_path: Path) -> None:
    """Another than the current one."""
    assert connect(Cluster(kubeconfig=kubeconfig(tmp_path), context="there")).server == "http://there:1"


def test_the_environments_kubeconfig_is_taken(tmp_path: Path) -> None:
    """As kubectl does, several files joined by colons among them."""
    found = connect(Cluster(), {"KUBECONFIG": f"{tmp_path}/none:{kubeconfig(tmp_path)}"})

    assert found.server == "http://127.0.0.1:1"


def test_what_is_no_kubeconfig_is_said(tmp_path: Path) -> None:
    """A missing file, one that is none, a context that is not there: each with what to do."""
    (tmp_path / "bad").write_text("clusters: 3\n  x: {")
    (tmp_path / "empty").write_text("")

    with pytest.raises(NotFound, match="expected a kubeconfig at /none, there is no such file\ngive one by --kubeconf"):
        connect(Cluster(kubeconfig="/none"))
    for name in ("bad", "empty"):
        with pytest.raises(InvalidValue, match=f"{name}: expected a file that kubectl understands"):
            connect(Cluster(kubeconfig=str(tmp_path / name)))
    with pytest.raises(NotFound, match="expected context 'hear' in it, found none; did you mean 'here'"):
        connect(Cluster(kubeconfig=kubeconfig(tmp_path), context="hear"))


def test_a_server_that_is_not_there_did_nothing(tmp_path: Path) -> None:
    """A refused connection is told apart from a lost answer: only the second may have been carried out."""
    with pytest.raises(NotSent):
        connect(Cluster(kubeconfig=kubeconfig(tmp_path))).send(Request(path="/a"))


def test_an_answer_that_does_not_come_in_time_is_lost(tmp_path: Path, port: int) -> None:
    """The server has the request and is silent: it may carry it out, or have done so."""
    transport = connect(Cluster(kubeconfig=kubeconfig(tmp_path, port)))

    with pytest.raises(AnswerLost, match="ReadTimeoutError"):
        transport.stream(Request(path="/silent"), 0.05)


def test_half_an_answer_is_none(tmp_path: Path, port: int) -> None:
    """An answer that is cut off is lost."""
    with pytest.raises(AnswerLost):
        connect(Cluster(kubeconfig=kubeconfig(tmp_path, port))).send(Request(path="/cut"))


@pytest.mark.parametrize(("path", "lacking"), [("/drip", "within 0.2 s"), ("/flood", "at most 100000 bytes")])
def test_who_never_ends_his_answer_is_left(tmp_path: Path, port: int, path: str, lacking: str) -> None:
    """What a job's own pod answers is bounded, in bytes and in time: each byte comes soon, the last one never."""
    transport = connect(Cluster(kubeconfig=kubeconfig(tmp_path, port)))

    with pytest.raises(AnswerLost, match=lacking):
        transport.send(Request(path=path, limit_s=5.0, bound=Bound(most_bytes=100_000, most_s=0.2)))


def test_an_answer_within_its_bound_is_whole(tmp_path: Path, port: int) -> None:
    """And the connection serves the next request."""
    transport = connect(Cluster(kubeconfig=kubeconfig(tmp_path, port)))
    got = [transport.send(Request(path="/a", bound=Bound(most_bytes=20, most_s=5.0))).body for _ in range(2)]

    assert got == [b"/a Bearer secret"] * 2


def test_half_a_bounded_answer_is_none(tmp_path: Path, port: int) -> None:
    """As of one without bound."""
    with pytest.raises(AnswerLost):
        connect(Cluster(kubeconfig=kubeconfig(tmp_path, port))).send(
            Request(path="/cut", bound=Bound(most_bytes=20, most_s=5.0))
        )


def test_lines_come_as_they_were_sent(tmp_path: Path, port: int) -> None:
    """Lines are put together from whatever pieces arrive; where the stream is cut, that is an error."""
    transport = connect(Cluster(kubeconfig=kubeconfig(tmp_path, port)))
    whole = list(transport.stream(Request(path="/stream"), 10).lines())
    unfinished = list(transport.stream(Request(path="/stream-open"), 10).lines())
    cut = transport.stream(Request(path="/stream-cut"), 10).lines()

    assert whole == [b"one", b"two", b"three"]
    assert unfinished == [b"one", b"two", b"three", b"rest"]
    with pytest.raises(AnswerLost):
        list(cut)


@pytest.mark.parametrize(
    ("environment", "expected"), [({}, False), ({"VODA_WORLD": "local"}, False), ({"VODA_WORLD": "cluster"}, True)]
)
def test_a_world_is_local_unless_a_cluster_is_asked_for(environment: dict[str, str], expected: bool) -> None:
    """Nothing is guessed: local mode runs in pods too."""
    assert is_cluster(environment) is expected


def test_a_world_that_is_none_is_refused() -> None:
    """A typo must not become local mode."""
    with pytest.raises(InvalidValue, match="VODA_WORLD: expected 'local' or 'cluster', got 'clutser'"):
        is_cluster({"VODA_WORLD": "clutser"})


def test_namespaces_narrow_what_is_watched_but_pods(tmp_path: Path) -> None:
    """Jobs of some namespaces; pods of all, as any may hold GPUs; nodes have no namespace."""
    environment = {"VODA_NAMESPACES": "a, b", "KUBECONFIG": kubeconfig(tmp_path)}
    store = open_cluster(environment=environment)
    scope = Scope(namespaces=("a", "b"), everywhere=frozenset({"Pod"}))
    places = {kind: [str(place) for place in scope.places(kind)] for kind in ("Workflow", "Pod", "Node")}

    assert isinstance(store, KubeStore)
    assert store.scope == scope
    assert places == {"Workflow": ["workflows/a", "workflows/b"], "Pod": ["pods/*"], "Node": ["nodes/*"]}


def test_local_commands_say_that_they_know_no_cluster(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Where a cluster is asked for, what works on this machine only says so and what to do."""
    from voda_flows.worlds import open_local

    monkeypatch.setenv("VODA_WORLD", "cluster")

    with pytest.raises(VodaError, match=r"expected local mode, .* VODA_WORLD asks for a cluster\nunset VODA_WORLD"):
        open_local(tmp_path)

"""Drivers are asked all at once with a time limit; one that does not answer stays as it last was."""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from voda_flows.control.reports import DriverStatus, Reports

LIMIT_S = 2.0


class Driver(ThreadingHTTPServer):
    """A driver's HTTP server of which a test says what it answers."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.body: Any = {}
        self.silent = threading.Event()
        self.over = threading.Event()


class _Handler(BaseHTTPRequestHandler):
    server: Driver

    def do_GET(self) -> None:
        """Answer, or wait until the test is over."""
        if self.server.silent.is_set():
            self.server.over.wait(10)
            return
        text = self.server.body if isinstance(self.server.body, str) else json.dumps(self.server.body)
        self.send_response(200)
        self.end_headers()
        self.wfile.write(text.encode())

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing."""


@pytest.fixture
def driver() -> Iterator[Driver]:
    """A running server."""
    server = Driver()
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield server
    server.over.set()
    server.shutdown()
    server.server_close()
    thread.join(5)


def reports_of(driver: Driver) -> Reports:
    """Reports that ask that server's port."""
    return Reports(limit_s=LIMIT_S, port=driver.server_address[1])


def test_a_driver_says_where_it_is(driver: Driver) -> None:
    """What the scheduler needs of a status is read; workers that were dropped are leaving."""
    driver.body = {
        "driver_uid": "d",
        "generation": 3,
        "epoch": 1,
        "step": 20,
        "world_size": 2,
        "samples_per_s": 1.5,
        "state": "done",
        "workers": {"w0": {"state": "running"}, "w1": {"state": "draining"}, "w2": {"state": "gone"}},
    }

    assert reports_of(driver).pull({"d": "127.0.0.1"}) == {
        "d": DriverStatus(
            driver_uid="d",
            generation=3,
            epoch=1,
            step=20,
            world_size=2,
            samples_per_s=1.5,
            leaving=frozenset({"w1", "w2"}),
            states={"w0": "running", "w1": "draining", "w2": "gone"},
            restarts={"w0": 0, "w1": 0, "w2": 0},
            ending=True,
        )
    }


@pytest.mark.parametrize(
    "body",
    [
        "no JSON",
        "[]",
        "{}",
        {"driver_uid": "another", "generation": 9},
        pytest.param("[" * 100_000, id="nested beyond reading"),
        pytest.param('{"driver_uid": "d", "step": 1e999}', id="a number beyond all"),
        pytest.param('{"driver_uid": "d", "samples_per_s": Infinity}', id="no number"),
        pytest.param('{"driver_uid": "d"' + " " * 2**20 + "}", id="too long"),
    ],
)
def test_an_answer_that_makes_no_sense_is_none(driver: Driver, body: Any) -> None:
    """Nothing is believed that does not come from the driver that was asked."""
    driver.body = body

    assert reports_of(driver).pull({"d": "127.0.0.1"}) == {}


def test_a_driver_that_falls_silent_is_an_old_observation(driver: Driver) -> None:
    """Its last answer stays, and nobody waits until it speaks again."""
    driver.body = {"driver_uid": "d", "generation": 1}
    reports = reports_of(driver)
    first = reports.pull({"d": "127.0.0.1"})
    driver.silent.set()

    assert reports.pull({"d": "127.0.0.1"}) == first
    reports.close()


@pytest.mark.parametrize("drip", [b"HTTP/1.1 200 OK\r\nX: ", b"HTTP/1.1 200 OK\r\n\r\n"])
def test_a_driver_that_never_ends_its_answer_is_left(drip: bytes) -> None:
    """Byte by byte, in its head or its body: nobody waits for the last one, neither a round nor a thread of its own."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        talking = threading.Thread(target=_drip, args=(server, drip))
        talking.start()
        reports = Reports(limit_s=0.2, port=server.getsockname()[1])

        assert reports.pull({"d": "127.0.0.1"}) == {}
        talking.join(10)
        assert not talking.is_alive()
        reports.close()


def _drip(server: socket.socket, head: bytes) -> None:
    """Begin an answer and go on for ever, until the other side hangs up."""
    connection, _ = server.accept()
    with connection:
        try:
            connection.sendall(head)
            while True:
                connection.sendall(b"x")
                time.sleep(0.01)
        except OSError:
            return


def test_one_silent_driver_does_not_hide_the_others(driver: Driver) -> None:
    """All are asked at once: an address where nobody listens costs the others nothing."""
    driver.body = {"driver_uid": "d", "generation": 1}
    found = reports_of(driver).pull({"gone": "127.0.0.2", "d": "127.0.0.1"})

    assert list(found) == ["d"]


def test_a_driver_that_is_not_asked_any_more_is_forgotten(driver: Driver) -> None:
    """Answers do not pile up over the scheduler's life."""
    driver.body = {"driver_uid": "d", "generation": 1}
    reports = reports_of(driver)
    reports.pull({"d": "127.0.0.1"})

    assert reports.pull({}) == {}

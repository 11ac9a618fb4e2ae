"""The driver's HTTP, read-only: ``/status``, ``/reports?since=N``, ``/metrics`` on the pod's own address."""

from __future__ import annotations

import json
import sys
import threading
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING
from urllib.parse import parse_qs, urlsplit

if TYPE_CHECKING:
    from voda_flows.runtime.driver_board import Board

REQUEST_TIMEOUT_S = 5.0


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request: object, client_address: object) -> None:
        """Who asks has short patience and may be gone before the answer: no news. All else is a defect, told."""
        if not isinstance(sys.exc_info()[1], OSError):
            super().handle_error(request, client_address)  # type: ignore[arg-type]  # typed for sockets only


def serve(board: Board, address: str, port: int) -> ThreadingHTTPServer:
    """Answer from a thread of its own until ``shutdown`` is called on what is returned."""

    class Handler(BaseHTTPRequestHandler):
        timeout = REQUEST_TIMEOUT_S
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            status, kind, text = answer(board, self.path)
            body = text.encode()
            self.send_response(status)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *arguments: object) -> None:
            """Scrapes are no events."""

    server = _Server((address, port), Handler)
    threading.Thread(target=server.serve_forever, name="http", daemon=True).start()
    return server


def answer(board: Board, path: str) -> tuple[HTTPStatus, str, str]:
    """Status, content type and text for a path."""
    asked = urlsplit(path)
    if asked.path == "/status":
        return HTTPStatus.OK, "application/json", json.dumps(board.status())
    if asked.path == "/metrics":
        return HTTPStatus.OK, "text/plain; version=0.0.4", board.metrics()
    if asked.path == "/reports":
        since = parse_qs(asked.query).get("since", ["0"])[0]
        if not since.isdecimal():
            return HTTPStatus.BAD_REQUEST, "text/plain", f"since: expected a whole number, got {since[:40]!r}\n"
        return HTTPStatus.OK, "application/json", json.dumps(board.reports(int(since)))
    return HTTPStatus.NOT_FOUND, "text/plain", "expected /status, /reports?since=N or /metrics\n"

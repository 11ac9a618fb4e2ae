"""What the drivers say: all are asked at once over HTTP, each with a short time limit.

A driver that does not answer is an old observation, not an error: what it last said stays. Nothing here writes.
"""

from __future__ import annotations

import functools
import http.client
import io
import json
import math
import socket
import time
from collections.abc import Mapping
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field, replace
from typing import Any

from scheduler_core.estimate.rows import ReportRow
from voda_flows.control.rows import ResizeSaid, read_resizes, read_rows
from voda_flows.workflows.parameters import DRIVER_PORT
from voda_flows.world import Fetch

#: A driver is on the same network and answers from memory: a millisecond or two.
ANSWER_LIMIT_S = 0.5
#: Where somebody else carries question and answer, over any distance.
FAR_LIMIT_S = 3.0
#: A status is some kilobytes, the changes of a long segment among them; the job's owner decides what is answered.
_MOST_BYTES = 2**20
_MAX_ASKED_AT_ONCE = 16
#: Of a driver that has many new report rows only the last are read.
_MOST_ROWS = 200
#: States of a worker that trains no more.
_LEAVING = ("draining", "gone", "failed")
#: Those of a worker of which its driver expects nothing more.
_LEFT = ("gone", "failed")
#: States of a driver that trains no more.
_ENDING = ("stopping", "done", "failed")
#: How asking a driver fails.
_NO_ANSWER = (OSError, http.client.HTTPException, ValueError, AttributeError, OverflowError, RecursionError)


@dataclass(frozen=True, slots=True, kw_only=True)
class DriverStatus:
    """What a driver said of itself (docs/contracts.md, section 5).

    Attributes:
        driver_uid: Uid of its pod, empty when it never answered.
        generation: Generation that it trains by.
        epoch: Epochs completed.
        step: Steps completed.
        world_size: Ranks training.
        samples_per_s: Speed of the last interval.
        leaving: Ids of workers that it dropped or lost.
        states: What it calls its workers, by id: ``running``, ``restarting``, ``draining`` or ``gone``.
        restarts: How often it has started a worker's rank anew, by id.
        ending: Whether its training is over or about to be, so that no other document is of use.
        resizes: Changes of its world, oldest first.
        rows: Report rows that were read with this answer.
        rows_from: Number of the row from which on it was asked for them.
        rows_to: Number of the first row that was not read.
    """

    driver_uid: str = ""
    generation: int = 0
    epoch: int = 0
    step: int = 0
    world_size: int = 0
    samples_per_s: float = 0.0
    leaving: frozenset[str] = frozenset()
    states: Mapping[str, str] = field(default_factory=dict)
    restarts: Mapping[str, int] = field(default_factory=dict)
    ending: bool = False
    resizes: tuple[ResizeSaid, ...] = ()
    rows: tuple[ReportRow, ...] = ()
    rows_from: int = 0
    rows_to: int = 0

    @property
    def left(self) -> frozenset[str]:
        """Ids of workers that it has done with: their agents should have ended."""
        return frozenset(worker_id for worker_id, state in self.states.items() if state in _LEFT)


class Reports:
    """Asks drivers and keeps their last answers; used by one thread.

    Args:
        limit_s: How long an answer may take, however steadily it comes.
        port: Where drivers listen.
        fetch: How they are asked, where not at their own addresses.
    """

    def __init__(self, *, limit_s: float | None = None, port: int = DRIVER_PORT, fetch: Fetch | None = None) -> None:
        self._limit_s = limit_s or (ANSWER_LIMIT_S if fetch is None else FAR_LIMIT_S)
        self._fetch = fetch or functools.partial(_get, port)
        self._asking = ThreadPoolExecutor(_MAX_ASKED_AT_ONCE, thread_name_prefix="reports")
        self._open: dict[str, Future[DriverStatus]] = {}
        self._last: dict[str, DriverStatus] = {}

    def pull(
        self, address_by_uid: Mapping[str, str], rows_read: Mapping[str, int] | None = None
    ) -> dict[str, DriverStatus]:
        """Ask every driver.

        Args:
            address_by_uid: Addresses of the drivers by the uid of their pods.
            rows_read: How many report rows are known already, by the same uid; None where none are to be read.

        Returns:
            What each last said, by uid; drivers that never answered are left out.
        """
        for driver_uid, address in address_by_uid.items():
            if driver_uid not in self._open:
                self._open[driver_uid] = self._asking.submit(
                    _ask,
                    self._fetch,
                    address,
                    self._limit_s,
                    None if rows_read is None else rows_read.get(driver_uid, 0),
                )
        wait(self._open.values(), timeout=self._limit_s)
        for driver_uid in [driver_uid for driver_uid, future in self._open.items() if future.done()]:
            answer = self._open.pop(driver_uid).result()
            if answer.driver_uid == driver_uid:
                self._last[driver_uid] = answer
        self._last = {driver_uid: self._last[driver_uid] for driver_uid in address_by_uid if driver_uid in self._last}
        return dict(self._last)

    def close(self) -> None:
        """Let go of the threads; those that still wait for an answer end by their time limit."""
        self._asking.shutdown(wait=False, cancel_futures=True)


def _ask(fetch: Fetch, address: str, limit_s: float, rows_read: int | None) -> DriverStatus:
    """What one driver says of itself, nothing where it does not answer; its new rows where they are wanted."""
    status, num_rows = _status(fetch, address, limit_s)
    if rows_read is None or num_rows <= rows_read:
        return status
    try:
        since = max(rows_read, num_rows - _MOST_ROWS)
        said: dict[str, Any] = json.loads(fetch(address, f"/reports?since={since}", limit_s))
        end = int(_number(said.get("next")))
        return replace(status, rows=read_rows(said.get("rows")), rows_from=rows_read, rows_to=end)
    except _NO_ANSWER:
        return status


def _status(fetch: Fetch, address: str, limit_s: float) -> tuple[DriverStatus, int]:
    """What one driver says of itself, and how many report rows it has."""
    try:
        said: dict[str, Any] = json.loads(fetch(address, "/status", limit_s))
        workers = said.get("workers") or {}
        status = DriverStatus(
            driver_uid=str(said.get("driver_uid") or ""),
            generation=int(_number(said.get("generation"))),
            epoch=int(_number(said.get("epoch"))),
            step=int(_number(said.get("step"))),
            world_size=int(_number(said.get("world_size"))),
            samples_per_s=_number(said.get("samples_per_s")),
            leaving=frozenset(worker_id for worker_id, row in workers.items() if row.get("state") in _LEAVING),
            states={worker_id: str(row.get("state") or "") for worker_id, row in workers.items()},
            restarts={worker_id: int(_number(row.get("restarts"))) for worker_id, row in workers.items()},
            ending=said.get("state") in _ENDING,
            resizes=read_resizes(said.get("resizes")),
        )
        return status, int(_number(said.get("rows")))
    except _NO_ANSWER:
        return DriverStatus(), 0


def _get(port: int, address: str, path: str, limit_s: float) -> bytes:
    connection = http.client.HTTPConnection(address, port, timeout=limit_s)
    try:
        end_s = time.monotonic() + limit_s
        connection.request("GET", path)
        answer = http.client.HTTPResponse(_Timed(connection.sock, end_s), method="GET")  # type: ignore[arg-type]  # all it takes of a socket is a file
        answer.begin()
        body = answer.read(_MOST_BYTES + 1)
    finally:
        connection.close()
    if len(body) > _MOST_BYTES:
        raise ValueError(f"expected an answer of at most {_MOST_BYTES} bytes")
    return body


class _Timed(io.RawIOBase):
    """What a socket says until a moment; a limit of each read alone is none, as bytes may come one by one."""

    def __init__(self, sock: socket.socket, end_s: float) -> None:
        self._sock = sock
        self._end_s = end_s

    def makefile(self, mode: str) -> io.BufferedReader:  # noqa: ARG002 - as a socket's
        """What is read from."""
        return io.BufferedReader(self)

    def readable(self) -> bool:
        """See ``io.RawIOBase``."""
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]  # what a BufferedReader gives
        """See ``io.RawIOBase``.

        Raises:
            TimeoutError: The moment is over.
        """
        left_s = self._end_s - time.monotonic()
        if left_s <= 0:
            raise TimeoutError("the time of the whole answer is over")
        self._sock.settimeout(left_s)
        return self._sock.recv_into(buffer)


def _number(value: object) -> float:
    number = float(value) if isinstance(value, (int, float)) else 0.0
    if not math.isfinite(number):
        raise ValueError(f"expected a number, got {number}")
    return number

"""Output through an argo-server: all of it, however long it takes to come; only silence ends it."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from voda_flows.argo_server.client import Client
from voda_flows.argo_server.world import ServerLog

WHOSE = ({"metadata": {"namespace": "ns", "name": "w"}}, {"metadata": {"namespace": "ns", "name": "w-main-1"}})
#: A silence that ends a log here, and a pause between lines that is none.
SILENCE_S, PAUSE_S = 1.5, 0.1


class Talking(Client):
    """A server that sends a line now and then.

    Args:
        num_lines: How many.
        then_s: How long it is silent then, before it ends the answer, seconds.
    """

    def __init__(self, num_lines: int, then_s: float) -> None:
        self._num_lines = num_lines
        self._then_s = then_s

    def logs(self, namespace: str, name: str, pod: str, **options: str | bool) -> Iterator[str]:
        """See ``Client.logs``."""
        for number in range(self._num_lines):
            time.sleep(PAUSE_S)
            yield f"2026-01-01T00:00:00Z line {number}"
        time.sleep(self._then_s)


@pytest.mark.parametrize("follow", [False, True])
def test_a_log_that_takes_long_comes_whole(*, follow: bool) -> None:
    """Longer in all than the silence that would end it."""
    remarks: list[str] = []
    log = ServerLog(Talking(20, 0.0), WHOSE, {"follow": follow}, remarks, silence_s=SILENCE_S)

    assert [line.text for line in log.read(last=True)] == [f"line {number}" for number in range(20)]
    assert remarks == []


def test_a_log_that_falls_silent_is_left_and_that_is_said() -> None:
    """What came until then is shown."""
    remarks: list[str] = []
    log = ServerLog(Talking(2, 5 * SILENCE_S), WHOSE, {"follow": False}, remarks, silence_s=SILENCE_S)

    assert [line.text for line in log.read(last=True)] == ["line 0", "line 1"]
    assert remarks == ["w-main-1: the rest of its output may be missing: nothing came for 1.5 s"]


def test_a_pod_that_printed_nothing_for_long_may_still_have_last_words() -> None:
    """Silence counts from when the end is waited for: a program that trains need not print."""
    remarks: list[str] = []
    log = ServerLog(Talking(1, 1.5 * SILENCE_S), WHOSE, {"follow": True}, remarks, silence_s=SILENCE_S)
    time.sleep(1.2 * SILENCE_S)

    assert [line.text for line in log.read(last=True)] == ["line 0"]
    assert remarks == []


def test_who_follows_waits_for_nothing_before_the_end() -> None:
    """What is there is taken at each look."""
    remarks: list[str] = []
    log = ServerLog(Talking(0, 5 * SILENCE_S), WHOSE, {"follow": True}, remarks, silence_s=SILENCE_S)

    assert log.read(last=False) == []
    assert remarks == []

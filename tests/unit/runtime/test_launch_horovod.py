"""Horovod's driver behind our adapter: whom it counts, and who is told to leave. Ranks are requests of this test."""

from __future__ import annotations

import http.client
import threading
import time
from collections.abc import Iterator, Mapping, Sequence

import pytest

from voda_flows.runtime.launch import Member
from voda_flows.runtime.launch.horovod import HorovodLauncher

ADDRESS = "127.0.0.1"
LIMIT_S = 30.0


class Told:
    """What the launcher told the driver."""

    def __init__(self) -> None:
        self.worlds: list[list[str]] = []
        self.ends: list[str] = []
        self.changed = threading.Condition()

    def world(self, members: Sequence[Member]) -> None:
        """Keep the hosts of a world."""
        with self.changed:
            self.worlds.append([member.host for member in members])
            self.changed.notify_all()

    def admit(self, host: str, slot: int, environment: Mapping[str, str]) -> None:
        """Nobody waits at the door here."""

    def reset(self, why: str) -> None:
        """Nobody trains here."""

    def resetting(self) -> None:
        """Nobody looks."""

    def ended(self, message: str) -> None:
        """The launcher gave up."""
        with self.changed:
            self.ends.append(message)
            self.changed.notify_all()


class Ranks:
    """Ranks that ask for their next world."""

    def __init__(self, launcher: HorovodLauncher) -> None:
        self._port = int(launcher.environment("w0", 0)["HOROVOD_GLOO_RENDEZVOUS_PORT"])

    def ask(self, host: str) -> str:
        """What a rank is told: ``rank, size, local rank, ...``; waits until its world is complete."""
        connection = http.client.HTTPConnection(ADDRESS, self._port, timeout=LIMIT_S)
        connection.request("GET", f"/rank_and_size/{host}:0")
        said = connection.getresponse().read().decode()
        connection.close()
        return said


def is_counted(launcher: HorovodLauncher) -> bool:
    """Whether Horovod's thread has counted a failure, which it does on its own time."""
    end_s = time.monotonic() + LIMIT_S
    pause = threading.Event()
    while not (counted := launcher._elastic._worker_registry.count("FAILURE")) and time.monotonic() < end_s:
        pause.wait(0.01)
    return bool(counted)


@pytest.fixture
def told() -> Told:
    """What is told in a test."""
    return Told()


@pytest.fixture
def launcher(told: Told) -> Iterator[HorovodLauncher]:
    """A launcher whose first world is w0 and w1."""
    made = HorovodLauncher(ADDRESS, 1, told)
    made.allow([ADDRESS])
    made.start({"w0": 1, "w1": 1})
    yield made
    made.stop()


def test_a_rank_that_counts_as_ended_completes_no_world(launcher: HorovodLauncher, told: Told) -> None:
    """It may run on, its agent being frozen, and ask: it is sent away, and the others' world is made of them alone."""
    ranks = Ranks(launcher)
    launcher.exited("w1", 0, -9)
    assert is_counted(launcher)
    sent_away = ranks.ask("w1")

    assert sent_away.startswith("-1,")
    assert ranks.ask("w0").startswith("0,1,")
    assert (told.worlds[-1], told.ends) == (["w0"], [])

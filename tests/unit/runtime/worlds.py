"""Worlds of threads: several ranks in one process, which leave and join as a test has planned."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, TypeVar, cast

import torch

from voda_flows.runtime.session_world import WorldBroken

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

WAIT_S = 30.0
Item = TypeVar("Item")


class Removed(Exception):
    """This rank has no place in the next world; Horovod would abort the process."""


class Hub:
    """Holds a sequence of worlds, each a list of rank names in the order of their ranks."""

    def __init__(self, worlds: Sequence[Sequence[str]]) -> None:
        self._worlds = worlds
        self._at = -1
        self._condition = threading.Condition()
        self._arrived: set[str] = set()
        self.barrier = threading.Barrier(1)
        self.slots: list[object] = []

    def enter(self, name: str, joined: int) -> tuple[int, int, int]:
        """Wait until the next world with `name` in it is complete: its number, the rank, the size."""
        with self._condition:
            at = next((n for n in range(joined + 1, len(self._worlds)) if name in self._worlds[n]), None)
            if at is None or (joined >= 0 and at != joined + 1):
                raise Removed(name)
            self._condition.wait_for(lambda: self._at == at - 1, WAIT_S)
            self._arrived.add(name)
            members = self._worlds[at]
            if self._arrived >= set(members):
                self._arrived = set()
                self._at = at
                self.barrier = threading.Barrier(len(members), timeout=WAIT_S)
                self.slots = [None] * len(members)
                self._condition.notify_all()
            self._condition.wait_for(lambda: self._at == at, WAIT_S)
            return at, members.index(name), len(members)


class ThreadWorld:
    """One rank's view of a hub (`session_world.World`)."""

    def __init__(self, hub: Hub, name: str) -> None:
        self.rank, self.size = 0, 1
        self._hub = hub
        self._name = name
        self._joined = -1
        self.dies = False  # set: this rank dies in its next collective, when all others are in it too

    def join(self) -> None:
        """Enter the next world of the plan."""
        self._joined, self.rank, self.size = self._hub.enter(self._name, self._joined)

    def leave(self) -> None:
        """Leave it."""

    def cut(self) -> None:
        """Break the collective that the others wait in."""
        self._hub.barrier.abort()

    def add_up(self, tensor: torch.Tensor, name: str) -> None:
        """Sum over the ranks in the order of ranks, the same bits for all."""
        every = self._swap((name, tensor.clone()))
        assert {other for other, _ in every} == {name}
        tensor.copy_(torch.stack([value for _, value in every]).sum(0))

    def send(self, tensor: torch.Tensor, root: int, name: str) -> None:
        """Copy that of the root."""
        every = self._swap((name, tensor.clone()))
        assert {other for other, _ in every} == {name}
        tensor.copy_(every[root][1])

    def collect(self, row: Sequence[float]) -> list[list[float]]:
        """All rows."""
        return [list(other) for other in self._swap(tuple(row))]

    def collect_bytes(self, message: bytes) -> list[bytes]:
        """All messages."""
        return self._swap(message)

    def _swap(self, item: Item) -> list[Item]:
        hub = self._hub
        barrier, slots = hub.barrier, hub.slots
        slots[self.rank] = item
        try:
            barrier.wait()
            if self.dies:
                barrier.abort()
                raise SystemExit
            every = list(slots)
            barrier.wait()
        except threading.BrokenBarrierError as error:
            raise WorldBroken(self._name) from error
        return cast("list[Item]", every)


def in_threads(functions: Sequence[Callable[[], None]]) -> None:
    """Run functions at once; the first error of any is raised."""
    errors: list[BaseException] = []

    def guarded(function: Callable[[], None]) -> None:
        try:
            function()
        except Removed:
            pass
        except BaseException as error:  # noqa: BLE001 - raised again below, in the test's own thread
            errors.append(error)

    threads = [threading.Thread(target=guarded, args=(function,), daemon=True) for function in functions]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(WAIT_S)
    if errors:
        raise errors[0]
    assert not any(thread.is_alive() for thread in threads)

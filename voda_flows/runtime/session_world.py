"""The ranks that train together, behind one small interface.

`Alone` is a plain `python script.py`: one rank, nothing to exchange, no Horovod needed. `HorovodWorld` is Horovod.
Another launcher (torch.distributed) is another class here. Whatever breaks a collective leaves as `WorldBroken`, so
nothing else in the session knows Horovod's names.
"""

from __future__ import annotations

import contextlib
import os
from typing import TYPE_CHECKING, Protocol

from voda_flows.runtime.gloo_sockets import GlooSockets

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import torch


class Interrupt(BaseException):
    """Leaves the training function on the session's account; no `except Exception` of a script may hold it up."""


class WorldBroken(Interrupt):
    """A rank is gone: a collective failed."""


class WorldChanged(Interrupt):
    """All ranks are at the same commit and go to a new world from there."""


class Stopped(Interrupt):
    """All ranks are at the same commit, the checkpoint is written, the process ends."""


class World(Protocol):
    """What the session asks of a launcher. Collectives are called by all ranks in the same order."""

    rank: int
    size: int

    def join(self) -> None:
        """Enter the world that the launcher holds ready: sets `rank` and `size`."""

    def leave(self) -> None:
        """Leave it; `join` may follow."""

    def cut(self) -> None:
        """From any thread: a rank of this world is gone, so no collective of it is worth waiting for."""

    def add_up(self, tensor: torch.Tensor, name: str) -> None:
        """Replace `tensor` by its sum over the ranks; `name` is the same for the same use."""

    def send(self, tensor: torch.Tensor, root: int, name: str) -> None:
        """Replace `tensor` by that of rank `root`."""

    def collect(self, row: Sequence[float]) -> list[list[float]]:
        """The rows of all ranks, by rank; all of one length."""

    def collect_bytes(self, message: bytes) -> list[bytes]:
        """The messages of all ranks, by rank; of any lengths."""


class Alone:
    """One rank, without a launcher."""

    rank = 0
    size = 1

    def join(self) -> None:
        """Nothing to enter."""

    def leave(self) -> None:
        """Nothing to leave."""

    def cut(self) -> None:
        """Nobody to wait for."""

    def add_up(self, tensor: torch.Tensor, name: str) -> None:
        """A sum of one."""

    def send(self, tensor: torch.Tensor, root: int, name: str) -> None:
        """It is here already."""

    def collect(self, row: Sequence[float]) -> list[list[float]]:
        """The only row."""
        return [list(row)]

    def collect_bytes(self, message: bytes) -> list[bytes]:
        """The only message."""
        return [message]


class HorovodWorld:
    """Ranks under Horovod, elastic where its environment says so.

    Horovod built for the CPU takes no CUDA tensors: they are carried over the CPU then.
    """

    rank = 0
    size = 1

    def __init__(self) -> None:
        import horovod.torch as hvd

        self._hvd = hvd
        self._sockets = GlooSockets()
        self._takes_cuda = bool(hvd.nccl_built()) or bool(hvd.cuda_built())

    def join(self) -> None:
        """Enter the world of the rendezvous: blocks until all its ranks are there."""
        with self._sockets.opened_here():
            self._hvd.init()
        self.rank = int(self._hvd.rank())
        self.size = int(self._hvd.size())

    def leave(self) -> None:
        """Shut Horovod down; also after a broken collective."""
        self._hvd.shutdown()

    def cut(self) -> None:
        """Have every collective of this world fail, here and in the ranks that are connected with this one."""
        self._sockets.cut()

    def add_up(self, tensor: torch.Tensor, name: str) -> None:
        """Sum over the ranks, in place."""
        with self._guarded(), self._carried(tensor) as carried:
            self._hvd.allreduce_(carried, op=self._hvd.Sum, name=name)

    def send(self, tensor: torch.Tensor, root: int, name: str) -> None:
        """Broadcast from `root`, in place."""
        with self._guarded(), self._carried(tensor) as carried:
            self._hvd.broadcast_(carried, root, name=name)

    def collect(self, row: Sequence[float]) -> list[list[float]]:
        """Gather one row of each rank."""
        import torch

        with self._guarded():
            mine = torch.tensor([list(row)], dtype=torch.float64)
            rows: list[list[float]] = self._hvd.allgather(mine, name="voda.collect").tolist()
            return rows

    def collect_bytes(self, message: bytes) -> list[bytes]:
        """Gather one message of each rank."""
        import torch

        lengths = [int(row[0]) for row in self.collect([len(message)])]
        with self._guarded():
            mine = torch.frombuffer(bytearray(message), dtype=torch.uint8)
            pieces = self._hvd.allgather(mine, name="voda.collect_bytes").split(lengths)
            return [piece.numpy().tobytes() for piece in pieces]

    @contextlib.contextmanager
    def _guarded(self) -> Iterator[None]:
        from horovod.common.exceptions import HorovodInternalError

        try:
            yield
        except HorovodInternalError as error:
            self.cut()
            raise WorldBroken(str(error)) from error

    @contextlib.contextmanager
    def _carried(self, tensor: torch.Tensor) -> Iterator[torch.Tensor]:
        if self._takes_cuda or not tensor.is_cuda:
            yield tensor
            return
        carried = tensor.cpu()
        yield carried
        tensor.copy_(carried)


def open_world() -> World:
    """The world that the environment names (`VODA_WORLD`: `horovod` or, by default, `alone`)."""
    if os.environ.get("VODA_WORLD", "alone") == "horovod":
        return HorovodWorld()
    return Alone()

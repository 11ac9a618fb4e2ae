"""Launch adapters: how ranks find each other, and how a running world becomes another one.

The driver decides which hosts are wanted and has ranks started, watched and ended; an adapter knows one launcher's
way to make a world of them. Horovod is the first; torch.distributed elastic fits the same interface (its rendezvous
in the place of Horovod's, ``admit`` when a round of it is complete).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from voda_flows.runtime.errors import BadEnvironment

if TYPE_CHECKING:
    from voda_flows.runtime.environment import DriverEnvironment


@dataclass(frozen=True)
class Member:
    """A rank of a world.

    Attributes:
        host: Host id (a life of a worker).
        slot: Which of the worker's ranks.
        rank: Its rank in the world.
    """

    host: str
    slot: int
    rank: int


class Events(Protocol):
    """What an adapter tells the driver; called from any thread, must return at once."""

    def world(self, members: Sequence[Member]) -> None:
        """A new world is decided; its ranks are about to enter it."""

    def admit(self, host: str, slot: int, environment: Mapping[str, str]) -> None:
        """The rank that waits with ``ready`` may join, with these variables."""

    def reset(self, why: str) -> None:
        """Tell the running ranks to leave their world at the next commit, for a new one."""

    def resetting(self) -> None:
        """A rank has left the world for the next one."""

    def ended(self, message: str) -> None:
        """The launcher gives up: no world can be made of what is left."""


class Launcher(Protocol):
    """One launcher's way to make worlds."""

    def environment(self, host: str, slot: int) -> Mapping[str, str]:
        """Variables of a rank from its start on, before it is in any world."""

    def allow(self, addresses: Sequence[str]) -> None:
        """Answer only these addresses from now on."""

    def start(self, slots_by_host: Mapping[str, int]) -> None:
        """Make the first world; every rank of it is ready."""

    def update(self, slots_by_host: Mapping[str, int]) -> None:
        """The hosts that are wanted from now on; every newcomer is ready. Repeating it tells the ranks again."""

    def exited(self, host: str, slot: int, code: int) -> None:
        """A rank has ended."""

    def stop(self) -> None:
        """End the launcher's own threads and servers; ranks are the driver's business."""


def open_launcher(environment: DriverEnvironment, min_slots: int, events: Events) -> Launcher:
    """The adapter that the job asks for.

    Raises:
        BadEnvironment: There is none of that name.
    """
    if environment.launcher == "horovod":
        from voda_flows.runtime.launch.horovod import HorovodLauncher

        return HorovodLauncher(environment.pod_ip, min_slots, events)
    raise BadEnvironment(f"VODA_LAUNCHER: expected 'horovod', got {environment.launcher!r}")

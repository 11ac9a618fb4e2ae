"""The world that trains, or is just being made: its ranks, and how far it has come.

Passed in order: decided (by the launcher), joined (its rank 0 is in it, state in place), stepping (its first step is
made). Until it is stepping no further change is told to its ranks: one change at a time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from voda_flows.runtime.launch import Member


class World:
    """The latest world.

    Attributes:
        members: Its ranks, in order of rank; none before the first world.
        making: Whether it has not made a step yet.
        joined: Whether its rank 0 is in it.
        resetting_since_s: Since when ranks stand without a world (monotonic seconds), None while they are in one.
    """

    def __init__(self) -> None:
        self.members: tuple[Member, ...] = ()
        self.making = False
        self.joined = False
        self.resetting_since_s: float | None = None

    @property
    def hosts(self) -> frozenset[str]:
        """Host ids of its ranks."""
        return frozenset(member.host for member in self.members)

    @property
    def size(self) -> int:
        """Its number of ranks."""
        return len(self.members)

    def decide(self, members: tuple[Member, ...]) -> None:
        """The launcher decided it."""
        self.members = members
        self.making, self.joined = True, False

    def leave(self, now_s: float) -> None:
        """Ranks have left it, or are about to because one of them died."""
        if self.resetting_since_s is None:
            self.resetting_since_s = now_s

    def join(self, host: str, slot: int) -> bool:
        """A rank says that it is in a world; True when it is this one's rank 0, for the first time."""
        if not self.making or self.joined or not self.is_first(host, slot):
            return False
        self.joined, self.resetting_since_s = True, None
        return True

    def step(self) -> bool:
        """Rank 0 made a step; True when it is the first of this world."""
        if not (self.making and self.joined):
            return False
        self.making = False
        return True

    def is_first(self, host: str, slot: int) -> bool:
        """Whether a rank is rank 0 of this world."""
        return bool(self.members) and (self.members[0].host, self.members[0].slot) == (host, slot)

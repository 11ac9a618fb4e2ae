"""Resize records: what each change of the world cost (docs/contracts.md, section 5).

A record is opened when a world is decided and closed by its first step; who was in both worlds says how long it stood
still. A record whose world never made a step (another reset came first) is replaced by the next one.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any, Callable

if TYPE_CHECKING:
    from voda_flows.runtime.lines import Message

START, GROW, SHRINK, REPLACE, STOP = "start", "grow", "shrink", "replace", "stop"


@dataclass(frozen=True)
class Resize:
    """One change of the world; times in seconds since the epoch, ``still_s`` in seconds.

    Attributes:
        generation: Document in effect.
        kind: ``start``, ``grow``, ``shrink``, ``replace`` (a crash, and the crashed rank's return) or ``stop``.
        from_size: Ranks before, 0 at the start.
        to_size: Ranks after, 0 for a stop.
        document_s: When the document, or the crash, was seen.
        decided_s: When the world was decided: all newcomers at the door, all ranks out of the old one.
        last_step_s: End of the last step before, None where nobody remembers it.
        first_step_s: End of the first step after.
        still_s: How long training stood still, a step's own time apart.
        steps_lost: Steps that are made again.
    """

    generation: int
    kind: str
    from_size: int
    to_size: int
    document_s: float
    decided_s: float
    last_step_s: float | None = None
    first_step_s: float | None = None
    still_s: float | None = None
    steps_lost: int = 0


class Resizes:
    """All records of a segment."""

    def __init__(self, keep: Callable[[dict[str, Any]], None]) -> None:
        self._keep = keep
        self._open: Resize | None = None
        self._closed: list[dict[str, Any]] = []

    def from_size(self, size: int) -> int:
        """Ranks of the last world that made a step; ``size`` are those of the last one that was decided."""
        return size if self._open is None else self._open.from_size

    def begin(self, resize: Resize) -> None:
        """A world is decided."""
        self._open = resize

    def first_step(self, time_s: float) -> None:
        """The world made its first step; nothing more is to come of a start."""
        if self._open is not None and self._open.kind == START:
            self._close(replace(self._open, first_step_s=time_s))

    def resized(self, message: Message) -> None:
        """A rank that was in both worlds tells; the first one counts."""
        if self._open is None or message.get("to_size") != self._open.to_size:
            return
        last_s, first_s = float(message["last_step_s"]), float(message["first_step_s"])
        self._close(replace(
            self._open,
            last_step_s=last_s,
            first_step_s=first_s,
            still_s=max(first_s - last_s - float(message["step_time_s"]), 0.0),
            steps_lost=int(message["steps_lost"]),
        ))  # fmt: skip

    def stopped(self, resize: Resize) -> None:
        """The segment was stopped."""
        self._close(resize)

    def records(self) -> list[dict[str, Any]]:
        """All closed records, oldest first."""
        return list(self._closed)

    def _close(self, resize: Resize) -> None:
        record = asdict(resize)
        self._open = None
        self._closed.append(record)
        self._keep(record)


def kind_of(from_size: int, to_size: int, *, crashed: bool) -> str:
    """What a change of the world is called."""
    if not from_size:
        return START
    if crashed or from_size == to_size:
        return REPLACE
    return GROW if to_size > from_size else SHRINK

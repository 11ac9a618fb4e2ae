"""The progress file of Argo: ``N/M`` in hundredths of an epoch.

Argo adds the progress of a Workflow's pods up, so M is what remained when this segment began, and a segment that ends
early lowers M to what it did: the sum over all segments is then the whole job, and never jumps back. Where it began is
then the sum of those before it, unless one of them was lost: after that nothing is lowered any more.

What was shown last is handed out as an output, with where the segment ended, since Argo may miss what is written last.
A driver whose pod was lost may be followed by another in the same node, to which Argo gives its progress: what the
first has shown is kept on the volume, and the next begins with it.
"""

from __future__ import annotations

import json
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from voda_flows.runtime.log import open_log

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

LOG = open_log("driver")
UNITS_PER_EPOCH = 100
#: Argo reads the file every two or three seconds.
PERIOD_S = 1.0


@dataclass(frozen=True)
class Places:
    """Files that progress goes to.

    Attributes:
        shown: Argo's file, None for nowhere.
        kept: On the volume, in the segment's folder.
        output: What the pod hands out at its end, None for nowhere.
    """

    shown: Path | None
    kept: Path
    output: Path | None = None


class Progress:
    """How far this segment is.

    Args:
        places: Where that is written.
        epochs: Epochs to train in all.
        lowers: Whether M is lowered at the end: all segments before went on where the one before them had ended.
        clock: Seconds, going on evenly.
    """

    def __init__(
        self, places: Places, epochs: int, *, lowers: bool = True, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._places = places
        self._epochs = epochs
        self._lowers = lowers
        self._clock = clock
        self._begin: float | None = None
        self._furthest = 0.0
        self._next_s = 0.0
        self._written = ""
        self._has_warned = False

    def begin(self, epoch: float) -> None:
        """Training of this segment begins with so many epochs done."""
        if self._begin is None:
            began, furthest = _kept(self._places.kept) or (epoch, epoch)
            self._begin, self._furthest = min(began, epoch), max(furthest, epoch)
            self._show()

    def reach(self, epoch: float) -> None:
        """So many epochs are done; what is done again after a loss takes nothing back."""
        if self._begin is not None and epoch > self._furthest:
            self._furthest = epoch
            if self._clock() >= self._next_s:
                self._show()

    def end(self, epoch: float) -> None:
        """The segment ends here; what is left is another segment's."""
        if self._begin is None or not self._written:
            return
        self._furthest = max(self._furthest, epoch)
        self._keep()
        whole = self._units(self._epochs)
        furthest = min(self._units(self._furthest), whole if epoch >= self._epochs else max(whole - 1, 0))
        if self._places.output is not None:
            self._replace(self._places.output, f"{furthest}/{whole} {self._units(epoch)}")
        if self._lowers:  # 0/600 left as it is would count as all done once the pod has succeeded
            self._write(f"{furthest}/{max(furthest, 1)}")
        else:
            self._write(f"{min(furthest, max(whole - 1, 0))}/{whole}")

    def _show(self) -> None:
        """All of it only at the end, since N = M stands for a segment that has ended."""
        assert self._begin is not None, "counted from the segment's begin"
        self._next_s = self._clock() + PERIOD_S
        whole = self._units(self._epochs)
        if self._places.shown is None or whole == 0:
            return  # Argo refuses 0/0
        self._keep()
        self._write(f"{min(self._units(self._furthest), max(whole - 1, 0))}/{whole}")

    def _keep(self) -> None:
        """Before anybody is shown it: what is kept is never less."""
        if self._places.kept.parent.is_dir():
            self._replace(self._places.kept, json.dumps({"begin": self._begin, "furthest": self._furthest}))

    def _units(self, epoch: float) -> int:
        """Both ends rounded, not what is between: the sums over segments have no error that would grow."""
        assert self._begin is not None, "counted from the segment's begin"
        return max(round(epoch * UNITS_PER_EPOCH) - round(self._begin * UNITS_PER_EPOCH), 0)

    def _write(self, text: str) -> None:
        if self._places.shown is not None and text != self._written:
            self._replace(self._places.shown, text)
            self._written = text

    def _replace(self, path: Path, text: str) -> None:
        """Write a file; one that cannot be written (a full volume) is no reason to end the training."""
        beside = path.with_name(path.name + ".new")
        try:
            beside.write_text(text, encoding="utf-8")
            beside.replace(path)
        except OSError as fault:
            if not self._has_warned:
                LOG.warning("progress is not written: %s", fault)
            self._has_warned = True


def _kept(path: Path) -> tuple[float, float] | None:
    """Where an earlier driver of this segment began, and how far it came; None where there was none."""
    try:
        body = json.loads(path.read_text(encoding="utf-8"))
        return float(body["begin"]), float(body["furthest"])
    except (OSError, ValueError, TypeError, KeyError):
        return None

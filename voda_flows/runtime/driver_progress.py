"""The progress file of Argo: ``N/M`` in hundredths of an epoch.

Argo adds the progress of a Workflow's pods up, so M is what remained when this segment began, and a segment that ends
early lowers M to what it did: the sum over all segments is then the whole job, and never jumps back.
"""

from __future__ import annotations

from pathlib import Path

UNITS_PER_EPOCH = 100


class Progress:
    """How far this segment is."""

    def __init__(self, path: Path | None, epochs: int) -> None:
        self._path = path
        self._epochs = epochs
        self._begin: float | None = None
        self._written = ""

    def begin(self, epoch: float) -> None:
        """Training of this segment begins with so many epochs done."""
        if self._begin is None:
            self._begin = epoch
            self._write(0, self._units(self._epochs))

    def reach(self, epoch: float) -> None:
        """So many epochs are done; all of them only at the end, since N = M stands for a segment that has ended."""
        if self._begin is not None:
            whole = self._units(self._epochs)
            self._write(min(self._units(epoch), max(whole - 1, 0)), whole)

    def end(self, epoch: float) -> None:
        """The segment ends here; what is left is another segment's."""
        if self._written:
            done = self._units(epoch)
            self._write(done, max(done, 1))  # 0/600 left as it is would count as all done once the pod has succeeded

    def _units(self, epoch: float) -> int:
        assert self._begin is not None, "counted from the segment's begin"
        return max(round((epoch - self._begin) * UNITS_PER_EPOCH), 0)

    def _write(self, done: int, whole: int) -> None:
        text = f"{min(done, whole)}/{whole}"
        if self._path is None or whole == 0 or text == self._written:
            return  # Argo refuses 0/0
        beside = self._path.with_name(self._path.name + ".new")
        beside.write_text(text)
        beside.replace(self._path)
        self._written = text

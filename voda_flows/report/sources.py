"""Where a segment's story is read from: the files beside the checkpoints, or what the Workflow and its driver tell.

In local mode the volumes are folders of this machine, and everything is read there in full. On a cluster nobody but
the job's pods has its volume: an ended segment is told by its checkpoint step's output ``record``
(``runtime/segment_record.py``), one that goes on by its driver, where that can be reached.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Protocol

from voda_flows.objects import Object
from voda_flows.report import drivers
from voda_flows.report.drivers import PodProxy
from voda_flows.report.files import SegmentFiles, job_folder, read_ends, read_files, read_furthest
from voda_flows.report.lives import JobLife
from voda_flows.report.recorded import recorded
from voda_flows.store import ObjectStore

#: The scheduler's records in the folder of the local state.
_RECORDS: Final = "records"


class Source(Protocol):
    """Where it is read from."""

    def files(self, lives: Sequence[JobLife]) -> dict[str, Mapping[int, SegmentFiles]]:
        """What the segments of jobs left, by job id and segment; what nobody tells is left out."""
        ...

    def ends(self, life: JobLife) -> Mapping[int, Object]:
        """What a job's drivers said at the ends of their segments, by number."""
        ...

    def furthest(self, life: JobLife) -> Mapping[int, float]:
        """Epochs done at the furthest points of a job's segments, by number; none beyond what its life says."""
        ...

    def rounds_before(self, before_s: float, lives: Sequence[JobLife]) -> tuple[Object, ...]:
        """The scheduler's rounds before its history begins, as far as they are kept, oldest first."""
        ...


def source_of(store: ObjectStore, home: Path | None) -> Source:
    """The source of a world.

    Args:
        store: The world's objects.
        home: Folder of local mode's state; None on a cluster.
    """
    if home is not None:
        return Volumes(home=home)
    return Workflows(pods=store if isinstance(store, PodProxy) else None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Volumes:
    """Local mode's volumes.

    Attributes:
        home: Folder of the local state.
    """

    home: Path

    def files(self, lives: Sequence[JobLife]) -> dict[str, Mapping[int, SegmentFiles]]:
        """See ``Source.files``."""
        return {life.id: read_files(job_folder(self.home, life)) for life in lives}

    def ends(self, life: JobLife) -> Mapping[int, Object]:
        """See ``Source.ends``."""
        return read_ends(job_folder(self.home, life))

    def furthest(self, life: JobLife) -> Mapping[int, float]:
        """See ``Source.furthest``."""
        return read_furthest(job_folder(self.home, life))

    def rounds_before(self, before_s: float, lives: Sequence[JobLife]) -> tuple[Object, ...]:
        """See ``Source.rounds_before``."""
        names = {life.id: f"{life.workflow}/{life.name}" for life in lives}
        return recorded(self.home / _RECORDS, names, before_s)


@dataclass(frozen=True, slots=True, kw_only=True)
class Workflows:
    """A cluster's Workflows and the drivers that live.

    Attributes:
        pods: The way to drivers; None where there is none.
    """

    pods: PodProxy | None

    def files(self, lives: Sequence[JobLife]) -> dict[str, Mapping[int, SegmentFiles]]:
        """See ``Source.files``."""
        living = drivers.written(self.pods, lives) if self.pods is not None else {}
        return {
            life.id: {**_told(life), **({life.segments[-1].number: living[life.id]} if life.id in living else {})}
            for life in lives
        }

    def ends(self, life: JobLife) -> Mapping[int, Object]:
        """See ``Source.ends``."""
        return {number: dict(files.end) for number, files in _told(life).items() if files.end}

    def furthest(self, life: JobLife) -> Mapping[int, float]:
        """See ``Source.furthest``: lives are read with what checkpoint steps told of it."""
        del life
        return {}

    def rounds_before(self, before_s: float, lives: Sequence[JobLife]) -> tuple[Object, ...]:
        """See ``Source.rounds_before``: the scheduler's records are in its own pod."""
        del before_s, lives
        return ()


def _told(life: JobLife) -> dict[int, SegmentFiles]:
    """What a job's checkpoint steps told of their segments."""
    from voda_flows.runtime.segment_record import told_by  # noqa: PLC0415 - local mode reads files

    found = {}
    for segment in life.segments:
        told = told_by(segment.record)
        if told is not None:
            found[segment.number] = SegmentFiles(
                rows=told.rows, resizes=told.resizes, end=told.end, verdict=told.verdict
            )
    return found

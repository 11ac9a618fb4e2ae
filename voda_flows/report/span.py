"""A span of time, and jobs as they stood at its end: what a report over part of the history is made of. Pure.

A job belongs to a span in which it lived for some time. It is told from its submission to the span's end: what came
later is left out, so that a job that ended after the span is one that still ran.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from scheduler_core.errors import InvalidValue
from voda_flows.objects import Object
from voda_flows.report.files import SegmentFiles
from voda_flows.report.lives import Holding, JobLife, Segment
from voda_flows.report.times import text


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """From when to when.

    Attributes:
        from_s: Seconds since the epoch; None for the first submission.
        to_s: Likewise; None for the last end, or now where something goes on.

    Raises:
        InvalidValue: It ends before it begins.
    """

    from_s: float | None = None
    to_s: float | None = None

    def __post_init__(self) -> None:
        if self.from_s is not None and self.to_s is not None and self.to_s <= self.from_s:
            raise InvalidValue(
                f"expected a span that begins before it ends, found one from {text(self.from_s)} to {text(self.to_s)}"
            )

    def has(self, life: JobLife, now_s: float) -> bool:
        """Whether a job lived in it."""
        ended_s = now_s if life.ended_s is None else life.ended_s
        begun = self.to_s is None or life.submitted_s < self.to_s
        return begun and (self.from_s is None or ended_s >= self.from_s)


EVERYTHING = Span()


def until(life: JobLife, to_s: float | None) -> JobLife:
    """A job as it stood at a moment.

    Args:
        life: The job, submitted before.
        to_s: The moment, seconds since the epoch; None for the last that is known, whatever the clock says now.

    Returns:
        The job without what came later; the same one where nothing did.
    """
    if to_s is None or (life.ended_s is not None and life.ended_s <= to_s):
        return life
    segments = tuple(_segment_until(segment, to_s) for segment in life.segments if segment.queued_s <= to_s)
    same = life.ended_s is None and segments == life.segments
    return life if same else replace(life, segments=segments, ended_s=None, message="", phase=_phase(segments))


def files_until(files: Mapping[int, SegmentFiles], life: JobLife, to_s: float) -> dict[int, SegmentFiles]:
    """What was written up to a moment.

    Args:
        files: What drivers wrote, by segment.
        life: The job as it stood then.
        to_s: The moment.
    """
    ended = {segment.number: segment.ended_s is not None for segment in life.segments}
    return {number: _written(own, to_s, ended=ended[number]) for number, own in files.items() if number in ended}


def _written(files: SegmentFiles, to_s: float, *, ended: bool) -> SegmentFiles:
    """The files of one segment; before its end it had no last word and no verdict."""
    return replace(
        files,
        rows=tuple(row for row in files.rows if _moment(row, "time_s") <= to_s),
        resizes=tuple(record for record in files.resizes if _moment(record, "first_step_s", "document_s") <= to_s),
        end=files.end if ended else {},
        verdict=files.verdict if ended else {},
    )


def _segment_until(segment: Segment, to_s: float) -> Segment:
    """A segment without what came later."""
    if segment.granted_s is None or segment.granted_s > to_s:
        return Segment(number=segment.number, queued_s=segment.queued_s, message=segment.message)
    ended = segment.ended_s is not None and segment.ended_s <= to_s
    return replace(
        segment,
        ended_s=segment.ended_s if ended else None,
        outcome=segment.outcome if ended else "",
        driver_ended_s=_before(segment.driver_ended_s, to_s),
        holdings=_holdings(segment.holdings, to_s),
    )


def _holdings(holdings: Sequence[Holding], to_s: float) -> tuple[Holding, ...]:
    """Holds that had begun; those that ended later are held."""
    return tuple(
        held if held.end_s is None or held.end_s <= to_s else replace(held, end_s=None, phase="Running")
        for held in holdings
        if held.start_s <= to_s
    )


def _before(moment_s: float | None, to_s: float) -> float | None:
    """A moment, None where it came later."""
    return moment_s if moment_s is not None and moment_s <= to_s else None


def _phase(segments: Sequence[Segment]) -> str:
    """Where a job stood that had not ended."""
    if not segments or segments[-1].granted_s is None:
        return "Queued"
    return "Running" if segments[-1].ended_s is None else "Stopping"


def _moment(record: Object, *names: str) -> float:
    """The first moment that a record has."""
    return next((float(record[name]) for name in names if isinstance(record.get(name), int | float)), 0.0)

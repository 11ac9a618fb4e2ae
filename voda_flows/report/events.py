"""A job's life as a list of events, each a moment and a word or two: what people read, and what the report marks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from voda_flows.objects import WORKFLOW_ENDED, Object
from voda_flows.report.files import SegmentFiles
from voda_flows.report.lives import JobLife, Segment
from voda_flows.report.times import many

#: Workers made this soon after a grant are those of the grant.
_AT_ONCE_S = 2.0
#: Kinds of events that change a job's size.
RESIZES = ("grow", "shrink", "replace", "preempt", "resume")


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """Something that happened to a job.

    Attributes:
        at_s: When, seconds since the epoch.
        kind: ``submit``, ``grant``, ``start``, ``grow``, ``shrink``, ``replace``, ``preempt``, ``resume``, ``lost`` or
            ``end``.
        segment: In which segment.
        from_size: Ranks before.
        to_size: Ranks after.
        still_s: How long training stood still, None where it did not or nobody measured it.
        steps_lost: Steps that had to be done again.
        text: The event in words.
        reason: Why the scheduler did it, empty where it did not say.
    """

    at_s: float
    kind: str
    segment: int = 0
    from_size: int = 0
    to_size: int = 0
    still_s: float | None = None
    steps_lost: int = 0
    text: str = ""
    reason: str = ""


def events(life: JobLife, files: Mapping[int, SegmentFiles]) -> tuple[Event, ...]:
    """What happened to a job, in order.

    Args:
        life: The job.
        files: What its drivers wrote down, by segment.

    Returns:
        The events; a segment that was stopped to be resumed later ends in one ``preempt``.
    """
    found = [Event(at_s=life.submitted_s, kind="submit", text=f"submitted, asks for {many(life.asks)}")]
    for segment in life.segments:
        found += _of_segment(segment, files.get(segment.number, SegmentFiles()), later=segment is not life.segments[-1])
    if life.phase in WORKFLOW_ENDED and life.ended_s is not None:
        last = life.segments[-1].number if life.segments else 0
        found.append(Event(at_s=life.ended_s, kind="end", segment=last, text=life.phase.lower()))
    return tuple(sorted(found, key=lambda event: event.at_s))


def _of_segment(segment: Segment, files: SegmentFiles, *, later: bool) -> list[Event]:
    """The events of one segment."""
    found = []
    if segment.granted_s is not None:
        first = [held for held in segment.holdings if held.start_s <= segment.granted_s + _AT_ONCE_S]
        gpus, nodes = sum(held.gpus for held in first), ", ".join(sorted({held.node for held in first}))
        found.append(
            Event(
                at_s=segment.granted_s,
                kind="grant",
                segment=segment.number,
                to_size=gpus,
                text=f"granted {many(gpus)} on {nodes or 'no node yet'}",
            )
        )
    found += [_resize(segment.number, record) for record in files.resizes if record.get("kind") != "stop"]
    if segment.ended_s is not None and later:
        found.append(_stop(segment, files))
    return found


def _resize(number: int, record: Object) -> Event:
    """What a driver's resize record tells."""
    kind, before, after = (
        str(record.get("kind", "")),
        int(record.get("from_size") or 0),
        int(record.get("to_size") or 0),
    )
    if kind == "start" and number > 0:
        kind = "resume"
    words = {
        "start": f"training starts on {after}",
        "resume": f"resumes from its checkpoint on {after}",
        "replace": f"a rank is replaced in place ({after})",
    }
    moment = record.get("first_step_s") or record.get("last_step_s") or record.get("document_s") or 0.0
    still_s = record.get("still_s")
    return Event(
        at_s=float(moment),
        kind=kind,
        segment=number,
        from_size=before,
        to_size=after,
        still_s=None if still_s is None or kind in ("start", "resume") else float(still_s),
        steps_lost=int(record.get("steps_lost") or 0),
        text=words.get(kind, f"{'grows' if kind == 'grow' else 'shrinks'} in place {before} -> {after}"),
    )


def _stop(segment: Segment, files: SegmentFiles) -> Event:
    """The end of a segment that others followed."""
    stop = next((record for record in reversed(files.resizes) if record.get("kind") == "stop"), {})
    graceful = segment.outcome == "resize"
    ended_s = segment.ended_s or 0.0
    return Event(
        at_s=float(stop.get("last_step_s") or ended_s),
        kind="preempt" if graceful else "lost",
        segment=segment.number,
        from_size=int(stop.get("from_size") or segment.size),
        steps_lost=int(stop.get("steps_lost") or 0),
        text="preempted to a checkpoint" if graceful else _lost(files),
    )


def _lost(files: SegmentFiles) -> str:
    """How a segment was lost: its driver fails with a word of why, or is gone without one."""
    if files.end.get("outcome") != "failed":
        return "lost its driver, goes back to its last checkpoint"
    return f"failed, is tried again: {files.end.get('message') or 'nobody said why'}"

"""A job's life as a list of events, each a moment and a word or two: what people read, and what the report marks.

In: a life and the files that its drivers left. Out: events in order, pure. What only the scheduler knows, why it did
what it did, is added by ``story``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from voda_flows.objects import WORKFLOW_ENDED, Object
from voda_flows.report.files import SegmentFiles
from voda_flows.report.lives import JobLife, Segment
from voda_flows.report.times import many, short

#: Waits shorter than this are not worth a word.
_A_WAIT_S: Final = 1.0
#: Kinds of events that change a job's size.
RESIZES: Final = ("grow", "shrink", "replace", "preempt", "resume")
#: Kinds, in the order in which events of one moment happened.
KINDS: Final = (
    "submit",
    "queue",
    "refuse",
    "grant",
    "evict",
    "start",
    "resume",
    "crash",
    "replace",
    "grow",
    "shrink",
    "preempt",
    "lost",
    "checkpoint",
    "retry",
    "end",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """Something that happened to a job.

    Attributes:
        at_s: When, seconds since the epoch.
        kind: One of ``KINDS``.
        segment: In which segment.
        from_size: Ranks before.
        to_size: Ranks after.
        still_s: How long training stood still, None where it did not or nobody measured it.
        steps_lost: Steps that had to be done again.
        step: Step of the checkpoint that is meant, None where none is.
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
    step: int | None = None
    text: str = ""
    reason: str = ""


def events(life: JobLife, files: Mapping[int, SegmentFiles]) -> tuple[Event, ...]:
    """What happened to a job, in order.

    Args:
        life: The job.
        files: What its drivers wrote down, by segment.

    Returns:
        The events. A segment that was stopped to be resumed later ends in one ``preempt``; one that broke ends in one
        ``lost``, and ``retry`` says how often that may still happen.
    """
    found = [Event(at_s=life.submitted_s, kind="submit", text=f"submitted, asks for {many(life.asks)}")]
    failures, before = 0, SegmentFiles()
    for segment, following in zip(life.segments, [*life.segments[1:], None], strict=False):
        own = files.get(segment.number, SegmentFiles())
        failures = _failures(own, failures)
        found += [*_before(life, segment), *_training(segment, own, before)]
        found += _closing(segment, own, later=following is not None)
        if following is not None and segment.outcome == "lost":
            found.append(_retry(life, following, own, failures))
        before = own
    if life.phase in WORKFLOW_ENDED and life.ended_s is not None:
        found.append(_end(life, failures))
    return in_order(found)


def in_order(found: list[Event]) -> tuple[Event, ...]:
    """Events by time; those of one moment as one follows from the other."""
    return tuple(sorted(found, key=lambda event: (event.at_s, event.segment, KINDS.index(event.kind))))


def _before(life: JobLife, segment: Segment) -> Iterator[Event]:
    """The queue and the grant."""
    ends_s = segment.granted_s or life.ended_s
    waited_s = None if ends_s is None else ends_s - segment.queued_s
    words = "queued" if waited_s is None or waited_s < _A_WAIT_S else f"queued for {short(waited_s)}"
    if segment.message:
        words = segment.message
    yield Event(at_s=segment.queued_s, kind="queue", segment=segment.number, text=words)
    if segment.granted_s is None:
        return
    gpus, nodes = sum(segment.granted.values()), ", ".join(sorted(segment.granted))
    yield Event(
        at_s=segment.granted_s,
        kind="grant",
        segment=segment.number,
        to_size=gpus,
        text=f"granted {many(gpus)} on {nodes or 'no node'}",
    )


def _training(segment: Segment, files: SegmentFiles, before: SegmentFiles) -> Iterator[Event]:
    """Start, changes of size, and workers that broke while the driver went on."""
    for record in files.resizes:
        if record.get("kind") != "stop":
            yield _resize(segment.number, record, before)
    for held in segment.holdings:
        driven = segment.driver_ended_s is None or (held.end_s or 0.0) < segment.driver_ended_s
        if held.phase in ("Failed", "Error") and held.end_s is not None and driven:
            text = f"worker {held.worker} on {held.node} is gone"
            yield Event(at_s=held.end_s, kind="crash", segment=segment.number, text=text)


def _resize(number: int, record: Object, earlier: SegmentFiles) -> Event:
    """What a driver's resize record tells."""
    kind, before, after = str(record.get("kind")), int(record.get("from_size") or 0), int(record.get("to_size") or 0)
    if kind == "start" and number > 0:
        kind = "resume"
    words = {
        "start": f"training starts on {after}",
        "resume": f"{_whence(earlier)} on {after}",
        "grow": f"grows in place {before} -> {after}",
        "shrink": f"shrinks in place {before} -> {after}",
    }
    moment = record.get("first_step_s") or record.get("last_step_s") or record.get("document_s") or 0.0
    still_s = record.get("still_s")
    return Event(
        at_s=float(moment),
        kind=kind if kind in words else "replace",
        segment=number,
        from_size=before,
        to_size=after,
        still_s=None if still_s is None or kind in ("start", "resume") else float(still_s),
        steps_lost=int(record.get("steps_lost") or 0),
        step=_kept(earlier) if kind == "resume" else None,
        text=words.get(kind) or _crash(before, after),
    )


def _crash(before: int, after: int) -> str:
    """How ranks go on after a crash: first those that are left, then with the crashed one's successor."""
    if after < before:
        return f"a rank crashed, the others go on ({before} -> {after})"
    return f"a crashed rank is replaced in place ({before} -> {after})"


def _whence(earlier: SegmentFiles) -> str:
    """Where a later segment begins."""
    step = _kept(earlier)
    if step is None:
        return "starts anew, there was no checkpoint," if earlier.verdict else "resumes from its checkpoint"
    return f"resumes from the checkpoint of step {step}"


def _closing(segment: Segment, files: SegmentFiles, *, later: bool) -> Iterator[Event]:
    """The end of a segment, and the checkpoint that it left."""
    step = _kept(files)
    if segment.ended_s is None:
        return
    if later:
        yield _stop(segment, files, step)
    if step is not None:
        text = f"checkpoint of step {step} verified"
        yield Event(at_s=segment.ended_s, kind="checkpoint", segment=segment.number, step=step, text=text)


def _stop(segment: Segment, files: SegmentFiles, step: int | None) -> Event:
    """The end of a segment that others followed."""
    stop = next((record for record in reversed(files.resizes) if record.get("kind") == "stop"), {})
    graceful, ended_s = segment.outcome == "resize", segment.ended_s or 0.0
    began = bool(files.resizes) or not files.verdict
    lost = int(stop.get("steps_lost") or 0)
    return Event(
        at_s=float(stop.get("last_step_s") or min(ended_s, segment.driver_ended_s or ended_s)),
        kind="preempt" if graceful else "lost",
        segment=segment.number,
        from_size=int(stop.get("from_size") or segment.size),
        steps_lost=lost if graceful else max(lost, _reached(files) - max(step or 0, 0)),
        text=("preempted to a checkpoint" if began else "stopped before it began") if graceful else _lost(files),
    )


def _lost(files: SegmentFiles) -> str:
    """How a segment was lost: its driver fails with a word of why, or is gone without one."""
    if files.end.get("outcome") != "failed":
        return "lost its driver, goes back to its last checkpoint"
    return f"failed, is tried again: {files.end.get('message') or 'nobody said why'}"


def _retry(life: JobLife, following: Segment, files: SegmentFiles, failures: int) -> Event:
    """The attempt after a segment that broke."""
    limit = life.asked.get("retry-limit", "3")
    if files.verdict.get("counted"):
        count = f"failure {failures} in a row, {limit} are allowed"
    else:
        count = "not counted as a failure"
    text = f"tried again as segment {following.number} ({count})"
    return Event(at_s=following.queued_s, kind="retry", segment=following.number, text=text)


def _end(life: JobLife, failures: int) -> Event:
    """How it ended, and why where it did not succeed."""
    last = life.segments[-1].number if life.segments else 0
    why = f": {life.message}" if life.message and life.phase != "Succeeded" else ""
    if why and failures:
        why += f" (failure {failures} in a row, {life.asked.get('retry-limit', '3')} are allowed)"
    return Event(at_s=life.ended_s or 0.0, kind="end", segment=last, text=f"{life.phase.lower()}{why}")


def _failures(files: SegmentFiles, before: int) -> int:
    """Failures in a row without a new checkpoint, this segment included; a lost node is passed over."""
    if files.verdict.get("counted"):
        return before + 1
    return before if files.verdict.get("state") == "lost" and not files.end else 0


def _kept(files: SegmentFiles) -> int | None:
    """Step of the newest good checkpoint after a segment, None where there is none or nobody looked."""
    step = files.verdict.get("step")
    return step if isinstance(step, int) and step >= 0 else None


def _reached(files: SegmentFiles) -> int:
    """The highest step that a segment is known to have made."""
    steps = (files.end.get("step"), *(row.get("step") for row in files.rows[-1:]))
    return max((step for step in steps if isinstance(step, int)), default=0)

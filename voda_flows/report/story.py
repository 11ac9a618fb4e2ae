"""A job's life as a story: its events, and with each what the scheduler's account of its rounds has to say of it. Pure.

In: a life, the files of its drivers, the scheduler's rounds. Out: events with reasons. ``voda events``, ``voda get``
and the report tell it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from voda_flows.objects import Object
from voda_flows.report.events import Event, events, in_order
from voda_flows.report.files import SegmentFiles
from voda_flows.report.history import short_name
from voda_flows.report.lives import JobLife
from voda_flows.report.times import short

#: Which actions of a round are behind which events.
_ACTIONS: Final = {"grant": ("Grant",), "grow": ("Grow", "Publish"), "shrink": ("Publish",), "preempt": ("Stop",)}
#: A round's moment is that of its observation, an event's that of another process of this machine.
_CLOCKS_S: Final = 1.0
_DOWN: Final = ("shrink", "preempt")


def story(life: JobLife, files: Mapping[int, SegmentFiles], rounds: Sequence[Object] = ()) -> tuple[Event, ...]:
    """What happened to a job and why, in order.

    Args:
        life: The job.
        files: What its drivers wrote down, by segment.
        rounds: The scheduler's rounds, oldest first (``history.history``); the more, the more is explained.

    Returns:
        Events; ``reason`` is empty where the scheduler did not say why, or no longer remembers.
    """
    name = f"{life.workflow}/{life.name}"
    lasted_s = (life.submitted_s - _CLOCKS_S, life.ended_s)
    mine = [row for row in rounds if _within(row, lasted_s) and _names(row, name)]
    found = [_explained(event, life, name, mine, rounds) for event in events(life, files)]
    return in_order([*found, *_told(name, mine)])


def _within(row: Object, span: tuple[float, float | None]) -> bool:
    """Whether a round was while the job lived: a later job may have its name."""
    from_s, to_s = span
    return bool(from_s <= row.get("time_s", 0.0) <= (float("inf") if to_s is None else to_s + _CLOCKS_S))


def _names(row: Object, name: str) -> bool:
    """Whether a round did something with a job."""
    return name in (row.get("queued") or {}) or any(action.get("job") == name for action in row.get("actions") or ())


def _explained(event: Event, life: JobLife, name: str, mine: Sequence[Object], rounds: Sequence[Object]) -> Event:
    """An event with the scheduler's word on it."""
    if event.kind == "queue":
        return _placed(event, life, name, mine)
    wanted = _ACTIONS.get(event.kind)
    if wanted is None:
        return event
    for row in reversed(mine):
        if row["time_s"] > event.at_s + _CLOCKS_S:
            continue
        for action in row.get("actions") or ():
            same = action.get("job") == name and action.get("segment", event.segment) == event.segment
            if same and action.get("action") in wanted:
                return _with_reason(event, action, _change(name, row, rounds, event.kind))
    return event


def _placed(event: Event, life: JobLife, name: str, mine: Sequence[Object]) -> Event:
    """The beginning of a wait with the place that the job had in the queue then."""
    segment = next((one for one in life.segments if one.number == event.segment), None)
    if segment is None or segment.message:
        return event
    until_s = segment.granted_s or life.ended_s or float("inf")
    for row in mine:
        if event.at_s - _CLOCKS_S <= row["time_s"] <= until_s and name in (row.get("queued") or {}):
            waited = "" if until_s == float("inf") else f"; waited {short(until_s - event.at_s)}"
            return replace(event, text=f"{row['queued'][name]}{waited}")
    return event


@dataclass(frozen=True, slots=True, kw_only=True)
class _Change:
    """What the decision behind an action changed.

    Attributes:
        decision: Its number.
        policy: Who made it.
        before: GPUs of each job before it, None where that is no longer known.
        after: GPUs of each job by it.
    """

    decision: int
    policy: str
    before: Mapping[str, int] | None
    after: Mapping[str, int]

    def moved(self, name: str) -> int:
        """How many GPUs more it gave to a job."""
        return self.after.get(name, 0) - (self.before or {}).get(name, 0)


def _change(name: str, row: Object, rounds: Sequence[Object], kind: str) -> _Change:
    """The newest decision up to a round that changed the job's number; the round's own where none is remembered.

    A worker that was granted before the last decision took some away may still come: growth is due to one that gave.
    A job that comes back with what it had, after ``voda down`` or a crash, owes that grant to no change.
    """
    own = _Change(decision=_number(row), policy=str(row.get("policy") or ""), before=None, after=row.get("gpus") or {})
    later = row
    for earlier in reversed([one for one in rounds if _number(one) <= own.decision]):
        before, after = earlier.get("gpus") or {}, later.get("gpus") or {}
        more = after.get(name, 0) - before.get(name, 0)
        if more > 0 or (more < 0 and kind in _DOWN):
            return _Change(decision=_number(later), policy=str(later.get("policy") or ""), before=before, after=after)
        if kind == "grant" and earlier is not row and _ran(earlier, name):
            return own
        later = earlier
    return own


def _ran(row: Object, name: str) -> bool:
    """Whether a round did something with a job's workers."""
    actions = row.get("actions") or ()
    return any(one.get("job") == name and one.get("action") in ("Grant", "Grow", "Publish", "Stop") for one in actions)


def _number(row: Object) -> int:
    """A round's decision."""
    return int(row.get("decision") or 0)


def _with_reason(event: Event, action: Object, change: _Change) -> Event:
    """An event with why it was, and for whom."""
    name = str(action["job"])
    down = event.kind in _DOWN
    fits = change.before is not None and (change.moved(name) < 0) == down
    others = [job for job in sorted({*change.after, *(change.before or {})}) if job != name]
    moved = [job for job in others if fits and (change.moved(job) > 0) == down and change.moved(job)]
    gave = ", ".join(f"{short_name(job)} ({_from_to(change, job)})" for job in moved)
    whom = ("makes room for " if down else "takes what is left by ") + gave if gave else ""
    by = f", {change.policy}" if change.policy else ""
    decided = f"decision {change.decision}{by}: {change.after.get(name, 0)} for this job"
    said = [text for text in (str(action.get("reason") or ""), whom, decided) if text]
    text = event.text
    if event.kind == "preempt" and moved:
        text += f" for {', '.join(short_name(job) for job in moved)}"
    return replace(event, text=text, reason="; ".join(said))


def _from_to(change: _Change, job: str) -> str:
    """How another job's number changed."""
    return f"{(change.before or {}).get(job, 0)} -> {change.after.get(job, 0)}"


def _told(name: str, mine: Sequence[Object]) -> Iterator[Event]:
    """What only the scheduler knows: workers that it gave up, and requests that it refused."""
    for row in mine:
        for action in row.get("actions") or ():
            if action.get("job") != name or action.get("action") not in ("Evict", "Abandon", "Refuse"):
                continue
            refused = action["action"] == "Refuse"
            who = action.get("role") or f"worker {action.get('worker_id', '')}"
            yield Event(
                at_s=row["time_s"],
                kind="refuse" if refused else "evict",
                segment=int(action.get("segment") or 0),
                text="refused at its gate" if refused else f"{who} is given up",
                reason=str(action.get("reason") or ""),
            )

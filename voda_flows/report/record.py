"""The record of a world: nodes, jobs with their lives, events and numbers; pure, and the one thing all views show.

``gather`` makes it from a store; ``document`` is its JSON, which ``voda report -o json`` prints and tests read.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Final

from voda_flows.objects import GPU, Object, seconds
from voda_flows.report.events import Event
from voda_flows.report.files import SegmentFiles
from voda_flows.report.lives import Holding, JobLife
from voda_flows.report.slots import with_slots
from voda_flows.report.span import EVERYTHING, Span, files_until, until
from voda_flows.report.statistics import Distribution, statistics
from voda_flows.report.story import story
from voda_flows.report.summary import Summary, summary

VERSION: Final = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeRecord:
    """A node and how many GPU slots it has.

    Attributes:
        name: Its name.
        slots: GPU slots; of a node that is gone, as many as were held.
        from_s: Since when it is known, None for always.
        to_s: When the last hold on a node that is gone ended; None while it is there.
    """

    name: str
    slots: int
    from_s: float | None = None
    to_s: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class JobRecord:
    """A job: its life, what happened, what it reported, and the numbers."""

    life: JobLife
    happened: tuple[Event, ...]
    rows: tuple[Object, ...]
    numbers: Summary

    @property
    def held(self) -> tuple[Holding, ...]:
        """All its holds."""
        return tuple(one for segment in self.life.segments for one in segment.holdings)


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """A world over a span of time.

    Attributes:
        taken_s: The moment at whose state it is told, seconds since the epoch: the span's end, or when it was taken.
        nodes: By name; those that are gone too, where somebody held a slot of theirs in the span.
        jobs: Those that lived in the span, in order of submission, each from its submission on.
        span: What was asked for.
    """

    taken_s: float
    nodes: tuple[NodeRecord, ...]
    jobs: tuple[JobRecord, ...]
    span: Span = EVERYTHING

    @property
    def from_s(self) -> float:
        """Where the span begins: as asked for, else the first submission."""
        first_s = min((job.life.submitted_s for job in self.jobs), default=self.taken_s)
        return first_s if self.span.from_s is None else min(self.span.from_s, self.taken_s)

    @property
    def to_s(self) -> float:
        """Where it ends: as asked for, else the last end, or the moment it was taken while something goes on."""
        ends = [job.life.ended_s for job in self.jobs]
        if self.span != EVERYTHING or not all(ends):
            return self.taken_s
        return max((end_s for end_s in ends if end_s is not None), default=self.taken_s)

    @property
    def ended(self) -> tuple[JobRecord, ...]:
        """Jobs that succeeded in the span: the ones whose times are summed up."""
        return tuple(
            job
            for job in self.jobs
            if job.life.phase == "Succeeded" and job.life.ended_s is not None and job.life.ended_s >= self.from_s
        )

    @property
    def slots(self) -> int:
        """GPU slots that there are."""
        return sum(node.slots for node in self.nodes if node.to_s is None)

    @property
    def utilisation(self) -> float:
        """GPU seconds held in the span out of those there were, 0 to 1."""
        from_s, to_s = self.from_s, self.to_s
        there = sum(node.slots * _inside(node.from_s, node.to_s, (from_s, to_s)) for node in self.nodes)
        held = sum(one.gpus * _inside(one.start_s, one.end_s, (from_s, to_s)) for job in self.jobs for one in job.held)
        return min(1.0, held / there) if there > 0 else 0.0

    def busy(self) -> tuple[tuple[float, int], ...]:
        """How many GPUs were held, as (from when, how many), from the span's beginning on."""
        return self._counts((one.start_s, one.end_s, one.gpus) for job in self.jobs for one in job.held)

    def waiting(self) -> tuple[tuple[float, int], ...]:
        """How many jobs waited at a gate, as (from when, how many), from the span's beginning on."""
        waits = (wait for job in self.jobs for wait in job.life.waits(self.taken_s))
        return self._counts((from_s, to_s, 1) for from_s, to_s in waits)

    def statistics(self) -> Mapping[str, Distribution]:
        """How long jobs took that succeeded in the span, by the names of ``statistics.TIMES``."""
        return statistics([job.numbers for job in self.ended])

    def _counts(self, spans: Iterable[tuple[float, float | None, int]]) -> tuple[tuple[float, int], ...]:
        """Sums over time of what was there from when to when."""
        begins_s, changes = self.from_s, Counter({self.from_s: 0})
        for from_s, to_s, count in spans:
            ends_s = self.taken_s if to_s is None else to_s
            if ends_s > begins_s:
                changes[max(from_s, begins_s)] += count
                changes[ends_s] -= count
        count, steps = 0, []
        for moment_s, change in sorted(changes.items()):
            count += change
            steps.append((moment_s, count))
        return tuple(steps)


@dataclass(frozen=True, slots=True, kw_only=True)
class Sources:
    """What a record is made from.

    Attributes:
        now_s: The moment, seconds since the epoch.
        nodes: Node objects.
        files: What drivers wrote, by job id and segment.
        rounds: The scheduler's account of its rounds, oldest first.
    """

    now_s: float
    nodes: tuple[Object, ...]
    files: Mapping[str, Mapping[int, SegmentFiles]]
    rounds: tuple[Object, ...] = ()


def record(lives: Sequence[JobLife], sources: Sources, span: Span = EVERYTHING) -> Record:
    """Put a record together.

    Args:
        lives: Jobs in order of submission.
        sources: Everything else.
        span: What of their time is meant.

    Returns:
        The record: jobs that lived in the span, as they stood at its end. Workers that wrote down no slots are given
        free ones of their node.
    """
    now_s = sources.now_s if span.to_s is None else min(sources.now_s, span.to_s)
    there = [until(life, span.to_s) for life in lives if span.has(life, sources.now_s)]
    jobs = tuple(_job(life, sources, now_s, span.to_s) for life in with_slots(there, now_s))
    made = Record(taken_s=now_s, nodes=(), jobs=jobs, span=span)
    return replace(made, nodes=tuple(_nodes(sources.nodes, made)))


def document(made: Record) -> Object:
    """The record as a JSON object; times are seconds since the epoch."""
    return {
        "version": VERSION,
        "taken_s": made.taken_s,
        "from_s": made.from_s,
        "to_s": made.to_s,
        "slots": made.slots,
        "utilisation": round(made.utilisation, 4),
        "statistics": {name: asdict(one) for name, one in made.statistics().items()},
        "busy": [list(step) for step in made.busy()],
        "waiting": [list(step) for step in made.waiting()],
        "nodes": [asdict(node) for node in made.nodes],
        "jobs": [
            {
                **_life_document(job.life),
                "events": [asdict(event) for event in job.happened],
                "numbers": asdict(job.numbers),
                "reports": list(job.rows),
            }
            for job in made.jobs
        ],
    }


def _life_document(life: JobLife) -> Object:
    """A life as a JSON object; what a segment's record tells is among the job's events and reports."""
    said = asdict(life)
    return {
        **said,
        "asked": dict(life.asked),
        "segments": [{name: value for name, value in row.items() if name != "record"} for row in said["segments"]],
    }


def _job(life: JobLife, sources: Sources, now_s: float, to_s: float | None) -> JobRecord:
    """One job, told up to a moment where there is one."""
    files = sources.files.get(life.id, {})
    rounds = sources.rounds
    if to_s is not None:
        files = files_until(files, life, to_s)
        rounds = tuple(row for row in rounds if row.get("time_s", 0.0) <= to_s)
    rows = tuple(row for number in sorted(files) for row in files[number].rows)
    happened = tuple(event for event in story(life, files, rounds) if to_s is None or event.at_s <= to_s)
    return JobRecord(life=life, happened=happened, rows=rows, numbers=summary(life, happened, rows, now_s))


def _nodes(bodies: Iterable[Object], made: Record) -> list[NodeRecord]:
    """The nodes that there are, and those that are gone but were held, by name."""
    holds: dict[str, list[Holding]] = {}
    for one in (one for job in made.jobs for one in job.held):
        if one.end_s is None or one.end_s > made.from_s:
            holds.setdefault(one.node, []).append(one)
    found = {node.name: node for node in map(_node, bodies)}
    for name, held in holds.items():
        first_s = min(one.start_s for one in held)
        slots = max((slot + 1 for one in held for slot in one.slots), default=0)
        node = found.get(name)
        if node is None:
            last_s = max(made.taken_s if one.end_s is None else one.end_s for one in held)
            found[name] = NodeRecord(name=name, slots=slots, from_s=first_s, to_s=last_s)
        elif node.from_s is not None and first_s < node.from_s:
            found[name] = replace(node, from_s=first_s)
    return sorted(found.values(), key=lambda node: node.name)


def _node(body: Object) -> NodeRecord:
    """One node."""
    allocatable = (body.get("status") or {}).get("allocatable") or {}
    made_s = seconds(body["metadata"].get("creationTimestamp"))
    return NodeRecord(name=body["metadata"]["name"], slots=int(allocatable.get(GPU, 0)), from_s=made_s)


def _inside(from_s: float | None, to_s: float | None, span: tuple[float, float]) -> float:
    """Seconds that something was there within a span; None for as long as that lasts."""
    begins_s = span[0] if from_s is None else max(span[0], from_s)
    ends_s = span[1] if to_s is None else min(span[1], to_s)
    return max(0.0, ends_s - begins_s)

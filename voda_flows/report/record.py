"""The record of a world: nodes, jobs with their lives, events and numbers; pure, and the one thing all views show.

``gather`` makes it from a store; ``document`` is its JSON, which ``voda report -o json`` prints and tests read.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Final

from voda_flows.objects import Object
from voda_flows.report.events import Event
from voda_flows.report.files import SegmentFiles
from voda_flows.report.lives import Holding, JobLife, Segment
from voda_flows.report.story import story
from voda_flows.report.summary import Summary, summary

VERSION: Final = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeRecord:
    """A node and how many GPU slots it has."""

    name: str
    slots: int


@dataclass(frozen=True, slots=True, kw_only=True)
class JobRecord:
    """A job: its life, what happened, what it reported, and the numbers."""

    life: JobLife
    happened: tuple[Event, ...]
    rows: tuple[Object, ...]
    numbers: Summary


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """A world up to one moment.

    Attributes:
        taken_s: The moment, seconds since the epoch.
        nodes: By name.
        jobs: In order of submission.
    """

    taken_s: float
    nodes: tuple[NodeRecord, ...]
    jobs: tuple[JobRecord, ...]

    @property
    def from_s(self) -> float:
        """First submission."""
        return min((job.life.submitted_s for job in self.jobs), default=self.taken_s)

    @property
    def to_s(self) -> float:
        """Last end, or the moment it was taken while something goes on."""
        ends = [job.life.ended_s for job in self.jobs]
        return max((end_s for end_s in ends if end_s is not None), default=self.taken_s) if all(ends) else self.taken_s

    @property
    def slots(self) -> int:
        """GPU slots in all."""
        return sum(node.slots for node in self.nodes)

    @property
    def utilisation(self) -> float:
        """GPU seconds held out of those there were, 0 to 1."""
        there = self.slots * (self.to_s - self.from_s)
        return min(1.0, sum(job.numbers.gpu_s for job in self.jobs) / there) if there > 0 else 0.0

    def busy(self) -> tuple[tuple[float, int], ...]:
        """How many GPUs were held, as (from when, how many)."""
        changes: dict[float, int] = {self.from_s: 0}
        for job in self.jobs:
            for held in _held(job.life):
                changes[held.start_s] = changes.get(held.start_s, 0) + held.gpus
                end_s = held.end_s if held.end_s is not None else self.taken_s
                changes[end_s] = changes.get(end_s, 0) - held.gpus
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


def record(lives: Sequence[JobLife], sources: Sources) -> Record:
    """Put a record together.

    Args:
        lives: Jobs in order of submission.
        sources: Everything else.

    Returns:
        The record. Workers that wrote down no slots are given free ones of their node.
    """
    rows = sorted((_node(body) for body in sources.nodes), key=lambda node: node.name)
    jobs = tuple(_job(life, sources) for life in _with_slots(lives, sources.now_s))
    return Record(taken_s=sources.now_s, nodes=tuple(rows), jobs=jobs)


def document(made: Record) -> Object:
    """The record as a JSON object; times are seconds since the epoch."""
    return {
        "version": VERSION,
        "taken_s": made.taken_s,
        "from_s": made.from_s,
        "to_s": made.to_s,
        "slots": made.slots,
        "utilisation": round(made.utilisation, 4),
        "nodes": [asdict(node) for node in made.nodes],
        "jobs": [
            {
                **asdict(job.life),
                "asked": dict(job.life.asked),
                "events": [asdict(event) for event in job.happened],
                "numbers": asdict(job.numbers),
                "reports": list(job.rows),
            }
            for job in made.jobs
        ],
    }


def _job(life: JobLife, sources: Sources) -> JobRecord:
    """One job."""
    files = sources.files.get(life.id, {})
    rows = tuple(row for number in sorted(files) for row in files[number].rows)
    happened = story(life, files, sources.rounds)
    return JobRecord(life=life, happened=happened, rows=rows, numbers=summary(life, happened, rows, sources.now_s))


def _node(body: Object) -> NodeRecord:
    """One node."""
    allocatable = (body.get("status") or {}).get("allocatable") or {}
    return NodeRecord(name=body["metadata"]["name"], slots=int(allocatable.get("nvidia.com/gpu", 0)))


def _held(life: JobLife) -> list[Holding]:
    """All holdings of a job."""
    return [held for segment in life.segments for held in segment.holdings]


def _with_slots(lives: Sequence[JobLife], now_s: float) -> list[JobLife]:
    """Lives in which every holding has slots: those that were written down, else the lowest that nobody held then."""
    everyone = [held for life in lives for held in _held(life)]
    taken = [(held.node, slot, held) for held in everyone for slot in held.slots]
    given: dict[int, tuple[int, ...]] = {}
    for held in sorted(everyone, key=lambda one: (one.start_s, one.node, one.worker)):
        if not held.slots:
            busy = {slot for node, slot, other in taken if node == held.node and _overlap(held, other, now_s)}
            free = (slot for slot in range(len(busy) + held.gpus) if slot not in busy)
            given[id(held)] = tuple(slot for slot, _ in zip(free, range(held.gpus), strict=False))
            taken += [(held.node, slot, held) for slot in given[id(held)]]
    return [replace(life, segments=tuple(_filled(segment, given) for segment in life.segments)) for life in lives]


def _filled(segment: Segment, given: Mapping[int, tuple[int, ...]]) -> Segment:
    """A segment with the slots that were found for its holdings."""
    holdings = tuple(replace(held, slots=given.get(id(held), held.slots)) for held in segment.holdings)
    return replace(segment, holdings=holdings)


def _overlap(one: Holding, other: Holding, now_s: float) -> bool:
    """Whether two holdings were there at the same time."""
    return one.start_s < (other.end_s or now_s) and other.start_s < (one.end_s or now_s)

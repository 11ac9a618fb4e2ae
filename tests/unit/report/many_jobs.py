"""A long history: hundreds of jobs that came, waited, were resized, preempted, failed and ended on a few nodes."""

from __future__ import annotations

import random
from collections.abc import Iterator

from tests.unit.report.five_jobs import act, curve, decision
from tests.unit.report.world import START_S, Building, node, resize
from voda_flows.objects import Object
from voda_flows.report.files import SegmentFiles
from voda_flows.report.lives import lives
from voda_flows.report.record import Record, Sources, record
from voda_flows.report.span import EVERYTHING, Span

NODES, SLOTS = 4, 4


def jobs(count: int, seed: int = 1) -> Iterator[Building]:
    """Jobs of 1 to 4 workers, each placed where it is first possible; every tenth is preempted once, some fail."""
    chance = random.Random(seed)
    free_s = {(f"n{number}", slot): 0.0 for number in range(NODES) for slot in range(SLOTS)}
    submitted = 0.0
    for number in range(count):
        submitted += chance.expovariate(1 / 60)
        workers, runs = chance.choice((1, 1, 2, 2, 3, 4)), 60 + chance.lognormvariate(5, 1)
        slots = sorted(free_s, key=lambda slot: (free_s[slot], slot))[:workers]
        granted = max([submitted + 1, *(free_s[slot] for slot in slots)])
        job = Building(name=f"job-{number:03d}", uid=f"u{number}", submitted=submitted, asked={"epochs": "20"})
        ends = _run(job, granted, runs, slots, preempted=number % 10 == 3, fails=number % 37 == 5)
        free_s |= dict.fromkeys(slots, ends)
        yield job


def _run(
    job: Building, granted: float, runs: float, slots: list[tuple[str, int]], *, preempted: bool, fails: bool
) -> float:
    """What happens to one job from its grant on; when it is over."""
    workers = [(f"w{number}", on) for number, (on, _) in enumerate(slots)]
    names = [name for name, _ in workers]
    job.grant(granted, *workers).publish(*names)
    size, ends = len(workers), granted + runs
    if preempted:
        middle = granted + runs / 2
        job.stop(middle, "resize", *names).judged(0, 100)
        job.wrote(
            0,
            resize("start", 0, size, granted + 4),
            resize("stop", size, 0, middle),
            rows=curve(granted, middle, 9, 0.8),
        )
        job.grant(middle + 20, *workers).publish(*names)
        ends += 20
    start = resize("start", 0, size, granted + 5)
    more = [resize("shrink", size, size - 1, granted + runs / 3, still=0.1)] if size > 1 and not preempted else []
    job.wrote(job.segment, start, *more, rows=curve(granted + 5, ends, 20, 0.95, segment=job.segment))
    if fails:
        job.files[job.segment] = SegmentFiles(end={"outcome": "failed", "message": "exit code 1", "step": 100})
        job.end(f"{job.train}.driver", ends, "Failed")
        job.leave(ends, *names).finish(ends + 1, "Failed")
    else:
        job.stop(ends, "done", *names)
    return ends + 1


def many_jobs(count: int, span: Span = EVERYTHING, later_s: float = 0.0) -> Record:
    """The record of such a world, so long after its last end."""
    made = list(jobs(count))
    found = [life for job in made for life in lives(job.workflow(), job.pods.values())]
    files = {life.id: job.files for job, life in zip(made, found, strict=True)}
    rounds: tuple[Object, ...] = tuple(
        decision(job.submitted, number, {f"{job.name}/train": 1}, act(job.name, "Grant"))
        for number, job in enumerate(made)
    )
    now_s = START_S + max(job.finished or 0.0 for job in made) + later_s
    nodes = tuple(node(f"n{number}", SLOTS) for number in range(NODES))
    return record(found, Sources(now_s=now_s, nodes=nodes, files=files, rounds=rounds), span)

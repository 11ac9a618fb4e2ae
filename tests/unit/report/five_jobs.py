"""A hand-made world that has everything: growth, shrinking, a preemption to zero, a failure, jobs that wait."""

from __future__ import annotations

import math
from collections.abc import Iterator

from tests.unit.report.world import START_S, Building, node, resize, row
from voda_flows.objects import Object
from voda_flows.report.lives import lives
from voda_flows.report.record import Record, Sources, record


def curve(start: float, end: float, steps: int, best: float, *, segment: int = 0) -> tuple[Object, ...]:
    """Rows of a training that gets better."""
    return tuple(
        row(
            start + (end - start) * number / steps,
            number,
            number * 20,
            segment=segment,
            loss=2.3 * math.exp(-3 * number / steps) + 0.05,
            accuracy=best * (1 - math.exp(-5 * (number + 1) / steps)),
        )
        for number in range(steps)
    )


def jobs() -> Iterator[Building]:
    """Five jobs on two nodes with two slots each."""
    digits = Building(name="digits", uid="u1").grant(1, ("w0", "n0"), ("w1", "n0"), ("w2", "n1"), ("w3", "n1"))
    digits.publish("w0", "w1", "w2", "w3").leave(32, "w2", "w3").leave(72, "w1")
    digits.stop(95, "resize", "w0").judged(0, 340)
    digits.grant(128, ("w0", "n0"), ("w1", "n0")).publish("w0", "w1").grow(150, "w2", "n1").stop(
        170, "done", "w0", "w1", "w2"
    )
    digits.wrote(
        0,
        resize("start", 0, 4, 6),
        resize("shrink", 4, 2, 31, still=0.12),
        resize("shrink", 2, 1, 70, still=0.11),
        resize("stop", 1, 0, 94.5),
        rows=curve(6, 94, 18, 0.96),
    )
    digits.wrote(
        1, resize("start", 0, 2, 131), resize("grow", 2, 3, 154, still=0.21), rows=curve(131, 169, 9, 0.985, segment=1)
    )
    yield digits
    text = Building(name="text", uid="u2", submitted=25, asked={"max-gpus": "2"}).grant(33, ("w0", "n1"), ("w1", "n1"))
    text.publish("w0", "w1").stop(94, "resize", "w0", "w1")
    text.grant(129, ("w0", "n1")).publish("w0").stop(165, "done", "w0")
    text.wrote(0, resize("start", 0, 2, 38), resize("stop", 2, 0, 93), rows=curve(38, 93, 12, 0.5))
    text.wrote(1, resize("start", 0, 1, 132), rows=curve(132, 164, 8, 0.6, segment=1))
    yield text
    rigid = Building(name="rigid", uid="u3", submitted=60, asked={"min-gpus": "2", "max-gpus": "2"})
    yield rigid.say("place 1 of 1; waits for 2 GPUs")
    urgent = Building(
        name="urgent", uid="u4", submitted=92, asked={"min-gpus": "3", "max-gpus": "3", "priority": "high"}
    )
    urgent.grant(97, ("w0", "n0"), ("w1", "n0"), ("w2", "n1")).publish("w0", "w1", "w2").stop(
        126, "done", "w0", "w1", "w2"
    )
    yield urgent.wrote(0, resize("start", 0, 3, 101), rows=curve(101, 126, 8, 0.97))
    broken = Building(name="broken", uid="u5", submitted=100)
    yield broken.finish(101, "Failed")


def decision(when: float, number: int, gpus: dict[str, int], *actions: Object) -> Object:
    """A round of the scheduler."""
    return {
        "time_s": START_S + when,
        "decision": number,
        "kind": "Full",
        "policy": "elastic_fifo",
        "gpus": gpus,
        "actions": list(actions),
    }


def act(job: str, action: str, **more: object) -> Object:
    """An action of a round."""
    return {"job": f"{job}/train", "action": action, "segment": 0, **more}


def five_jobs() -> Record:
    """The record of these jobs, 175 s after the start."""
    made = list(jobs())
    found = [life for job in made for life in lives(job.workflow(), job.pods.values())]
    rounds = (
        decision(1, 1, {"digits/train": 4}, act("digits", "Grant", workers=[])),
        decision(30, 2, {"digits/train": 2, "text/train": 2}, act("digits", "Publish", worker_ids=["w0", "w1"])),
        decision(61, 3, {"digits/train": 2, "text/train": 2}) | {"queued": {"rigid/train": "queued: place 1"}},
        decision(
            92.5,
            4,
            {"digits/train": 1, "urgent/train": 3},
            act("text", "Stop", reason="preempted: its GPUs are given to jobs before it"),
        ),
    )
    files = {life.id: job.files for job, life in zip(made, found, strict=True)}
    nodes = (node("n0", 2), node("n1", 2))
    return record(found, Sources(now_s=START_S + 175, nodes=nodes, files=files, rounds=rounds))

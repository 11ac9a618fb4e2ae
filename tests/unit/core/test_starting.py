"""When a waiting job is expected to start, and how seldom that is told anew."""

from __future__ import annotations

import pytest

from scheduler_core.converging.announce import queue_messages
from scheduler_core.estimate.starting import expected_starts, told_or_new
from scheduler_core.model.cluster import Cluster, Node
from scheduler_core.model.job import Job, JobPhase, Progress
from scheduler_core.model.observation import Observation
from scheduler_core.model.target import Target
from tests.unit.core.builders import NOW_S, cluster, spec, workers


def running(name: str, *nodes: str, epochs: int = 10, done: int = 5, attained_gpu_s: float = 1000.0) -> Job:
    """A job that trains on these nodes, a GPU each."""
    return Job(
        spec=spec(name, (1, len(nodes)), epochs=epochs),
        phase=JobPhase.RUNNING,
        workers=workers(*nodes),
        attained_gpu_s=attained_gpu_s,
        progress=Progress(epoch=done),
    )


def world(*jobs: Job, nodes: Cluster | None = None) -> Observation:
    """Two nodes with two GPUs each, unless said otherwise."""
    return Observation(now_s=NOW_S, cluster=nodes or cluster(2, 2), jobs=tuple(sorted(jobs, key=lambda job: job.id)))


def waiting(name: str, gpus: int = 1, message: str = "", **changes: object) -> Job:
    """A job that waits for so many GPUs."""
    return Job(spec=spec(name, (gpus, gpus), **changes), phase=JobPhase.QUEUED, message=message)


def test_jobs_start_when_enough_others_have_ended() -> None:
    """`a` has had 1000 GPU seconds for 5 of 10 epochs: on two GPUs 500 s more; `b` twice as much: 1000 s more."""
    seen = world(running("a", "n0", "n0"), running("b", "n1", "n1", attained_gpu_s=2000.0))
    queue = [waiting("x").spec, waiting("y", 2).spec, waiting("z", 1).spec, waiting("w").spec]

    assert expected_starts(seen, queue) == {
        "x": NOW_S + 500,
        "y": NOW_S + 1000,
        "z": NOW_S + 1000,
    }


def test_nothing_is_said_where_nothing_is_known() -> None:
    """Not for what is free, not where a job has not done an epoch, not for a type that nobody will free."""
    mixed = Cluster(nodes=(Node(name="n0", gpus=2, gpu_type="a100"), Node(name="n1", gpus=2, gpu_type="t4")))
    seen = world(running("a", "n0", "n0", done=0), running("b", "n1"), nodes=mixed)
    specs = [waiting("free").spec, waiting("big", 4).spec, waiting("typed", gpu_type="a100").spec]

    assert expected_starts(seen, [specs[0]]) == {}
    assert expected_starts(seen, [specs[1]]) == {}
    assert expected_starts(seen, [specs[2]]) == {}


@pytest.mark.parametrize(
    ("told_s", "start_s", "expected_s"),
    [
        (None, 2000.0, 2000.0),
        (1900.0, 2000.0, 1900.0),  # 900 s to go, off by 100
        (1500.0, 1900.0, 1900.0),  # 500 s to go, off by 400
        (1040.0, 1095.0, 1040.0),  # off by less than a minute
        (990.0, 1020.0, 1020.0),  # it is over
    ],
)
def test_a_guess_is_told_anew_only_when_it_is_much_different(
    told_s: float | None, start_s: float, expected_s: float
) -> None:
    """A gate is not rewritten for a guess that wavers."""
    assert told_or_new(told_s, start_s, NOW_S) == expected_s


def test_a_gate_tells_the_expected_start() -> None:
    """To the minute, after the place and what is waited for; what stands there already is kept while it is near."""
    said = queue_messages(world(running("a", "n0", "n0", "n1", "n1"), waiting("x")), Target())["x"]
    again = world(running("a", "n0", "n0", "n1", "n1", attained_gpu_s=1100.0), waiting("x", message=said))
    odd = world(running("a", "n0", "n0", "n1", "n1"), waiting("x", message=said.replace("01-01", "99-99")))

    assert said == "queued: place 1, waits for 1 GPU; may start at 1970-01-01 00:21 UTC"
    assert queue_messages(again, Target())["x"] == said
    assert queue_messages(odd, Target())["x"] == said

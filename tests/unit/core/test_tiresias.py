"""Tiresias and its elastic kin: queues from service alone, sound promotion, and three phases of giving."""

from __future__ import annotations

from typing import Any

import pytest

from scheduler_core.allocate.attained import by_queue, queue_number
from scheduler_core.allocate.elastic_tiresias import elastic_tiresias
from scheduler_core.allocate.tiresias import tiresias
from scheduler_core.model.allocation import Allocation
from scheduler_core.model.params import Params, Tiresias
from scheduler_core.model.service import Service
from tests.unit.core.builders import asked, spec

PARAMS = Params(tiresias=Tiresias(limits_gpu_s=(100.0, 1000.0), promote_ratio=8.0, compaction_jobs=1))


def service(gpu_s: float, running_s: float = 100.0, waiting_s: float = 0.0) -> Service:
    """What a job has had since its last start."""
    return Service(since_start_gpu_s=gpu_s, running_s=running_s, waiting_s=waiting_s)


@pytest.mark.parametrize(
    ("had", "held", "queue"),
    [
        (Service(), 0, 0),  # never ran
        (service(100.0), 2, 0),  # at the limit, not above it
        (service(100.1), 2, 1),
        (service(1000.1), 2, 2),
        (service(1000.1, waiting_s=799.0), 0, 2),
        (service(1000.1, waiting_s=800.0), 0, 0),  # has waited eight times as long as it ran
        (service(1000.1, waiting_s=800.0), 2, 2),  # the same, running: it waited before its last start
        (service(0.0, running_s=0.0, waiting_s=800.0), 2, 0),  # just started after promotion: service begins anew
        (service(120.0, running_s=60.0, waiting_s=800.0), 2, 1),  # and goes down again by its own service only
    ],
)
def test_the_queue_of_a_job(had: Service, held: int, queue: int) -> None:
    """Two limits, promotion at eight times; nothing but service and what it holds now is looked at."""
    given = asked(
        [spec("a", (2, 2))],
        2,
        service_by_job={"a": had},
        current=Allocation(gpus_by_job={"a": held}),
        params=PARAMS,
    )

    assert queue_number(given, "a") == queue


def test_order_is_class_queue_first_start_arrival_id() -> None:
    """Each key decides where those before are equal; a job that never started comes after those that did."""
    specs = [
        *(spec("z", priority=1, submitted_s=9.0), spec("new"), spec("late", submitted_s=5.0)),
        *(spec("b"), spec("a"), spec("old"), spec("first", submitted_s=8.0)),
    ]
    given = asked(
        specs,
        9,
        service_by_job={"z": service(5000.0), "old": service(500.0)},
        started_s_by_job={"a": 20.0, "b": 20.0, "old": 1.0, "first": 10.0},
        current=Allocation(gpus_by_job={"old": 1}),
        params=PARAMS,
    )

    assert [one.id for one in by_queue(given)] == ["z", "first", "a", "b", "new", "late", "old"]


@pytest.mark.parametrize(
    ("changes", "gpus"),
    [
        ({}, 2),
        ({"num_gpus": 4}, 4),
        ({"num_gpus": 1}, 2),  # the original stops with an error
        ({"num_gpus": 99}, 8),  # the same
        ({"num_gpus": 6, "gpu_sizes": (2, 4, 8)}, 4),
    ],
)
def test_a_job_gets_what_its_user_asks_for(changes: dict[str, Any], gpus: int) -> None:
    """A job of 2..8 alone, slower with more than two GPUs: the wish is not cut at the best speed."""
    given = asked([spec("a", (2, 8), **changes)], 8, speed_by_job={"a": (0.0, 1.0, 2.0, 1.0, 1.0)})

    assert tiresias(given).gpus("a") == gpus
    assert elastic_tiresias(given).gpus("a") == gpus


def test_when_many_wait_old_jobs_are_cut_back() -> None:
    """Two wait, more than the limit of one: the job of the second queue gives up what it has beyond its minimum."""
    specs = [spec("old", (1, 4), num_gpus=4), *(spec(name, (2, 2), submitted_s=1.0) for name in "abc")]
    given = asked(
        specs,
        7,
        service_by_job={"old": service(500.0)},
        current=Allocation(gpus_by_job={"old": 4}),
        params=PARAMS,
        speed_by_job={"old": (0.0, 1.0, 1.5, 1.8, 2.0)},
    )
    fresh = asked(specs[1:3], 7, params=PARAMS)

    assert dict(tiresias(given).gpus_by_job) == {"a": 2, "b": 2, "c": 2}
    assert dict(elastic_tiresias(given).gpus_by_job) == {"a": 2, "b": 2, "c": 2, "old": 1}
    assert dict(elastic_tiresias(fresh).gpus_by_job) == {"a": 2, "b": 2}


def test_old_jobs_keep_what_they_asked_for_until_too_many_wait() -> None:
    """Compaction takes from the second queue only what is above minima, and only above the limit."""
    specs = [spec("old", (1, 4), num_gpus=4), *(spec(name, (2, 2), submitted_s=1.0, num_gpus=2) for name in "ab")]
    settled: dict[str, Any] = {
        "service_by_job": {name: service(500.0) for name in ("old", "a", "b")},
        "started_s_by_job": {"old": 0.0},
        "current": Allocation(gpus_by_job={"old": 4}),
        "speed_by_job": {"old": (0.0, 1.0, 1.5, 1.8, 2.0)},
    }
    patient = Params(tiresias=Tiresias(limits_gpu_s=(100.0,), compaction_jobs=2))

    assert dict(elastic_tiresias(asked(specs, 5, params=patient, **settled)).gpus_by_job) == {"old": 4}
    assert dict(elastic_tiresias(asked(specs, 5, params=PARAMS, **settled)).gpus_by_job) == {"a": 2, "b": 2, "old": 1}


def test_what_is_left_follows_the_greatest_gain() -> None:
    """Minima 1 and 1, two more to give: both to the job that gains most by each; no step that brings nothing."""
    speeds = {"a": (0.0, 1.0, 1.3, 1.5), "b": (0.0, 1.0, 1.9, 2.7), "flat": (0.0, 1.0, 1.0, 1.5)}
    given = asked([spec(name, (1, 3), submitted_s=float(at)) for at, name in enumerate(speeds)], 5, speed_by_job=speeds)

    assert dict(elastic_tiresias(given).gpus_by_job) == {"a": 1, "b": 3, "flat": 1}


def test_no_gpu_idles_because_a_second_minimum_would_not_fit() -> None:
    """Two jobs of 2..3 on three GPUs; the original leaves one idle."""
    given = asked([spec("a", (2, 3)), spec("b", (2, 3))], 3)

    assert dict(elastic_tiresias(given).gpus_by_job) == {"a": 3}

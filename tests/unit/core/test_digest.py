"""What is news to a decision: only what its policy looks at, and no noise."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from scheduler_core.deciding.standing import input_digest
from scheduler_core.model.communication import Link
from scheduler_core.model.params import Params, Tiresias
from scheduler_core.model.queue import Queue
from scheduler_core.model.service import Service
from scheduler_core.model.target import Target
from tests.unit.core.builders import cluster, running, seen, spec


def digest(policy: str = "elastic_fifo", params: Mapping[str, Any] | None = None, **changes: Any) -> str:
    """The digest of one running job's world under a policy."""
    job = running(spec("a", (1, 4)), "n0", service=changes.pop("service", Service()))
    return input_digest(seen(cluster(4), job, **changes), Target(), Params(policy=policy, **(params or {})))


@pytest.mark.parametrize("policy", ["srjf", "elastic_srjf", "afs_l", "of_another_package"])
def test_remaining_time_is_news_by_factors_of_two(policy: str) -> None:
    """A second less is none, half of it is, to the policies that order by it."""
    of = [digest(policy, remaining_s_by_job={"a": left_s}) for left_s in (1000.0, 999.0, 500.0)]

    assert of[0] == of[1] != of[2]


@pytest.mark.parametrize("policy", ["fifo", "elastic_fifo", "tiresias", "elastic_tiresias", "ffdl"])
def test_remaining_time_is_nothing_to_the_others(policy: str) -> None:
    """They do not look at it."""
    assert digest(policy, remaining_s_by_job={"a": 1000.0}) == digest(policy)


def test_to_some_policies_only_the_best_size_is_news() -> None:
    """FfDL adds speeds up, Elastic FIFO asks where they end to rise."""
    tables = [(0.0, 1.0, 1.8), (0.0, 1.0, 1.5), (0.0, 1.0, 0.9)]
    fifo, ffdl = (
        [digest(policy, speed_by_job={"a": table}) for table in tables] for policy in ("elastic_fifo", "ffdl")
    )

    assert fifo[0] == fifo[1] == digest() != fifo[2]
    assert len(set(ffdl)) == 3


def test_service_is_news_to_tiresias_when_a_job_changes_its_queue() -> None:
    """At 3,600 GPU seconds, or when it has waited for eight times as long as it ran."""
    rows = [Service(since_start_gpu_s=used_s) for used_s in (10.0, 3000.0, 4000.0)]
    rows += [Service(since_start_gpu_s=4000.0, running_s=10.0, waiting_s=80.0)]
    of = [digest("tiresias", service=service) for service in rows]

    assert of[0] == of[1]
    assert len(set(of)) == 3
    assert digest("fifo", service=rows[0]) == digest("fifo", service=rows[2])


@pytest.mark.parametrize(
    "params",
    [{"backfilling": False}, {"tiresias": Tiresias(promote_ratio=2.0)}, {"links": {"node": Link(bytes_per_s=1e9)}}],
)
def test_settings_are_news(params: dict[str, Any]) -> None:
    """Whoever changes one wants another decision."""
    assert digest(params=params) != digest()


def test_queues_are_news() -> None:
    """Their bounds limit what is decided."""
    one, two = (digest(queues={"q": Queue(name="q", nominal_gpus={"": gpus})}) for gpus in (1, 2))

    assert one != two

"""A growth is kept where it gains more than it costs; starts, caps and what shrinks for them are never touched."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as some

from scheduler_core.cycle import decide
from scheduler_core.deciding.hysteresis import steadied
from scheduler_core.model.allocation import Allocation
from scheduler_core.model.params import Params
from scheduler_core.model.ports import PolicyInput
from scheduler_core.model.resizes import ResizeCost, ResizeCosts
from scheduler_core.model.target import Target
from tests.unit.core.builders import asked, cluster, running, seen, spec

#: Growing and shrinking cost ten seconds, and the horizon is a hundred.
COSTS = ResizeCosts(grow=ResizeCost(base_s=10.0), shrink=ResizeCost(base_s=10.0))
PARAMS = Params(decide_interval_s=10.0)


def ask(current: Mapping[str, int], queues: Mapping[str, str] | None = None, **changes: Any) -> PolicyInput:
    """Jobs of 1 to 8 GPUs on 16, those of ``current`` with so many of them."""
    specs = [spec(job_id, (1, 8), queue=(queues or {}).get(job_id, "default")) for job_id in current]
    settled: dict[str, Any] = {"current": Allocation(gpus_by_job=current), "costs": COSTS, "params": PARAMS}
    return asked(specs, 16, **{**settled, **changes})


def kept(wanted: Mapping[str, int], question: PolicyInput) -> dict[str, int]:
    """The sizes that stay of a policy's answer."""
    return dict(steadied(Allocation(gpus_by_job=wanted), question).gpus_by_job)


@pytest.mark.parametrize(
    ("left_s", "gpus"),
    [(1000.0, 3), (62.0, 3), (58.0, 2)],  # (T - 10) 3 > T 2 from T = 30 s on; T is half of what is left at one GPU
)
def test_a_job_that_ends_soon_does_not_grow(left_s: float, gpus: int) -> None:
    """Ten seconds of standing still are won back within thirty only."""
    assert kept({"a": 3}, ask({"a": 2}, remaining_s_by_job={"a": left_s})) == {"a": gpus}


def test_a_job_of_which_no_end_is_known_grows_by_the_horizon() -> None:
    """90 s at 2.3 are more than 100 s at 2, and less than 100 s at 2.1."""
    fast, slow = {"a": (0.0, 1.0, 2.0, 2.3)}, {"a": (0.0, 1.0, 2.1, 2.3)}

    assert kept({"a": 3}, ask({"a": 2}, speed_by_job=fast)) == {"a": 3}
    assert kept({"a": 3}, ask({"a": 2}, speed_by_job=slow)) == {"a": 2}


def test_who_was_to_shrink_for_it_keeps_its_gpus() -> None:
    """The growth of ``a`` is not worth it, so ``b`` has nobody to shrink for."""
    question = ask({"a": 2, "b": 4}, remaining_s_by_job={"a": 40.0})

    assert kept({"a": 3, "b": 3}, question) == {"a": 2, "b": 4}


def test_a_start_is_never_delayed() -> None:
    """What ``b`` gives to ``c`` stays given, though ``a`` does not grow."""
    question = ask({"a": 2, "b": 4, "c": 0}, remaining_s_by_job={"a": 40.0})

    assert kept({"a": 3, "b": 2, "c": 1}, question) == {"a": 2, "b": 2, "c": 1}


def test_a_transfer_must_pay_for_both() -> None:
    """One GPU for ``a`` gains 90 - 20 seconds of one GPU; ``b`` stands still at three for 10 s or for 30 s."""
    assert kept({"a": 3, "b": 3}, ask({"a": 2, "b": 4})) == {"a": 3, "b": 3}
    dear = ResizeCosts(grow=ResizeCost(base_s=10.0), shrink=ResizeCost(base_s=30.0))
    assert kept({"a": 3, "b": 3}, ask({"a": 2, "b": 4}, costs=dear)) == {"a": 2, "b": 4}


def test_no_queue_gets_what_another_gives_up() -> None:
    """A job of another queue that shrinks (GPUs were borrowed) shrinks whatever becomes of the growth."""
    question = ask({"a": 2, "b": 4}, {"a": "one", "b": "two"}, remaining_s_by_job={"a": 40.0})

    assert kept({"a": 3, "b": 3}, question) == {"a": 2, "b": 3}


def test_a_job_at_a_size_that_it_may_not_have_is_resized() -> None:
    """Its request changed: there is no going back."""
    request = spec("a", (4, 8))
    question = asked([request], 16, current=Allocation(gpus_by_job={"a": 2}), remaining_s_by_job={"a": 0.0})

    assert kept({"a": 4}, question) == {"a": 4}


def test_a_job_that_is_slower_for_its_size_shrinks() -> None:
    """Shrinking is the policy's to decide."""
    assert kept({"a": 1}, ask({"a": 2}, speed_by_job={"a": (0.0, 10.0, 9.0)})) == {"a": 1}


def test_a_decision_leaves_a_job_that_is_nearly_done_as_it_is() -> None:
    """Three GPUs are free, and the job is not given them for its last second."""
    job = running(spec("a", (1, 4)), "n0")
    params = Params(policy="elastic_fifo", decide_interval_s=30.0)
    sizes = [
        decide(seen(cluster(4), job, remaining_s_by_job={"a": left_s}), Target(), params).target.allocation.gpus("a")
        for left_s in (100.0, 0.5)
    ]

    assert sizes == [4, 1]


SIZES = some.integers(0, 8)
JOBS = some.dictionaries(some.sampled_from("abcdef"), some.tuples(SIZES, SIZES, some.floats(0, 500)), min_size=1)


@given(JOBS, some.dictionaries(some.sampled_from("abcdef"), some.sampled_from(("one", "two"))))
def test_laws(rows: dict[str, tuple[int, int, float]], queues: dict[str, str]) -> None:
    """Each job has what the policy gave it or what it has; starts get theirs; no queue has more than it was given."""
    current = {job_id: row[0] for job_id, row in rows.items()}
    wanted = {job_id: row[1] for job_id, row in rows.items()}
    left_s = {job_id: row[2] for job_id, row in rows.items()}
    found = kept(wanted, ask(current, queues, remaining_s_by_job=left_s))

    for job_id, gpus in wanted.items():
        assert found.get(job_id, 0) in (gpus, current[job_id])
        assert found.get(job_id, 0) == gpus or 0 not in (gpus, current[job_id])
    for queue in ("default", "one", "two"):
        members = [job_id for job_id in rows if queues.get(job_id, "default") == queue]
        assert sum(found.get(one, 0) for one in members) <= sum(wanted[one] for one in members)

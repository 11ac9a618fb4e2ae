"""Laws of queues' quotas, for every policy: own GPUs come first, limits hold, and what is lent is never in the way."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scheduler_core.allocate.registry import policy_named
from scheduler_core.deciding.quota import Share, capped
from scheduler_core.model.allocation import Allocation
from scheduler_core.model.job import JobSpec
from scheduler_core.model.ports import Policy, PolicyInput
from tests.unit.core.builders import asked, spec

OURS = ("afs_l", "elastic_fifo", "elastic_srjf", "elastic_tiresias", "ffdl", "fifo", "srjf", "tiresias")
#: Policies that give every job its minimum before any job more, where it fits.
MINIMA_FIRST = ("elastic_fifo", "elastic_srjf", "ffdl", "fifo", "srjf")
QUEUES = ("a", "b", "c")

JOBS = st.lists(
    st.tuples(
        st.sampled_from(QUEUES),
        st.integers(1, 4),
        st.integers(0, 4),
        st.sampled_from((1, 2)),
        st.sampled_from((-100, 0, 0, 100)),
        st.integers(0, 3),
        st.integers(0, 6),
    ),
    max_size=9,
)
SHARES = st.dictionaries(
    st.sampled_from(QUEUES),
    st.builds(
        lambda own, more: Share(own_gpus=own, most_gpus=None if more is None else own + more),
        st.integers(0, 8),
        st.none() | st.integers(0, 4),
    ),
    min_size=1,
)


def question(rows: list[tuple[str, int, int, int, int, int, int]], capacity_gpus: int) -> PolicyInput:
    """Jobs of these rows, some with a number of their own, with speeds that bend and times that differ."""
    specs = [
        spec(
            f"j{index}",
            (least * step, (least + more) * step),
            gpus_per_worker=step,
            queue=queue,
            priority=priority,
            submitted_s=float(submitted),
            num_gpus=wish * step,
        )
        for index, (queue, least, more, step, priority, submitted, wish) in enumerate(rows)
    ]
    return asked(
        specs,
        capacity_gpus,
        speed_by_job={one.id: tuple(gpus**0.8 for gpus in range(one.max_gpus + 1)) for one in specs if one.num_gpus},
        remaining_s_by_job={one.id: 100.0 * (1 + one.submitted_s) for one in specs if one.num_gpus % 2},
    )


def used(allocation: Allocation, specs: tuple[JobSpec, ...]) -> Counter[str]:
    """GPUs by queue."""
    found: Counter[str] = Counter()
    for one in specs:
        found[one.queue] += allocation.gpus(one.id)
    return found


def alone(policy: Policy, asked_: PolicyInput, queue: str, own_gpus: int) -> Allocation:
    """What the policy gives a queue's jobs by themselves on the queue's own GPUs."""
    specs = tuple(one for one in asked_.specs if one.queue == queue)
    return policy(replace(asked_, specs=specs, capacity_gpus=min(own_gpus, asked_.capacity_gpus)))


@pytest.mark.parametrize("name", OURS)
@given(rows=JOBS, capacity_gpus=st.integers(0, 16), shares=SHARES)
def test_limits_hold_and_own_gpus_come_first(
    name: str,
    rows: list[tuple[str, int, int, int, int, int, int]],
    capacity_gpus: int,
    shares: dict[str, Share],
) -> None:
    """Jobs keep their bounds, queues theirs; and where own GPUs suffice no job has less than its queue alone gives."""
    policy, given_input = policy_named(name), question(rows, capacity_gpus)

    allocation = capped(policy, given_input, shares)

    allocation.check(given_input.specs, capacity_gpus, by=name)
    by_queue = used(allocation, given_input.specs)
    for queue, share in shares.items():
        assert share.most_gpus is None or by_queue[queue] <= share.most_gpus
    own = {queue: alone(policy, given_input, queue, share.own_gpus) for queue, share in shares.items()}
    if sum(one.total_gpus for one in own.values()) <= capacity_gpus:
        for one in own.values():
            assert all(allocation.gpus(job_id) >= gpus for job_id, gpus in one.gpus_by_job.items())


@pytest.mark.parametrize("name", MINIMA_FIRST)
@given(rows=JOBS, capacity_gpus=st.integers(0, 16), shares=SHARES)
def test_nothing_is_lent_that_a_job_within_its_queues_own_could_use(
    name: str,
    rows: list[tuple[str, int, int, int, int, int, int]],
    capacity_gpus: int,
    shares: dict[str, Share],
) -> None:
    """What is idle and what others have beyond their own is, together, too little for who waits within its own."""
    given_input = question(rows, capacity_gpus)

    allocation = capped(policy_named(name), given_input, shares)

    by_queue = used(allocation, given_input.specs)
    own = {queue: shares[queue].own_gpus if queue in shares else 0 for queue in QUEUES}
    lent = sum(max(0, by_queue[queue] - own[queue]) for queue in QUEUES) + capacity_gpus - allocation.total_gpus
    for one in given_input.specs:
        if not allocation.gpus(one.id) and by_queue[one.queue] + one.min_gpus <= own[one.queue]:
            assert one.min_gpus > lent


@pytest.mark.parametrize("name", OURS)
@given(rows=JOBS, capacity_gpus=st.integers(0, 16), shares=SHARES, seed=st.randoms(use_true_random=False))
def test_the_order_of_what_comes_in_does_not_matter(
    name: str,
    rows: list[tuple[str, int, int, int, int, int, int]],
    capacity_gpus: int,
    shares: dict[str, Share],
    seed: Random,
) -> None:
    """Jobs and queues in another order make the same allocation."""
    policy, given_input = policy_named(name), question(rows, capacity_gpus)
    mixed = list(given_input.specs)
    seed.shuffle(mixed)
    turned = dict(reversed(shares.items()))

    assert capped(policy, replace(given_input, specs=tuple(mixed)), turned) == capped(policy, given_input, shares)


@pytest.mark.parametrize("name", OURS)
@given(rows=JOBS, capacity_gpus=st.integers(0, 16))
def test_a_queue_that_owns_everything_is_no_cap(
    name: str, rows: list[tuple[str, int, int, int, int, int, int]], capacity_gpus: int
) -> None:
    """Without shares, and with all GPUs owned by the only queue, each policy gives what it would give anyway."""
    policy = policy_named(name)
    given_input = question([("a", *row[1:]) for row in rows], capacity_gpus)
    owned = {"a": Share(own_gpus=capacity_gpus, most_gpus=capacity_gpus)}

    assert capped(policy, given_input, {}) == policy(given_input)
    assert capped(policy, given_input, owned) == policy(given_input)

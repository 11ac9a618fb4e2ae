"""Allocation laws, for every policy of ours: what holds whatever the jobs and however many GPUs there are.

Each law is a function; one case is drawn once and held against all of them, so that ten thousand cases stay cheap.
"""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scheduler_core.allocate.fifo import fifo
from scheduler_core.allocate.order import by_arrival, useful_gpus
from scheduler_core.allocate.registry import policy_named
from scheduler_core.model.allocation import Allocation
from scheduler_core.model.ports import PolicyInput
from tests.unit.core.builders import asked, spec

#: Ten thousand cases take a minute on an idle core, more on a busy one.
pytestmark = pytest.mark.timeout(900)

#: Workers' GPUs, fewest workers, further workers, priority, submit time, speeds beyond 0 GPUs.
Drawn = tuple[int, int, int, int, int, list[int]]
JOBS = st.lists(
    st.tuples(
        st.sampled_from((1, 1, 1, 2, 4)),
        st.integers(1, 8),
        st.integers(0, 8),
        st.sampled_from((0, 0, -100, 100)),
        st.integers(0, 4),
        st.lists(st.integers(0, 100), max_size=12),
    ),
    max_size=10,
)


def question(drawn: list[Drawn], capacity_gpus: int) -> PolicyInput:
    """Any legal request; ties of priority and submit time are frequent, some jobs have no speeds."""
    specs = [
        spec(
            f"j{index}",
            (least * step, (least + more) * step),
            gpus_per_worker=step,
            priority=priority,
            submitted_s=float(submitted_s),
        )
        for index, (step, least, more, priority, submitted_s, _) in enumerate(drawn)
    ]
    speeds = {f"j{index}": (0.0, *map(float, one[-1])) for index, one in enumerate(drawn) if one[-1]}
    return asked(specs, capacity_gpus, speed_by_job=speeds)


def nobody_waits_whose_minimum_fits(given_input: PolicyInput, allocation: Allocation) -> None:
    """What is idle is too little for everybody who waits."""
    idle_gpus = given_input.capacity_gpus - allocation.total_gpus

    assert [one.id for one in given_input.specs if not allocation.gpus(one.id) and one.min_gpus <= idle_gpus] == []


def no_gpu_idles_that_could_be_given(given_input: PolicyInput, allocation: Allocation) -> None:
    """Every job that runs is at its useful size, or one more worker of it does not fit what is idle."""
    idle_gpus = given_input.capacity_gpus - allocation.total_gpus

    could_grow = [
        one.id
        for one in given_input.specs
        if 0 < allocation.gpus(one.id) < useful_gpus(one, given_input.speed_by_job.get(one.id, ()))
        and one.gpus_per_worker <= idle_gpus
    ]
    assert could_grow == []


def permuted_input_gives_the_same_bytes(name: str, given_input: PolicyInput, allocation: Allocation) -> None:
    """The order in which jobs are named decides nothing."""
    shuffled = list(given_input.specs)
    random.Random(len(shuffled)).shuffle(shuffled)
    speeds = dict(reversed(list(given_input.speed_by_job.items())))
    permuted = asked(shuffled, given_input.capacity_gpus, speed_by_job=speeds)

    assert repr(policy_named(name)(permuted)) == repr(allocation)


def nobody_is_displaced_from_behind(given_input: PolicyInput, allocation: Allocation) -> None:
    """Whether a job is served does not depend on the last in order."""
    ordered = by_arrival(given_input.specs)
    front = fifo(asked(ordered[:-1], given_input.capacity_gpus))
    served = allocation.gpus_by_job.keys()

    assert front.gpus_by_job.keys() == served - {one.id for one in ordered[-1:]}


@pytest.mark.parametrize("name", ["elastic_fifo", "fifo"])
@given(drawn=JOBS, capacity_gpus=st.integers(0, 64))
def test_an_allocation_keeps_every_law(name: str, drawn: list[Drawn], capacity_gpus: int) -> None:
    """0 or min..max in whole workers and within capacity; nothing idle that could be given; same bytes; order."""
    given_input = question(drawn, capacity_gpus)

    allocation = policy_named(name)(given_input)

    allocation.check(given_input.specs, capacity_gpus, by=name)
    nobody_waits_whose_minimum_fits(given_input, allocation)
    permuted_input_gives_the_same_bytes(name, given_input, allocation)
    nobody_is_displaced_from_behind(given_input, allocation)
    if name == "elastic_fifo":
        no_gpu_idles_that_could_be_given(given_input, allocation)

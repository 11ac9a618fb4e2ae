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
from scheduler_core.model.job import JobSpec
from scheduler_core.model.ports import PolicyInput
from tests.unit.core.builders import asked, spec

#: Ten thousand cases take a minute on an idle core, more on a busy one.
pytestmark = pytest.mark.timeout(900)

SIZES = (1, 1, 1, 2, 4)
PRIORITIES = (0, 0, -100, 100)
NUM_CODES = len(SIZES) * 8 * 9 * len(PRIORITIES) * 5 * 64
#: A job is drawn as one number, which is many times cheaper than drawing each of its fields.
JOBS = st.lists(st.integers(0, NUM_CODES - 1), max_size=10)


def request(job_id: str, code: int) -> tuple[JobSpec, tuple[float, ...]]:
    """The job of a number: any legal request, ties frequent, and speeds that rise up to a point, or none."""
    code, size = divmod(code, len(SIZES))
    code, least = divmod(code, 8)
    code, more = divmod(code, 9)
    code, priority = divmod(code, len(PRIORITIES))
    speed_code, submitted_s = divmod(code, 5)
    step = SIZES[size]
    one = spec(
        job_id,
        ((least + 1) * step, (least + 1 + more) * step),
        gpus_per_worker=step,
        priority=PRIORITIES[priority],
        submitted_s=float(submitted_s),
    )
    length, best = divmod(speed_code, 8)
    return one, (0.0, *(float(min(gpus, 2 * best - gpus)) + 50 for gpus in range(1, 3 * length))) if length else ()


def question(codes: list[int], capacity_gpus: int) -> PolicyInput:
    """The jobs of these numbers."""
    drawn = [request(f"j{index}", code) for index, code in enumerate(codes)]
    return asked(
        [one for one, _ in drawn], capacity_gpus, speed_by_job={one.id: speeds for one, speeds in drawn if speeds}
    )


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
@given(codes=JOBS, capacity_gpus=st.integers(0, 64))
def test_an_allocation_keeps_every_law(name: str, codes: list[int], capacity_gpus: int) -> None:
    """0 or min..max in whole workers and within capacity; nothing idle that could be given; same bytes; order."""
    given_input = question(codes, capacity_gpus)

    allocation = policy_named(name)(given_input)

    allocation.check(given_input.specs, capacity_gpus, by=name)
    nobody_waits_whose_minimum_fits(given_input, allocation)
    permuted_input_gives_the_same_bytes(name, given_input, allocation)
    nobody_is_displaced_from_behind(given_input, allocation)
    if name == "elastic_fifo":
        no_gpu_idles_that_could_be_given(given_input, allocation)

"""Allocation laws, for every policy of ours: what holds whatever the jobs and however many GPUs there are."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scheduler_core.allocate.elastic_fifo import elastic_fifo
from scheduler_core.allocate.fifo import fifo
from scheduler_core.allocate.order import by_arrival, useful_gpus
from scheduler_core.allocate.registry import policy_named
from scheduler_core.model.job import JobSpec
from scheduler_core.model.ports import PolicyInput
from tests.unit.core.builders import asked, spec

POLICIES = ("elastic_fifo", "fifo")


@st.composite
def requests(draw: st.DrawFn, job_id: str) -> JobSpec:
    """Any legal request; ties of priority and submit time are frequent."""
    step = draw(st.sampled_from((1, 1, 1, 2, 4)))
    least = draw(st.integers(1, 8))
    most = least + draw(st.integers(0, 8))
    return spec(
        job_id,
        (least * step, most * step),
        gpus_per_worker=step,
        priority=draw(st.sampled_from((0, 0, -100, 100))),
        submitted_s=float(draw(st.integers(0, 4))),
    )


@st.composite
def inputs(draw: st.DrawFn) -> PolicyInput:
    """Up to ten jobs, up to 64 GPUs, speeds of some of them."""
    specs = [draw(requests(f"j{index}")) for index in range(draw(st.integers(0, 10)))]
    table = st.lists(st.floats(0.0, 100.0), max_size=20).map(lambda speeds: (0.0, *speeds))
    speeds = {one.id: draw(table) for one in specs if draw(st.booleans())}
    return asked(specs, draw(st.integers(0, 64)), speed_by_job=speeds)


@pytest.mark.parametrize("name", POLICIES)
@given(given_input=inputs())
def test_an_allocation_keeps_the_law(name: str, given_input: PolicyInput) -> None:
    """Each job 0 or min..max in whole workers, and the sum within capacity."""
    policy_named(name)(given_input).check(given_input.specs, given_input.capacity_gpus, by=name)


@pytest.mark.parametrize("name", POLICIES)
@given(given_input=inputs())
def test_no_job_waits_whose_minimum_fits_the_idle_gpus(name: str, given_input: PolicyInput) -> None:
    """What is idle is too little for everybody who waits."""
    allocation = policy_named(name)(given_input)
    idle_gpus = given_input.capacity_gpus - allocation.total_gpus

    waiting = [one.id for one in given_input.specs if not allocation.gpus(one.id) and one.min_gpus <= idle_gpus]

    assert waiting == []


@given(given_input=inputs())
def test_no_gpu_idles_that_elastic_fifo_could_give(given_input: PolicyInput) -> None:
    """Every job that runs is at its useful size, or one more worker of it does not fit what is idle."""
    allocation = elastic_fifo(given_input)
    idle_gpus = given_input.capacity_gpus - allocation.total_gpus

    could_grow = [
        one.id
        for one in given_input.specs
        if 0 < allocation.gpus(one.id) < useful_gpus(one, given_input.speed_by_job.get(one.id, ()))
        and one.gpus_per_worker <= idle_gpus
    ]

    assert could_grow == []


@pytest.mark.parametrize("name", POLICIES)
@given(given_input=inputs(), seed=st.integers(0, 1_000))
def test_permuted_input_gives_the_same_bytes(name: str, given_input: PolicyInput, seed: int) -> None:
    """The order in which jobs are named decides nothing."""
    shuffled = list(given_input.specs)
    random.Random(seed).shuffle(shuffled)
    speeds = dict(reversed(given_input.speed_by_job.items()))
    permuted = asked(shuffled, given_input.capacity_gpus, speed_by_job=speeds)

    assert repr(policy_named(name)(permuted)) == repr(policy_named(name)(given_input))


@given(given_input=inputs())
def test_who_is_served_does_not_depend_on_those_behind(given_input: PolicyInput) -> None:
    """A job gets its minimum or not whatever comes after it: nobody is displaced by a later arrival."""
    ordered = by_arrival(given_input.specs)
    whole = fifo(given_input)

    for length in range(len(ordered) + 1):
        front = fifo(asked(ordered[:length], given_input.capacity_gpus))

        assert dict(front.gpus_by_job) == {
            one.id: whole.gpus(one.id) for one in sorted(ordered[:length], key=lambda one: one.id) if whole.gpus(one.id)
        }


@given(given_input=inputs())
def test_elastic_fifo_serves_whom_fifo_serves(given_input: PolicyInput) -> None:
    """Growing takes only what is left after the minima."""
    assert elastic_fifo(given_input).gpus_by_job.keys() == fifo(given_input).gpus_by_job.keys()

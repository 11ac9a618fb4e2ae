"""Allocation laws, for every policy of ours: what holds whatever the jobs and however many GPUs there are.

Each law is a function; one case is drawn once and held against all of them, so that ten thousand cases stay cheap.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from dataclasses import replace
from types import MappingProxyType

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scheduler_core.allocate.attained import asked_gpus, by_queue
from scheduler_core.allocate.order import by_arrival, by_remaining, useful_gpus
from scheduler_core.allocate.registry import policy_named
from scheduler_core.allocate.rungs import rungs, speedups, useful_rungs
from scheduler_core.allocate.walk import smallest
from scheduler_core.model.allocation import Allocation
from scheduler_core.model.job import JobSpec
from scheduler_core.model.params import Params, Tiresias
from scheduler_core.model.ports import PolicyInput
from scheduler_core.model.service import Service
from tests.unit.core.builders import asked, spec

#: Ten thousand cases take a few minutes on a busy core.
pytestmark = pytest.mark.timeout(1800)

WORKERS = (1, 1, 1, 2, 4)
PRIORITIES = (0, 0, -100, 100)
SIZES = ((), (), (), (1, 2, 4, 8, 16), (8, 3))
LEFT_S = (None, 60.0, 60.0, 600.0, 7000.0)
SERVICES = (
    Service(),
    Service(since_start_gpu_s=50.0, running_s=10.0),
    Service(since_start_gpu_s=500.0, running_s=10.0, waiting_s=5.0),
    Service(since_start_gpu_s=500.0, running_s=10.0, waiting_s=90.0),
)
PARAMS = Params(tiresias=Tiresias(limits_gpu_s=(100.0,), compaction_jobs=2))
#: A job is drawn as one number, which is many times cheaper than drawing each of its fields.
JOBS = st.lists(st.integers(0, 2**40 - 1), max_size=10)

Order = Callable[[PolicyInput], list[JobSpec]]


def by_arrival_of(question: PolicyInput) -> list[JobSpec]:
    """The order of first come, first served."""
    return by_arrival(question.specs)


def by_remaining_of(question: PolicyInput) -> list[JobSpec]:
    """The order of what is left."""
    return by_remaining(question.specs, question.remaining_s_by_job)


#: The order in which each policy serves; AFS-L has none.
ORDERS: Mapping[str, Order] = MappingProxyType(
    {
        "elastic_fifo": by_arrival_of,
        "elastic_srjf": by_remaining_of,
        "elastic_tiresias": by_queue,
        "ffdl": by_arrival_of,
        "fifo": by_arrival_of,
        "srjf": by_remaining_of,
        "tiresias": by_queue,
    }
)
NAMES = ("afs_l", *ORDERS)
#: Served in order without exception: who is served depends on nobody behind.
STRICT = ("elastic_fifo", "elastic_srjf", "ffdl", "fifo", "srjf", "tiresias")


class Dice:
    """Takes choices out of a number."""

    def __init__(self, code: int) -> None:
        self._code = code

    def __call__(self, sides: int) -> int:
        """One of so many sides, from 0."""
        self._code, side = divmod(self._code, sides)
        return side


def request(job_id: str, dice: Dice) -> tuple[JobSpec, tuple[float, ...]]:
    """Any legal request, ties frequent, and speeds that rise up to a point, dip on the way, or are not known."""
    step, least, more = WORKERS[dice(5)], dice(8) + 1, dice(9)
    one = spec(
        job_id,
        (least * step, (least + more) * step),
        gpus_per_worker=step,
        priority=PRIORITIES[dice(4)],
        submitted_s=float(dice(5)),
        num_gpus=dice(3) * dice(5),
        gpu_sizes=SIZES[dice(5)],
    )
    length, best, dip = dice(8), dice(8), 1 + dice(6)
    speeds = (float(min(gpus, 2 * best - gpus)) + 50 - (gpus % dip == 2) * 3 for gpus in range(1, 3 * length))
    return one, (0.0, *speeds) if length else ()


def question(codes: list[int], capacity_gpus: int, *, backfilling: bool) -> PolicyInput:
    """The jobs of these numbers."""
    dice = [Dice(code) for code in codes]
    drawn = [request(f"j{index}", one) for index, one in enumerate(dice)]
    ids = [one.id for one, _ in drawn]
    left = {job_id: LEFT_S[one(5)] for job_id, one in zip(ids, dice, strict=True)}
    held = {one.id: smallest(one) if roll(2) else 0 for (one, _), roll in zip(drawn, dice, strict=True)}
    return asked(
        [one for one, _ in drawn],
        capacity_gpus,
        speed_by_job={one.id: speeds for one, speeds in drawn if speeds},
        remaining_s_by_job={job_id: seconds for job_id, seconds in left.items() if seconds is not None},
        service_by_job={job_id: SERVICES[one(4)] for job_id, one in zip(ids, dice, strict=True)},
        started_s_by_job={job_id: float(one(3)) for job_id, one in zip(ids, dice, strict=True) if one(2)},
        current=Allocation(gpus_by_job=held),
        params=replace(PARAMS, backfilling=backfilling),
    )


def wanted(name: str, one: JobSpec) -> int:
    """The fewest GPUs with which a policy starts a job."""
    return asked_gpus(one) if name == "tiresias" else smallest(one)


def only_allowed_sizes(name: str, given_input: PolicyInput, allocation: Allocation) -> None:
    """Every job has none or one of its sizes, and none beyond its best known speed but what its user named."""
    for one in given_input.specs:
        gpus, limit = allocation.gpus(one.id), useful_gpus(one, given_input.speed_by_job.get(one.id, ()))
        if name in ("tiresias", "elastic_tiresias"):
            limit = max(limit, asked_gpus(one))

        assert gpus == 0 or (gpus in rungs(one) and gpus <= limit)


def nobody_waits_who_fits(name: str, given_input: PolicyInput, allocation: Allocation) -> None:
    """What is idle, or held by lower classes, is too little for everybody who waits."""
    idle_gpus = given_input.capacity_gpus - allocation.total_gpus
    for one in given_input.specs:
        lower = sum(allocation.gpus(other.id) for other in given_input.specs if other.priority < one.priority)

        assert allocation.gpus(one.id) or not 0 < wanted(name, one) <= idle_gpus + lower


def no_gpu_idles_that_could_be_given(name: str, given_input: PolicyInput, allocation: Allocation) -> None:
    """The next size of every job that runs is too large for what is idle, or not useful; by gain, it brings nothing."""
    idle_gpus = given_input.capacity_gpus - allocation.total_gpus
    for one in given_input.specs:
        gpus, speed = allocation.gpus(one.id), given_input.speed_by_job.get(one.id, ())
        sizes = useful_rungs(one, speed)
        above = [size for size in sizes if size > gpus]
        if not gpus or not above or above[0] - gpus > idle_gpus:
            continue
        worth = dict(zip(sizes, speedups(sizes, speed), strict=True))

        assert name in ("ffdl", "elastic_tiresias")
        assert worth[above[0]] <= worth[gpus]


def permuted_input_gives_the_same_bytes(name: str, given_input: PolicyInput, allocation: Allocation) -> None:
    """The order in which jobs are named decides nothing."""
    shuffled = list(given_input.specs)
    random.Random(len(shuffled)).shuffle(shuffled)
    speeds = dict(reversed(list(given_input.speed_by_job.items())))
    permuted = replace(given_input, specs=tuple(shuffled), speed_by_job=speeds)

    assert repr(policy_named(name)(permuted)) == repr(allocation)


def nobody_is_displaced_from_behind(name: str, given_input: PolicyInput, allocation: Allocation) -> None:
    """Whether a job is served does not depend on the last in order."""
    ordered = ORDERS[name](given_input)
    front = policy_named(name)(replace(given_input, specs=tuple(ordered[:-1])))
    served = allocation.gpus_by_job.keys()

    assert front.gpus_by_job.keys() == served - {one.id for one in ordered[-1:]}


def nobody_starts_behind_one_that_waits(name: str, given_input: PolicyInput, allocation: Allocation) -> None:
    """Without backfilling: behind the first that waits only those have GPUs that hold some now."""
    ordered = [one for one in ORDERS[name](given_input) if smallest(one)]
    waits = next((place for place, one in enumerate(ordered) if not allocation.gpus(one.id)), len(ordered))

    behind = [one.id for one in ordered[waits:] if allocation.gpus(one.id)]
    assert [job_id for job_id in behind if not given_input.current.gpus(job_id)] == []


@pytest.mark.parametrize("name", NAMES)
@given(codes=JOBS, capacity_gpus=st.integers(0, 64))
def test_an_allocation_keeps_every_law(name: str, codes: list[int], capacity_gpus: int) -> None:
    """Allowed sizes within capacity; nothing idle that could be given; same bytes; order."""
    given_input = question(codes, capacity_gpus, backfilling=True)

    allocation = policy_named(name)(given_input)

    allocation.check(given_input.specs, capacity_gpus, by=name)
    only_allowed_sizes(name, given_input, allocation)
    nobody_waits_who_fits(name, given_input, allocation)
    permuted_input_gives_the_same_bytes(name, given_input, allocation)
    if name in STRICT:
        nobody_is_displaced_from_behind(name, given_input, allocation)
    if name not in ("fifo", "srjf", "tiresias"):
        no_gpu_idles_that_could_be_given(name, given_input, allocation)


@pytest.mark.parametrize("name", NAMES)
@given(codes=JOBS, capacity_gpus=st.integers(0, 64))
def test_an_allocation_without_backfilling_keeps_every_law(name: str, codes: list[int], capacity_gpus: int) -> None:
    """The same but for GPUs that idle for the first in order."""
    given_input = question(codes, capacity_gpus, backfilling=False)

    allocation = policy_named(name)(given_input)

    allocation.check(given_input.specs, capacity_gpus, by=name)
    only_allowed_sizes(name, given_input, allocation)
    permuted_input_gives_the_same_bytes(name, given_input, allocation)
    if name in ORDERS:
        nobody_starts_behind_one_that_waits(name, given_input, allocation)

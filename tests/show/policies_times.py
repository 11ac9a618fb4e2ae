"""Area policies, time: each policy from job objects to allocation, on 5,000 jobs and 2,048 GPUs."""

from __future__ import annotations

import random
import time
from collections.abc import Iterator
from statistics import median
from typing import Final

from scheduler_core.allocate.registry import policy_named, policy_names
from scheduler_core.model.allocation import Allocation
from scheduler_core.model.job import JobSpec
from scheduler_core.model.ports import PolicyInput
from scheduler_core.model.service import Service
from tests.show.registry import Row, at_most, figure, information
from tests.theory.voda_original import ORIGINALS
from tests.unit.core.builders import asked, spec

JOBS: Final = 5000
GPUS: Final = 2048
BOUND_MS: Final = {name: 50.0 if name in ("afs_l", "ffdl") else 20.0 for name in ORIGINALS}
RUNS: Final = 5


def large_question(num_jobs: int, capacity_gpus: int, seed: int = 1) -> PolicyInput:
    """Jobs of 1..8 to 1..16 GPUs with concave speeds, each measured for itself; a third of them runs."""
    rng = random.Random(seed)
    specs = [_spec(rng, index) for index in range(num_jobs)]
    held = Allocation(gpus_by_job={one.id: one.min_gpus for one in specs[:: max(3, num_jobs // capacity_gpus)]})
    return asked(
        specs,
        capacity_gpus,
        current=held,
        speed_by_job={one.id: _speed(rng, one.max_gpus) for one in specs},
        remaining_s_by_job={one.id: rng.uniform(60, 90_000) for one in specs},
        service_by_job={
            one.id: Service(since_start_gpu_s=rng.uniform(0, 8000), running_s=100.0, waiting_s=rng.uniform(0, 1600))
            for one in specs
        },
        started_s_by_job={one.id: one.submitted_s + 60 for one in specs[::2]},
    )


def _spec(rng: random.Random, index: int) -> JobSpec:
    least = rng.choice((1, 1, 1, 2, 4, 8))
    most = max(least, rng.choice((1, 2, 4, 8, 16)))
    asks = rng.randint(least, most)
    return spec(f"job-{index:05}", (least, most), submitted_s=rng.uniform(0, 90_000), num_gpus=asks)


def _speed(rng: random.Random, most: int) -> tuple[float, ...]:
    power, base = rng.uniform(0.4, 0.98), rng.uniform(10, 500)
    return (0.0, *(base * gpus**power for gpus in range(1, most + 1)))


def _time_ms(name: str, given: PolicyInput) -> float:
    """The median of a few runs."""
    policy, found = policy_named(name), []
    for _ in range(RUNS):
        begin_s = time.perf_counter()
        policy(given)
        found.append((time.perf_counter() - begin_s) * 1000)
    return median(found)


@figure(area="policies")
def policy_times(quick: bool) -> Iterator[Row]:
    """The bounds at 5,000 jobs; beside them how long it takes where many GPUs are left to be given out by steps."""
    crowded, roomy = large_question(JOBS, GPUS), large_question(300, GPUS)
    for name in policy_names():
        if name in BOUND_MS:
            yield at_most(f"{name}, {JOBS} jobs, {GPUS} GPUs", _time_ms(name, crowded), BOUND_MS[name], "ms")
            yield information(f"{name}, 300 jobs, {GPUS} GPUs", f"{_time_ms(name, roomy):.1f} ms")

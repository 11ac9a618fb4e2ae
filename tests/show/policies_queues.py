"""Area policies, queues: what reasons cost on a large cluster, and what a cap costs beside its policy."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from statistics import median
from typing import Final

from scheduler_core.allocate.registry import policy_named
from scheduler_core.deciding.quota import Share, capped
from scheduler_core.deciding.reasons import reasons
from scheduler_core.model.allocation import Allocation
from scheduler_core.model.job import Job
from scheduler_core.model.observation import Observation
from scheduler_core.model.placement import Placement
from tests.show.policies_times import GPUS, JOBS, large_question
from tests.show.registry import Row, at_most, figure, information
from tests.unit.core.builders import NOW_S, cluster, queued, running, spec

NODES: Final = 2000
RUNS: Final = 5
#: Policies whose cost under a cap is shown: the usual one, and the two that take longest by themselves.
SHOWN: Final = ("elastic_fifo", "ffdl", "afs_l")


@figure(area="policies")
def reasons_of_a_large_cluster(quick: bool) -> Iterator[Row]:
    """A job on every node of 8 GPUs, and as many that wait for one."""
    jobs: list[Job] = []
    for index in range(NODES):
        runs = spec(f"a{index:04}", (8, 8), submitted_s=float(index))
        jobs += [running(runs, *[f"n{index}"] * 8), queued(replace(runs, id=f"b{index:04}"))]
    observation = Observation(now_s=NOW_S, cluster=cluster(*[8] * NODES), jobs=tuple(jobs))
    placement = Placement(workers_by_job={f"a{index:04}": {f"n{index}": 8} for index in range(NODES)})
    allocation = Allocation(gpus_by_job={f"a{index:04}": 8 for index in range(NODES)})
    found_ms = _median_ms(lambda: reasons(observation, allocation, placement, {}))
    yield at_most(f"reasons of {2 * NODES:,} jobs on {NODES:,} nodes, median of {RUNS}", found_ms, 30.0, "ms")


@figure(area="policies")
def cap_of_four_queues(quick: bool) -> Iterator[Row]:
    """The same question with and without shares; each of three queues owns a quarter, the fourth nothing."""
    given = large_question(JOBS, GPUS)
    specs = tuple(replace(one, queue="abcd"[index % 4]) for index, one in enumerate(given.specs))
    shared = replace(given, specs=specs)
    shares = {queue: Share(own_gpus=GPUS // 4) for queue in "abc"}
    for name in SHOWN:
        policy = policy_named(name)
        alone_ms = _median_ms(partial(policy, shared))
        within_ms = _median_ms(partial(capped, policy, shared, shares))
        said = f"{name} within queues, {JOBS:,} jobs on {GPUS:,} GPUs"
        yield information(said, f"{within_ms:.0f} ms, without {alone_ms:.0f} ms")


def _median_ms(run: Callable[[], object]) -> float:
    """The median of a few runs, ms."""
    found = []
    for _ in range(RUNS):
        began_s = time.perf_counter()
        run()
        found.append((time.perf_counter() - began_s) * 1000.0)
    return median(found)

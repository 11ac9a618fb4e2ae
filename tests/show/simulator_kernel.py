"""Area simulator, the production cycle on a virtual clock: theory, laws, and what an event costs."""

from __future__ import annotations

import time
from collections.abc import Iterator
from math import sqrt

import numpy as np

from scheduler_core.model.cluster import Cluster, Node
from scheduler_core.simulate.run import simulate
from scheduler_core.simulate.scenario import Scenario
from scheduler_core.simulate.traces.poisson import poisson
from tests.show.commands import run_tests
from tests.show.registry import Row, at_most, figure, information
from tests.unit.simulate.builders import FIFO, FREE, LINEAR

NUM_BATCHES = 20
T_99 = 2.861
RATE = 0.5
#: A trace ten times as long may cost so many times as much for each job.
FLAT = 1.5


@figure(area="simulator")
def laws(quick: bool) -> Iterator[Row]:
    """Permuted input gives equal bytes; every job that fits ends; queues with general work follow the recursion."""
    yield run_tests("simulator laws", ["tests/unit/simulate"], examples=100 if quick else 2_000)
    yield run_tests("simulated queues", ["tests/theory/test_simulated_queues.py"])


@figure(area="simulator")
def markovian_queue(quick: bool) -> Iterator[Row]:
    """M/M/1 at half load, mean response 2 s: distance from it against the 99 % confidence interval; cost of a job."""
    costs_ms = []
    for num_jobs in (500, 5_000) if quick else (2_000, 20_000):
        jobs = poisson(num_jobs, RATE, lambda rng: rng.exponential(1.0), np.random.default_rng(0))
        cluster = Cluster(nodes=(Node(name="a", gpus=1),))
        began_s = time.perf_counter()
        outcome = simulate(Scenario(cluster=cluster, jobs=jobs, physics=LINEAR, costs=FREE), FIFO)
        costs_ms.append((time.perf_counter() - began_s) * 1000 / num_jobs)
        responses_s = np.array([(record.ended_s or 0.0) - record.submitted_s for record in outcome.jobs])
        batches = responses_s.reshape(NUM_BATCHES, -1).mean(axis=1)
        half_s = T_99 * float(batches.std(ddof=1)) / sqrt(NUM_BATCHES)
        distance_s = abs(float(batches.mean()) - 1 / (1 - RATE))
        yield at_most(f"M/M/1, {num_jobs} jobs: mean response, distance from 2 seconds", distance_s, half_s, "seconds")
    yield information("production cycle, one job of M/M/1 from arrival to end", f"{costs_ms[-1]:.2f} ms")
    yield at_most("cost of a job, trace ten times as long", costs_ms[1] / costs_ms[0], FLAT, "times")

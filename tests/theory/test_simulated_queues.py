"""Queues that theory knows, run through the production cycle: rigid jobs of one GPU under ``fifo``."""

from __future__ import annotations

from collections.abc import Callable
from math import factorial, sqrt

import numpy as np
import pytest

from scheduler_core.model.cluster import Cluster, Node
from scheduler_core.simulate.run import simulate
from scheduler_core.simulate.scenario import Scenario, SimulatedJob
from scheduler_core.simulate.traces.poisson import poisson
from tests.unit.simulate.builders import FIFO, FREE, LINEAR

Draw = Callable[[np.random.Generator], float]
NUM_JOBS = 1_000
NUM_BATCHES = 20


def _responses_s(jobs: tuple[SimulatedJob, ...], gpus: int) -> list[float]:
    cluster = Cluster(nodes=(Node(name="a", gpus=gpus),))
    outcome = simulate(Scenario(cluster=cluster, jobs=jobs, physics=LINEAR, costs=FREE), FIFO)
    return [(record.ended_s or 0.0) - record.submitted_s for record in outcome.jobs]


def _by_recursion_s(jobs: tuple[SimulatedJob, ...], gpus: int) -> list[float]:
    """Kiefer and Wolfowitz (1955): the next job takes the server that is free first."""
    free_s, responses_s = [0.0] * gpus, []
    for job in jobs:
        ends_s = max(min(free_s), job.spec.submitted_s) + job.samples
        free_s[free_s.index(min(free_s))] = ends_s
        responses_s.append(ends_s - job.spec.submitted_s)
    return responses_s


def _erlang_response_s(arrivals_per_s: float, servers: int) -> float:
    """Mean response time of M/M/k at 1 job/s for each server (Erlang C)."""
    last = arrivals_per_s**servers / factorial(servers) * servers / (servers - arrivals_per_s)
    waits = last / (sum(arrivals_per_s**n / factorial(n) for n in range(servers)) + last)
    return 1 + waits / (servers - arrivals_per_s)


@pytest.mark.parametrize(("gpus", "arrivals_per_s"), [(1, 0.5), (3, 1.8)])
def test_mean_response_of_markovian_queues(gpus: int, arrivals_per_s: float) -> None:
    """M/M/1 and M/M/3: the closed form is within the 99 % confidence interval of batch means (t with 19 degrees)."""
    jobs = poisson(NUM_JOBS, arrivals_per_s, lambda rng: rng.exponential(1.0), np.random.default_rng(1))
    batches = np.array(_responses_s(jobs, gpus)).reshape(NUM_BATCHES, -1).mean(axis=1)
    half_s = 2.861 * float(batches.std(ddof=1)) / sqrt(NUM_BATCHES)
    assert abs(float(batches.mean()) - _erlang_response_s(arrivals_per_s, gpus)) <= half_s


@pytest.mark.parametrize("gpus", [1, 2, 5])
@pytest.mark.parametrize("draw", [lambda rng: rng.uniform(0.0, 4.0), lambda rng: rng.pareto(2.5)])
def test_every_response_of_general_queues(gpus: int, draw: Draw) -> None:
    """M/G/k: each job's response time is that of the recursion, which is exact for any work."""
    jobs = poisson(200, 0.4 * gpus, draw, np.random.default_rng(gpus))
    assert _responses_s(jobs, gpus) == pytest.approx(_by_recursion_s(jobs, gpus), abs=1e-6)

"""Jobs that arrive by chance: a Poisson process, work drawn from any distribution."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from scheduler_core.errors import InvalidValue
from scheduler_core.model.job import JobSpec
from scheduler_core.simulate.scenario import SimulatedJob


def poisson(
    num_jobs: int, arrivals_per_s: float, draw_samples: Callable[[np.random.Generator], float], rng: np.random.Generator
) -> tuple[SimulatedJob, ...]:
    """Rigid jobs of one GPU, in order of arrival.

    Args:
        num_jobs: How many.
        arrivals_per_s: Rate of arrival, > 0.
        draw_samples: Draws the work of a job, in samples.
        rng: Chance.

    Raises:
        InvalidValue: The rate is not > 0.
    """
    if not arrivals_per_s > 0:
        raise InvalidValue(f"arrivals: expected a rate > 0 per second, got {arrivals_per_s}")
    jobs, now_s = [], 0.0
    for place in range(num_jobs):
        now_s += float(rng.exponential(1 / arrivals_per_s))
        name = f"job-{place:06d}"
        spec = JobSpec(id=name, namespace="", workflow=name, name=name, submitted_s=now_s, min_gpus=1, max_gpus=1)
        jobs.append(SimulatedJob(spec=spec, samples=float(draw_samples(rng))))
    return tuple(jobs)

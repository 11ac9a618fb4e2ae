"""Area policies, what is learned: speeds at sizes that were not seen, stories of noise, what a quiet round costs.

The curves are those that heyfey/vodascheduler's authors measured on four GPUs (InceptionV3, Transformer, VGG16), as in
their golden example.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Iterator
from itertools import groupby

import numpy as np

from scheduler_core.estimate.costs import Changes, learned_costs
from scheduler_core.estimate.speeds import TRUST_S, speed_table
from scheduler_core.model.job import Job
from scheduler_core.model.observation import Observation
from scheduler_core.model.resizes import ResizeKind
from tests.scenarios.test_learning import ROW_S, Story
from tests.show.commands import run_tests
from tests.show.registry import Row, at_least, at_most, exactly, figure, information, percentile
from tests.unit.core.builders import cluster, running, seen, spec
from tests.unit.core.estimates import epochs_at, noisy
from voda_flows.control.kept import Kept, Learned
from voda_flows.control.learning import Learning
from voda_flows.control.reports import DriverStatus

#: Speed-up at 1, 2, 3, 4 GPUs.
CURVES = {
    "inception": (1.0, 1.842, 2.692, 3.5),
    "transformer": (1.0, 1.657, 2.148, 2.521),
    "vgg": (1.0, 1.785, 2.5, 3.125),
}
NUM_JOBS = 1_000
ROUNDS = 20


class Nowhere(Kept):
    """Keeps nothing."""

    def __init__(self) -> None:
        pass

    def load(self) -> Learned:
        """Nothing."""
        return Learned()

    def save(self, learned: Learned) -> None:
        """Nothing."""


@figure(area="policies")
def learned_speeds(quick: bool) -> Iterator[Row]:
    """Speeds of the three measured curves at sizes that were not seen."""
    for name, sizes in (
        ("seen at 1", (1,)),
        ("seen at 1 and 2", (1, 2)),
        ("seen at 2", (2,)),
        ("seen at 1 and 4", (1, 4)),
    ):
        errors = []
        for curve in CURVES.values():
            table = speed_table(tuple(noisy(gpus, 100.0 * curve[gpus - 1]) for gpus in sizes), 4, 0.0)
            errors += [abs(table[k] / (100.0 * curve[k - 1]) - 1.0) for k in range(1, 5) if k not in sizes]
        mean, worst = 100.0 * statistics.fmean(errors), 100.0 * max(errors)
        text = f"speeds at other sizes, {name}: mean and worst error"
        yield information(text, f"{mean:.1f} % and {worst:.1f} %")
        if sizes == (1, 2):
            yield at_most("speeds at 3 and 4 GPUs, seen at 1 and 2: mean error", mean, 10.0, "percent")


@figure(area="policies")
def learned_stories(quick: bool) -> Iterator[Row]:
    """A job whose first rows at a new size are noise, one that is really slower on more GPUs, many of each."""
    tries = 5 if quick else 50
    grown = settled = 0
    at_one: list[float] = []
    changes: list[int] = []
    for seed in range(tries):
        rng = np.random.default_rng(seed)
        grown += _grows_after_noise(rng)
        story = Story(lambda gpus, _, rng=rng: 100.0 / gpus**0.3 * float(rng.normal(1.0, 0.05)), crowded=10)  # type: ignore[misc]
        story.live(300)
        settled += story.gpus == 1
        later = story.live(int(3 * TRUST_S / ROW_S))
        at_one.append(later.count(1) / len(later))
        changes.append(len(list(groupby(later))) - 1)
    yield exactly(
        "noise in the first rows at a new size: at its maximum again, of all",
        f"{grown} of {tries}",
        f"{tries} of {tries}",
    )
    yield exactly(
        "more GPUs are slower: settled at 1 GPU within 300 rows, of all", f"{settled} of {tries}", f"{tries} of {tries}"
    )
    yield at_least("the same, later: share of rows at 1 GPU, mean", statistics.fmean(at_one), 0.95, "")
    yield at_most("the same, later: changes of size in 1.5 h, mean", statistics.fmean(changes), 8.0, "")
    yield run_tests("the same as tests, and a long disturbance", ["tests/scenarios/test_learning.py"])


def _grows_after_noise(rng: np.random.Generator) -> bool:
    seen_at: dict[int, int] = {}

    def speed(gpus: int, number: int) -> float:
        first = seen_at.setdefault(gpus, number)
        is_disturbed = gpus > 1 and number - first < 4
        return float(100.0 * gpus**0.9 * rng.normal(1.0, 0.05)) * (
            float(rng.uniform(0.1, 0.5)) if is_disturbed else 1.0
        )

    story = Story(speed, crowded=10)
    story.live(150)
    return set(story.live(20)) == {4}


@figure(area="policies")
def learned_rounds(quick: bool) -> Iterator[Row]:
    """What learning costs a round: without news, and the first time that all jobs have said something."""
    jobs = [running(spec(f"j{number:04}", (1, 8), category=f"c{number % 50}"), "n0") for number in range(NUM_JOBS)]
    learning = Learning(Nowhere())
    rows = (*epochs_at(1, *[100.0] * 6), *epochs_at(2, *[180.0] * 6, since_s=100.0))
    heard = {job.id: DriverStatus(driver_uid=job.id, rows=rows, rows_to=len(rows)) for job in jobs}
    first_s = _round_s(learning, jobs, heard, 0)
    for number in range(1, 60):
        _round_s(learning, jobs, heard, number)
    quiet_s = [_round_s(learning, jobs, heard, 60 + number) for number in range(ROUNDS)]
    yield at_most(
        f"{NUM_JOBS} jobs, no new rows: filling the observation, median", 1e3 * statistics.median(quiet_s), 10.0, "ms"
    )
    yield information("the same, p95", f"{1e3 * percentile(quiet_s, 0.95):.1f} ms")
    yield information(f"{NUM_JOBS} jobs with 14 new rows each: the first round", f"{1e3 * first_s:.0f} ms")


def _round_s(learning: Learning, jobs: list[Job], heard: dict[str, DriverStatus], number: int) -> float:
    observation: Observation = seen(cluster(8), *jobs, now_s=1_000.0 + number)
    begin_s = time.perf_counter()
    learning.filled(observation, heard)
    return time.perf_counter() - begin_s


@figure(area="policies")
def learned_costs_of_changes(quick: bool) -> Iterator[Row]:
    """A line with noise of a fifth and every tenth measurement ten times too long."""
    errors = []
    for seed in range(20 if quick else 200):
        rng = np.random.default_rng(seed)
        sizes = rng.integers(1, 17, 32)
        seconds = (2.0 + 0.25 * sizes) * rng.normal(1.0, 0.2, 32).clip(0.1) * np.where(rng.random(32) < 0.1, 10.0, 1.0)
        measured = Changes(gpus=tuple(int(one) for one in sizes), seconds=tuple(float(one) for one in seconds))
        costs = learned_costs({ResizeKind.GROW: measured})
        errors.append(abs(costs.seconds(ResizeKind.GROW, 8) / 4.0 - 1.0))
    yield at_most(
        "cost of a growth to 8 GPUs from 32 noisy changes: median error",
        100.0 * statistics.median(errors),
        15.0,
        "percent",
    )

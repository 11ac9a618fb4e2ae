"""Stories of one elastic job whose speeds are learned while it runs: it grows where that helps, and does not flap."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import groupby

import numpy as np

from scheduler_core.cycle import decide
from scheduler_core.estimate.rows import History, taught
from scheduler_core.estimate.speeds import TRUST_S, is_news, speed_table
from scheduler_core.model.observation import Observation
from scheduler_core.model.params import Params
from scheduler_core.model.target import Target
from tests.unit.core.builders import cluster, running, seen, spec
from tests.unit.core.estimates import row

PARAMS = Params(policy="elastic_fifo", decide_interval_s=30.0)
ROW_S = 4.0


@dataclass
class Story:
    """A job of 1 to 4 GPUs, a row of four seconds after another; decisions as the scheduler makes them.

    Attributes:
        speed: Samples/s at a size, as they really are in the given row.
        crowded: For so many rows there is one GPU for it, then four.
    """

    speed: Callable[[int, int], float]
    crowded: int = 0
    gpus: int = 1
    sizes: list[int] = field(default_factory=list)
    history: History = field(default_factory=History)
    table: tuple[float, ...] = ()
    target: Target = field(default_factory=Target)

    def live(self, rows: int) -> Sequence[int]:
        """So many rows; the sizes at which each was made."""
        for number in range(len(self.sizes), len(self.sizes) + rows):
            now_s = 1_000_000.0 + ROW_S * number
            slow = 0.5 if not self.sizes or self.sizes[-1] != self.gpus else 1.0
            speed = slow * self.speed(self.gpus, number)
            self.sizes.append(self.gpus)
            self.history = taught(self.history, [row(self.gpus, speed, time_s=now_s)])
            table = speed_table(self.history.sizes, 4, now_s)
            self.table = table if is_news(self.table, table) else self.table
            self.target = decide(self.observed(now_s), self.target, PARAMS).target
            self.gpus = self.target.allocation.gpus("job")
        return self.sizes[-rows:]

    def observed(self, now_s: float) -> Observation:
        """The job as it runs."""
        job = running(spec("job", (1, 4)), *["n0"] * self.gpus)
        speeds = {"job": self.table} if self.table else {}
        return seen(cluster(1 if len(self.sizes) < self.crowded else 4), job, now_s=now_s, speed_by_job=speeds)


def stays(sizes: Sequence[int]) -> list[int]:
    """The sizes, each stay once."""
    return [size for size, _ in groupby(sizes)]


def test_noise_at_a_new_size_does_not_cut_the_job_for_good() -> None:
    """The first rows at a new size are five times too slow (a neighbour, a cold cache): it is at its maximum later."""
    seen_at: dict[int, int] = {}

    def speed(gpus: int, number: int) -> float:
        seen_at.setdefault(gpus, number)
        is_disturbed = gpus > 1 and number - seen_at[gpus] < 4
        return float(100.0 * gpus**0.9) * (0.2 if is_disturbed else 1.0)

    story = Story(speed, crowded=10)
    story.live(60)

    assert set(story.live(20)) == {4}


def test_a_long_disturbance_is_forgotten() -> None:
    """Where all rows of a visit are slow the job is cut; when the verdict is old it grows again, and stays."""
    story = Story(lambda gpus, number: 100.0 * gpus**0.9 * (0.3 if gpus > 1 and number < 100 else 1.0), crowded=10)
    story.live(100)
    assert story.gpus < 4

    story.live(math.ceil(2 * TRUST_S / ROW_S))
    assert set(story.live(50)) == {4}


def test_a_job_that_more_gpus_slow_down_settles_at_one() -> None:
    """It tries others once, for a few rows, and again only when the verdict is old, ever more seldom."""
    rng = np.random.default_rng(5)
    story = Story(lambda gpus, _: 100.0 / gpus**0.3 * float(rng.normal(1.0, 0.03)), crowded=10)
    first = stays(story.live(200))
    assert first[-1] == 1
    assert len(first) <= 7

    rows = math.ceil(6 * TRUST_S / ROW_S)
    sizes = story.live(rows)
    assert sizes.count(1) >= 0.98 * rows
    assert len(stays(sizes)) <= 7


def test_a_job_that_began_where_it_is_slow_finds_back() -> None:
    """One row after the warm-up was all at one GPU before it grew: it goes back and measures."""
    story = Story(lambda gpus, _: 100.0 / gpus**0.3, crowded=2)

    assert stays(story.live(200)) == [1, 4, 3, 2, 1]


def test_a_job_that_scales_is_at_its_maximum_and_stays_there() -> None:
    """Noise of a tenth makes no difference."""
    rng = np.random.default_rng(6)
    story = Story(lambda gpus, _: 100.0 * gpus**0.8 * float(rng.normal(1.0, 0.1)))
    story.live(10)

    assert stays(story.live(1_000)) == [4]

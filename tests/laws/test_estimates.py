"""Laws of speed tables: whatever was seen, a policy can rely on them, and nothing untried is ruled out."""

from __future__ import annotations

import math
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as some

from scheduler_core.estimate.seen import SizeSeen
from scheduler_core.estimate.speeds import EXPLORE, no_faster, speed_table

NOW_S = 10_000.0


@some.composite
def seen_sizes(draw: some.DrawFn) -> tuple[SizeSeen, ...]:
    """Whatever may have been seen of a job at up to five sizes."""
    found = []
    for gpus in sorted(draw(some.sets(some.integers(1, 64), min_size=1, max_size=5))):
        speeds = tuple(draw(some.lists(some.floats(0.01, 1e6), min_size=1, max_size=12)))
        seconds = draw(some.floats(0.1, 100.0))
        found.append(
            SizeSeen(
                gpus=gpus,
                speeds=speeds,
                seconds=(seconds,) * len(speeds),
                last_s=draw(some.floats(0.0, NOW_S)),
                visits=draw(some.integers(1, 5)),
            )
        )
    return tuple(found)


@given(seen_sizes(), some.integers(1, 80))
def test_a_table_is_usable(sizes: tuple[SizeSeen, ...], max_gpus: int) -> None:
    """It is 0 at 0, finite, nowhere negative, and positive at 1."""
    table = speed_table(sizes, max_gpus, NOW_S)

    assert len(table) == max_gpus + 1
    assert table[0] == 0.0 < table[1]
    assert all(type(speed) is float and math.isfinite(speed) and speed >= 0 for speed in table)


@given(seen_sizes(), some.integers(1, 80))
def test_up_to_what_is_no_faster_a_table_is_concave_and_rises(sizes: tuple[SizeSeen, ...], max_gpus: int) -> None:
    """Each GPU adds what makes a policy try it, and no more than the one before; beyond, none adds anything."""
    table = speed_table(sizes, max_gpus, NOW_S)
    limit = no_faster(sizes, NOW_S)
    gains = [after - before for before, after in pairwise(table)]
    slack = 1e-7 * max(table)

    rising = [gain for gpus, gain in enumerate(gains, start=1) if gpus < limit]
    assert all(after <= before + slack for before, after in pairwise(rising))
    assert all(gain >= EXPLORE * table[1] - slack for gain in rising)
    assert all(gain <= 0 for gpus, gain in enumerate(gains, start=1) if gpus >= limit)


@given(seen_sizes(), some.integers(1, 80), some.floats(0.001, 1000.0))
def test_a_table_does_not_depend_on_the_unit(sizes: tuple[SizeSeen, ...], max_gpus: int, factor: float) -> None:
    """A job twice as fast has the same table, twice."""
    faster = tuple(
        SizeSeen(
            gpus=seen.gpus,
            speeds=tuple(speed * factor for speed in seen.speeds),
            seconds=seen.seconds,
            last_s=seen.last_s,
            visits=seen.visits,
        )
        for seen in sizes
    )
    table, other = (speed_table(one, max_gpus, NOW_S) for one in (sizes, faster))

    assert max(abs(a * factor - b) for a, b in zip(table, other, strict=True)) <= 1e-3 * max(other)

"""The sizes of a job, how far up they help, and what they are worth."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from scheduler_core.allocate.rungs import clipped, rungs, speedups, useful_rungs
from tests.unit.core.builders import spec


@pytest.mark.parametrize(
    ("changes", "sizes"),
    [
        ({}, [2, 3, 4, 5, 6, 7, 8]),
        ({"gpus_per_worker": 2}, [2, 4, 6, 8]),
        ({"gpu_sizes": (1, 2, 4, 8, 16)}, [2, 4, 8]),
        ({"gpu_sizes": (3, 4, 6), "gpus_per_worker": 2}, [4, 6]),
        ({"gpu_sizes": (1, 16)}, []),
    ],
)
def test_sizes_of_a_job(changes: dict[str, Any], sizes: list[int]) -> None:
    """A job of 2..8: whole workers within its bounds, of these the named ones."""
    assert list(rungs(spec("a", (2, 8), **changes))) == sizes


@pytest.mark.parametrize(
    ("speed", "sizes"),
    [
        ((), [2, 4, 8]),  # nothing known
        ((0.0, 5.0), [2, 4, 8]),  # nothing known of its sizes
        ((0.0, 1.0, 2.0, 9.0, 3.0, 9.0), [2, 4, 8]),  # still rising over the sizes it may have
        ((0.0, 1.0, 2.0, 3.0, 2.0), [2]),
        ((0.0, 1.0, 2.0, 0.0, 1.0, 0.0, 0.0, 0.0, 3.0), [2, 4, 8]),  # a dip on the way to the best
    ],
)
def test_useful_sizes_end_at_the_best_known(speed: tuple[float, ...], sizes: list[int]) -> None:
    """A job of 2, 4 or 8."""
    assert list(useful_rungs(spec("a", (2, 8), gpu_sizes=(2, 4, 8)), speed)) == sizes


@pytest.mark.parametrize(("gpus", "size"), [(1, 2), (2, 2), (3, 2), (5, 4), (99, 8)])
def test_a_wish_is_clipped_into_the_sizes(gpus: int, size: int) -> None:
    """The largest that is not more, else the smallest; the same by a list and by whole workers of two up to eight."""
    assert clipped(spec("a", (2, 8), gpu_sizes=(2, 4, 8)), gpus) == size
    assert clipped(spec("a", (2, 8), gpus_per_worker=2), gpus) == size
    assert clipped(spec("a", (2, 8), gpu_sizes=(1,)), gpus) == 0


@pytest.mark.parametrize(
    ("sizes", "speed", "worth"),
    [
        ([1, 2, 4], (0.0, 10.0, 18.0, 25.0, 30.0), [1.0, 1.8, 3.0]),
        ([1, 2, 3], (), [1.0, 2.0, 3.0]),  # no table: each GPU counts as one
        ([1, 2, 4], (0.0, 10.0, 18.0), [1.0, 1.8, 3.4]),  # a short one goes on as between the last two
        ([2, 4], (0.0, 0.0, 20.0, 0.0, 30.0), [2.0, 3.0]),  # speed at one GPU not known
        ([2, 4], (0.0, 10.0, 20.0), [2.0, 4.0]),
        ([1, 2], (0.0, 0.0, 0.0), [0.0, 0.0]),
    ],
)
def test_speedups(sizes: Sequence[int], speed: tuple[float, ...], worth: list[float]) -> None:
    """Over one GPU."""
    assert speedups(sizes, speed) == pytest.approx(worth)

"""Readers name the line that is wrong; the generator keeps its rate."""

from __future__ import annotations

import numpy as np
import pytest

from scheduler_core.errors import InvalidValue
from scheduler_core.simulate.traces.poisson import poisson
from scheduler_core.simulate.traces.pollux import PolluxJob, read_pollux

HEADER = "name,time,application,num_replicas,batch_size\n"


def test_workload_in_order_of_submission() -> None:
    """Rows come in order of time; jobs of one second in the order of the file."""
    text = HEADER + "b,9,ncf,1,256\nc,3,bert,2,12\na,9,bert,4,24\n"
    assert read_pollux(text) == (
        PolluxJob(name="c", submitted_s=3, application="bert", num_gpus=2, batch_size=12),
        PolluxJob(name="b", submitted_s=9, application="ncf", num_gpus=1, batch_size=256),
        PolluxJob(name="a", submitted_s=9, application="bert", num_gpus=4, batch_size=24),
    )


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "line 1: expected header"),
        ("name,time\n", "line 1: expected header name,time,application"),
        (HEADER + "a,1,bert,1\n", "line 2: expected 5 fields"),
        (HEADER + "a,1,bert,1,8\n\nb,soon,bert,1,8\n", "line 4: expected numbers"),
        (HEADER + "a,1.5,bert,1,8\n", "line 2: expected whole time"),
        (HEADER + "a,1,bert,0,8\n", "line 2: expected whole time"),
        (HEADER + "a,1,bert,1,8\na,2,bert,1,8\n", "line 3: expected unique names"),
    ],
)
def test_wrong_workload_is_refused_with_its_line(text: str, words: str) -> None:
    """The error says which line, and what was expected there."""
    with pytest.raises(InvalidValue, match=words):
        read_pollux(text)


def test_poisson_has_its_rate_and_repeats() -> None:
    """Equal seeds give equal jobs; 2,000 arrivals at 0.5 per second take 4,000 s within four standard deviations."""
    one, other = (poisson(2_000, 0.5, lambda rng: rng.uniform(), np.random.default_rng(3)) for _ in range(2))
    assert one == other
    assert one[-1].spec.submitted_s == pytest.approx(4_000, abs=4 * 2 * 2_000**0.5)


def test_rate_of_arrival_is_positive() -> None:
    """No rate, no jobs."""
    with pytest.raises(InvalidValue, match="expected a rate > 0"):
        poisson(1, 0.0, lambda rng: rng.uniform(), np.random.default_rng(0))

"""The worked example of the Voda report: three jobs of 1..4 GPUs on six, by every policy we have of it."""

from __future__ import annotations

from scheduler_core.allocate.elastic_fifo import elastic_fifo
from scheduler_core.allocate.fifo import fifo
from tests.unit.core.builders import asked, spec

SPEEDUPS = {
    "inception": (0.0, 1.0, 1.842, 2.692, 3.5),
    "transformer": (0.0, 1.0, 1.657, 2.148, 2.521),
    "vgg": (0.0, 1.0, 1.785, 2.5, 3.125),
}
EXAMPLE = asked([spec(name, (1, 4)) for name in SPEEDUPS], 6, speed_by_job=SPEEDUPS)


def test_fifo_gives_each_its_minimum() -> None:
    """FIFO: 1, 1, 1."""
    assert dict(fifo(EXAMPLE).gpus_by_job) == {"inception": 1, "transformer": 1, "vgg": 1}


def test_elastic_fifo_gives_equal_shares() -> None:
    """Elastic FIFO: 2, 2, 2."""
    assert dict(elastic_fifo(EXAMPLE).gpus_by_job) == {"inception": 2, "transformer": 2, "vgg": 2}

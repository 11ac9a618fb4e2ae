"""How long jobs took and waited, over all that succeeded in a record's span. Pure.

The time that a job took (JCT) is that from its submission to its end. It is the sum of its queueing (submission to
first grant), its time preempted (end of a segment to the next grant), its starts (grant to first step) and its
training.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, median
from typing import Final

from voda_flows.report.summary import Summary

#: What is summed up, as fields of ``summary.Summary``, and its name for people.
TIMES: Final = {
    "jct_s": "whole (JCT)",
    "queue_s": "queueing",
    "preempted_s": "preempted",
    "starting_s": "starting",
    "training_s": "training",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Distribution:
    """Durations of several jobs, in seconds.

    Attributes:
        count: How many.
        mean: Their mean.
        median: Half are shorter.
        p95: The shortest that 95 of 100 do not exceed.
        longest: The longest.
    """

    count: int
    mean: float
    median: float
    p95: float
    longest: float


def distribution(values: Iterable[float]) -> Distribution | None:
    """Sum up durations; None where there are none.

    >>> distribution([1.0, 2.0, 9.0]).median
    2.0
    """
    ordered = sorted(values)
    if not ordered:
        return None
    return Distribution(
        count=len(ordered),
        mean=fmean(ordered),
        median=median(ordered),
        p95=ordered[math.ceil(0.95 * len(ordered)) - 1],
        longest=ordered[-1],
    )


def statistics(summaries: Sequence[Summary]) -> Mapping[str, Distribution]:
    """How long jobs took, by the names of ``TIMES``.

    Args:
        summaries: The numbers of jobs that ended; empty for an empty result.
    """
    found = {name: distribution(getattr(one, name) for one in summaries) for name in TIMES}
    return {name: one for name, one in found.items() if one is not None}

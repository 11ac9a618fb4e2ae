"""Samples/s at every size of a job, from what was seen at some of them.

In: what was seen at single sizes. Out: a table for 0, 1, 2, ... GPUs. A piece of the first deciding step (estimate).

1. *Curve.* Amdahl's law (AFIPS 1967) in the form in which it is linear: at k GPUs with a batch of its own for each,
   seconds of one GPU per sample are ``k / speed(k) = a + b (k - 1)``. That is the speed model of Optimus (EuroSys'18,
   section 3.2: inverse speeds, non-negative least squares) for all-reduce instead of parameter servers. ``a`` and ``b``
   are fitted by NNLS to the sizes seen, each weighted by its evidence, and shrunk towards ``b = PRIOR_SERIAL a``.
2. *Concave fit.* The table is the concave function through (0, 0) nearest to the sizes seen (weighted by their
   evidence) and, where there is little of it, to the curve: NNLS over ``min(k, g)`` and ``-max(0, k - g)``, which span
   all of them.
3. *Exploring.* Up to the first size that is *no faster* each GPU adds at least ``EXPLORE`` of one GPU's speed, so a
   policy that has GPUs to spare tries what nobody has tried. A size is no faster only when enough was seen of it, when
   a smaller one was as fast beyond the noise of both (that of few stretches is thought to be large: a job that came
   by a small size in passing goes back to it and measures), and when no larger one was seen to be faster. From it on
   the table never rises. The verdict holds for a while, doubled with each visit; then that one size is tried again.

Evidence ages: it loses half of its weight every ``AGE_S``, in steps, so a table that nothing new is known of changes
seldom.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import nnls

from scheduler_core.estimate.seen import SizeSeen

#: b / a before anything was seen at two sizes: the flattest curve that Voda's authors measured (InceptionV3: 3.5 at 4).
PRIOR_SERIAL = 0.05
#: Weight of that prior; enough evidence at one size weighs at most 1.
_PRIOR_WEIGHT = 0.25
#: Weight of the curve at a size of which nothing was seen.
_CURVE_WEIGHT = 0.15
#: A relative error at which evidence counts half.
_NOISY = 0.05
#: Least gain of one more GPU that counts, of one GPU's speed; so much an untried size is thought to gain at least.
EXPLORE = 0.05
#: Evidence loses half of its weight in this time, seconds, at most to 1/16.
AGE_S = 1800.0
_MOST_AGE = 4
#: The verdict that a size is no faster holds so long after the first visit, seconds; twice as long after each further.
TRUST_S = 1800.0
_MOST_DOUBLED = 3
#: A difference counts from so many standard errors on.
_SIGMAS = 2.0
#: A table whose entries all stay within this is no news.
_NEWS = 0.1

Floats = NDArray[np.float64]


def speed_table(sizes: Sequence[SizeSeen], max_gpus: int, now_s: float) -> tuple[float, ...]:
    """Speeds of a job by its size.

    Args:
        sizes: What was seen, sizes ascending, each once.
        max_gpus: Largest size of the table.
        now_s: Seconds since the epoch.

    Returns:
        Samples/s at 0, 1, ..., max_gpus GPUs; 0 at 0, positive up to the first size that is no faster, concave there
        and not rising from it on. Empty where nothing was seen.
    """
    if not sizes:
        return ()
    weights = np.array([_weight(seen, now_s) for seen in sizes])
    curve = _curve(sizes, weights, max_gpus)  # (max_gpus + 1,), samples/s
    limit = no_faster(sizes, now_s)
    raw: list[float] = _concave(sizes, weights, curve, limit).tolist()
    table = [0.0]
    for gpus, (before, after) in enumerate(pairwise(raw), start=1):
        gained = table[-1] + max(after - before, EXPLORE * raw[1])
        table.append(gained if gpus < limit else max(0.0, min(table[-1], after)))
    return tuple(table)


def no_faster(sizes: Sequence[SizeSeen], now_s: float) -> float:
    """From which size on more GPUs are not to be tried, infinity where all are.

    That is the smallest size that was seen to be no faster than a smaller one; when that verdict is old, the one after
    it: one size is tried again, and the larger ones only where that one is faster now.
    """
    for place, seen in enumerate(sizes[1:], start=1):
        if not seen.is_enough:
            continue
        best = max(sizes[:place], key=lambda one: (one.speed * (1.0 - _SIGMAS * one.error), -one.gpus))
        is_beaten = any(_gains(best, larger) > _noise(best, larger) for larger in sizes[place + 1 :])
        if not is_beaten and _gains(best, seen) + _noise(best, seen) < EXPLORE * (seen.gpus - best.gpus) / best.gpus:
            return seen.gpus + (now_s - seen.last_s >= trusted_for_s(seen))
    return math.inf


def trusted_for_s(seen: SizeSeen) -> float:
    """How long after its last stretch a size may be called no faster, seconds."""
    return TRUST_S * 2.0 ** min(seen.visits - 1, _MOST_DOUBLED)


def holds_until_s(sizes: Sequence[SizeSeen], now_s: float) -> float:
    """The moment at which a table made now is another by age alone, infinity where it never is.

    Args:
        sizes: What it is made from.
        now_s: When it is made, seconds since the epoch.
    """
    moments = [seen.last_s + trusted_for_s(seen) for seen in sizes]
    moments += [seen.last_s + AGE_S * (_age(seen, now_s) + 1) for seen in sizes if _age(seen, now_s) < _MOST_AGE]
    return min((moment for moment in moments if moment > now_s), default=math.inf)


def is_news(told: tuple[float, ...], table: tuple[float, ...]) -> bool:
    """Whether a table says something else than the one that was told: decisions are not made anew for noise."""
    if len(told) != len(table) or not table or told.index(max(told)) != table.index(max(table)):
        return told != table
    return any(abs(new - old) > _NEWS * old for old, new in zip(told, table, strict=True))


def _age(seen: SizeSeen, now_s: float) -> int:
    """How many times its evidence has lost half of its weight."""
    return min(_MOST_AGE, max(0, int((now_s - seen.last_s) / AGE_S)))


def _weight(seen: SizeSeen, now_s: float) -> float:
    noise = 1.0 / (1.0 + (seen.error / _NOISY) ** 2)
    return seen.fullness * noise * 0.5 ** _age(seen, now_s)


def _gains(small: SizeSeen, large: SizeSeen) -> float:
    """How much faster the second is, of the first's speed."""
    return large.speed / small.speed - 1.0


def _noise(small: SizeSeen, large: SizeSeen) -> float:
    """What may be chance in that."""
    return _SIGMAS * large.speed / small.speed * math.hypot(small.error, large.error)


def _curve(sizes: Sequence[SizeSeen], weights: Floats, max_gpus: int) -> Floats:
    """Step 1: samples/s at 0, 1, ..., max_gpus GPUs, shape (max_gpus + 1,)."""
    gpus = np.array([seen.gpus for seen in sizes], dtype=float)  # (num_sizes,)
    per_sample = gpus / np.array([seen.speed for seen in sizes])  # GPU seconds
    scale = float(np.average(per_sample, weights=weights))
    far = max(2.0, float(gpus[-1])) - 1.0
    roots = np.sqrt(weights)
    prior = math.sqrt(_PRIOR_WEIGHT) * far / (1.0 + PRIOR_SERIAL * far)
    design = np.vstack(
        [
            np.column_stack([roots / per_sample, roots * (gpus - 1.0) / per_sample]) * scale,
            [[-PRIOR_SERIAL * prior, prior]],
        ]
    )
    (first, slope), _ = nnls(design, np.append(roots, 0.0))
    if slope >= first:  # slower with each GPU: as far as the law goes, all sizes are equal
        ratio = gpus / per_sample * scale
        first = slope = float(weights @ ratio**-1 / (weights @ ratio**-2))
    counts = np.arange(max_gpus + 1, dtype=float)
    curve: Floats = counts / (scale * (first + slope * np.maximum(counts - 1.0, 0.0)))
    return curve


def _concave(sizes: Sequence[SizeSeen], weights: Floats, curve: Floats, limit: float) -> Floats:
    """Step 2: the concave fit at 0, 1, ..., max_gpus GPUs, shape (max_gpus + 1,), samples/s.

    From the limit on only what was seen counts, since the curve cannot fall; beyond that the fit stays level.
    """
    last = len(curve) - 1
    seen_at = {seen.gpus: (seen.speed, weight) for seen, weight in zip(sizes, weights, strict=True)}
    doubled = {2**power for power in range(last.bit_length())}
    inside = {gpus for gpus in {*doubled, last} if gpus < limit} | set(seen_at)
    knots = np.array(sorted(gpus for gpus in inside if gpus <= last), dtype=float)
    points = [(gpus, speed, weight) for gpus, (speed, weight) in seen_at.items()]
    points += [
        (int(gpus), float(curve[int(gpus)]), _CURVE_WEIGHT * (1.0 - seen_at.get(int(gpus), (0.0, 0.0))[1]))
        for gpus in knots
        if gpus < limit
    ]
    at, speeds, weight = (np.array(column, dtype=float) for column in zip(*points, strict=True))
    roots = np.sqrt(weight) / _at(curve, at)
    unit = curve[1]
    coefficients, _ = nnls(_basis(at, knots) * (roots * unit)[:, None], roots * speeds)
    table: Floats = unit * _basis(np.minimum(np.arange(last + 1.0), knots[-1]), knots) @ coefficients
    return table


def _at(curve: Floats, gpus: Floats) -> Floats:
    """A curve at some sizes; at those beyond it, its last value."""
    values: Floats = curve[np.minimum(gpus.astype(int), len(curve) - 1)]
    return values


def _basis(gpus: Floats, knots: Floats) -> Floats:
    """Concave functions that are 0 at 0, shape (num_gpus, 2 num_knots)."""
    over = gpus[:, None] - knots[None, :]
    return np.hstack([np.minimum(over, 0.0) + knots, -np.maximum(over, 0.0)])

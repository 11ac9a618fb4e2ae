"""What was seen of a job's speed at one size: a few stretches of training, which give a robust speed and its noise.

In: stretches of training at one number of GPUs. Out: ``SizeSeen``, small enough to be kept for every job. A stretch is
one report row, or several short ones together: what takes a tenth of a second says little.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from statistics import median

#: Stretches that are kept for each size; older ones are forgotten.
KEPT = 12
#: A stretch shorter than this is joined with the next, seconds.
STRETCH_S = 2.0
#: Evidence is enough with so many stretches over so many seconds.
ENOUGH_STRETCHES = 5
ENOUGH_S = 10.0
#: A new visit to a size begins with so few of the old stretches: what it shows is to count.
_CARRIED = 3
#: The median absolute deviation of a normal variable, times this, is its standard deviation.
_MAD = 1.4826
#: The standard error of a median is so many times that of a mean (normal variables, many of them).
_MEDIAN = 1.2533
#: No stretch is more exact than this, relative; as long as they are few, than this.
_LEAST_NOISE = 0.01
_NOISE_OF_FEW = 0.1


@dataclass(frozen=True, slots=True, kw_only=True)
class SizeSeen:
    """Speeds at one size.

    Attributes:
        gpus: The size.
        speeds: Samples/s of the last stretches, oldest first.
        seconds: How long each of them was.
        last_s: When the last one ended, seconds since the epoch.
        visits: How often the job has come to this size.
    """

    gpus: int
    speeds: tuple[float, ...]
    seconds: tuple[float, ...]
    last_s: float
    visits: int = 1

    @property
    def speed(self) -> float:
        """The median of the stretches, samples/s."""
        return median(self.speeds)

    @property
    def fullness(self) -> float:
        """How much of the evidence that is enough is there, 0 to 1."""
        return min(1.0, len(self.speeds) / ENOUGH_STRETCHES) * min(1.0, sum(self.seconds) / ENOUGH_S)

    @property
    def is_enough(self) -> bool:
        """Whether there are enough stretches over enough seconds to conclude something from them."""
        return self.fullness >= 1.0

    @property
    def error(self) -> float:
        """Standard error of the speed, relative; from the stretches' own spread."""
        middle = self.speed
        spread = _MAD * median(abs(speed - middle) for speed in self.speeds) / middle
        least = _LEAST_NOISE if self.is_enough else _NOISE_OF_FEW
        return _MEDIAN * max(spread, least) / math.sqrt(len(self.speeds))


def seen_again(seen: SizeSeen | None, stretch: SizeSeen, *, is_visit: bool) -> SizeSeen:
    """A size with one more stretch.

    Args:
        seen: What was seen before, None for nothing.
        stretch: The new one, alone.
        is_visit: Whether the job has just come to this size.

    Returns:
        Both; at the begin of a visit few of the old stretches count.
    """
    if seen is None:
        return stretch
    speeds, seconds = seen.speeds, seen.seconds
    if is_visit:
        speeds, seconds = speeds[-_CARRIED:], seconds[-_CARRIED:]
    (speed,), (length_s,) = stretch.speeds, stretch.seconds
    if not is_visit and seconds[-1] < STRETCH_S:
        samples = speeds[-1] * seconds[-1] + speed * length_s
        length_s += seconds[-1]
        speed = samples / length_s
        speeds, seconds = speeds[:-1], seconds[:-1]
    return SizeSeen(
        gpus=seen.gpus,
        speeds=(*speeds, short(speed))[-KEPT:],
        seconds=(*seconds, short(length_s))[-KEPT:],
        last_s=max(seen.last_s, stretch.last_s),
        visits=seen.visits + is_visit,
    )


def short(value: float) -> float:
    """A figure to six digits: it is kept as text for every job."""
    return float(f"{value:.6g}")


def scale_between(own: Iterable[SizeSeen], others: Iterable[SizeSeen]) -> float:
    """How many times as fast the first is as the second, by the sizes that both have; 1 where they share none."""
    speeds = {seen.gpus: seen.speed for seen in others}
    ratios = [seen.speed / speeds[seen.gpus] for seen in own if seen.gpus in speeds]
    return median(ratios) if ratios else 1.0


def scaled(seen: SizeSeen, factor: float) -> SizeSeen:
    """The same, so many times as fast."""
    return seen if factor == 1.0 else replace(seen, speeds=tuple(short(speed * factor) for speed in seen.speeds))

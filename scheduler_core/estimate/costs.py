"""What changes of running jobs cost, learned from what each change cost.

In: seconds of standing still by kind and size. Out: ``ResizeCosts``. For each kind a line over the size by Theil (1950)
and Sen (1968): its slope is the median of the slopes between all pairs, its base the median of what is left. The
defaults take part as ``_PRIOR`` measurements, so a first odd one changes little and a few good ones prevail.
A move is made of a growth and a shrinking.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import combinations
from statistics import median

from scheduler_core.model.resizes import ResizeCost, ResizeCosts, ResizeKind

#: Changes of a kind that are kept.
KEPT = 32
#: Measurements that the default stands for, and slopes between two of them.
_PRIOR = 4
#: Costs before anything was measured.
DEFAULTS = ResizeCosts()
#: Digits that are told: a cost is not news for its noise.
_DIGITS = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Changes:
    """Changes of one kind, oldest first.

    Attributes:
        gpus: GPUs that the job had after each.
        seconds: How long training stood still.
    """

    gpus: tuple[int, ...] = ()
    seconds: tuple[float, ...] = ()

    def with_one(self, gpus: int, seconds: float) -> Changes:
        """One more."""
        return Changes(gpus=(*self.gpus, gpus)[-KEPT:], seconds=(*self.seconds, seconds)[-KEPT:])


def learned_costs(changes_by_kind: Mapping[str, Changes], defaults: ResizeCosts = DEFAULTS) -> ResizeCosts:
    """Costs of every kind.

    Args:
        changes_by_kind: What was measured, by the kind's name.
        defaults: Costs before anything was.

    Returns:
        The costs.
    """
    lines = {
        kind: _line(changes_by_kind.get(kind, Changes()), getattr(defaults, kind))
        for kind in (ResizeKind.START, ResizeKind.GROW, ResizeKind.SHRINK, ResizeKind.RESTART)
    }
    move = defaults.move
    if {ResizeKind.GROW, ResizeKind.SHRINK} & set(changes_by_kind):
        grow, shrink = lines[ResizeKind.GROW], lines[ResizeKind.SHRINK]
        move = ResizeCost(base_s=grow.base_s + shrink.base_s, per_gpu_s=grow.per_gpu_s + shrink.per_gpu_s)
    return ResizeCosts(move=move, **{kind.value: line for kind, line in lines.items()})


def _line(changes: Changes, default: ResizeCost) -> ResizeCost:
    if not changes.gpus:
        return default
    points = list(zip(changes.gpus, changes.seconds, strict=True))
    slopes = [default.per_gpu_s] * _PRIOR
    slopes += [
        (right[1] - left[1]) / (right[0] - left[0]) for left, right in combinations(points, 2) if left[0] != right[0]
    ]
    slope = max(0.0, median(slopes))
    bases = [default.base_s] * _PRIOR + [seconds - slope * gpus for gpus, seconds in points]
    base = max(0.0, median(bases))
    return ResizeCost(base_s=_rounded(base), per_gpu_s=_rounded(slope))


def _rounded(seconds: float) -> float:
    return float(f"{seconds:.{_DIGITS}g}")

"""The multiple-choice knapsack: one option of each group, within a budget, of the greatest value in all; exact.

In: for each group its options by cost and value. Out: the option of each. ``ffdl`` is one such problem.
A greedy pass over the groups' concave envelopes (Sinha and Zoltners, Operations Research 27, 1979) gives a price per
unit and with it an upper bound; mended by single exchanges it gives a lower one. An option that loses more than the
difference at that price is in no optimum; the dynamic programme runs over what remains, often nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

import numpy as np
from numpy.typing import NDArray

#: Relative to the value in all, below which two values are the same; sums of thousands of floats are no finer.
EPSILON: Final = 1e-12

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """Options of which exactly one is taken.

    Attributes:
        costs: Ascending integers; the first is 0.
        values: What each is worth; the first is 0.
    """

    costs: tuple[int, ...]
    values: tuple[float, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Flat:
    """All options of all groups, one after the other; the shape is (num_options,), of ``first`` (num_groups,)."""

    costs: Ints
    values: Floats
    groups: Ints
    first: Ints


def best_options(groups: Sequence[Group], budget: int) -> list[int]:
    """The options of the greatest value in all whose costs are within the budget.

    Args:
        groups: The groups, in an order: of choices of the same value, their order decides.
        budget: What may be spent, at least 0.

    Returns:
        Index of the option taken, for each group. The value is the greatest there is, to ``EPSILON`` of it.
    """
    if not groups:
        return []
    flat = _flat(groups)
    taken, price = _greedy(groups, budget)
    if price <= 0:
        return taken
    chosen = _exchanged(flat, flat.first + np.array(taken), budget)
    net = flat.values - price * flat.costs
    best_net = np.maximum.reduceat(net, flat.first)
    upper, lower = price * budget + float(best_net.sum()), float(flat.values[chosen].sum())
    slack = EPSILON * max(1.0, abs(upper))
    if upper - lower > slack:
        open_options = best_net[flat.groups] - net <= upper - lower + slack
        chosen = _programme(flat, open_options, budget)
    return [int(option) for option in chosen - flat.first]


def _flat(groups: Sequence[Group]) -> _Flat:
    sizes = np.array([len(group.costs) for group in groups])
    return _Flat(
        costs=np.array([cost for group in groups for cost in group.costs], dtype=np.int64),
        values=np.array([value for group in groups for value in group.values], dtype=np.float64),
        groups=np.repeat(np.arange(len(groups)), sizes),
        first=np.concatenate(([0], np.cumsum(sizes)[:-1])),
    )


def _greedy(groups: Sequence[Group], budget: int) -> tuple[list[int], float]:
    """Climb the envelopes, steepest first; the options reached, and the slope that no longer fitted (0: all fitted)."""
    steps: list[tuple[float, int, int, int]] = []
    known: dict[Group, list[tuple[float, int, int]]] = {}
    for index, group in enumerate(groups):
        if group not in known:
            known[group] = _envelope(group)
        steps += [(-slope, index, cost, option) for slope, cost, option in known[group]]
    steps.sort()
    taken, left = [0] * len(groups), budget
    for negative_slope, index, cost, option in steps:
        if cost > left:
            return taken, -negative_slope
        taken[index] = option
        left -= cost
    return taken, 0.0


def _envelope(group: Group) -> list[tuple[float, int, int]]:
    """The rising steps of the upper concave envelope: slope, cost of the step, option that it reaches."""
    corners = [0]
    for option in range(1, len(group.costs)):
        while len(corners) > 1 and _slope(group, corners[-2], corners[-1]) <= _slope(group, corners[-1], option):
            corners.pop()
        corners.append(option)
    found = [(_slope(group, low, high), group.costs[high] - group.costs[low], high) for low, high in pairwise(corners)]
    return [step for step in found if step[0] > 0]


def _slope(group: Group, low: int, high: int) -> float:
    return (group.values[high] - group.values[low]) / (group.costs[high] - group.costs[low])


def _exchanged(flat: _Flat, chosen: Ints, budget: int) -> Ints:
    """Exchange one option at a time for the best that the rest of the budget allows, until none is better."""
    left = budget - int(flat.costs[chosen].sum())
    while True:
        gains = flat.values - flat.values[chosen][flat.groups]
        gains[flat.costs - flat.costs[chosen][flat.groups] > left] = 0.0
        best = int(np.argmax(gains))
        if gains[best] <= 0:
            return chosen
        group = flat.groups[best]
        left -= int(flat.costs[best] - flat.costs[chosen[group]])
        chosen = chosen.copy()
        chosen[group] = best


def _programme(flat: _Flat, is_open: NDArray[np.bool_], budget: int) -> Ints:
    """The optimum over the open options, by dynamic programming over the groups from the last to the first."""
    options = [group[is_open[group]] for group in np.split(np.arange(len(flat.costs)), flat.first[1:])]
    least = np.array([flat.costs[group[0]] for group in options])
    spans = [int(flat.costs[group[-1]]) - int(floor) for group, floor in zip(options, least, strict=True)]
    width = min(budget - int(least.sum()), sum(spans))
    best = np.zeros(width + 1)  # value of the groups from this one on, by what may be spent beyond their least
    picks: dict[int, NDArray[np.int16]] = {}
    for index in range(len(options) - 1, -1, -1):
        if len(options[index]) > 1:
            best, picks[index] = _with_group(best, flat, options[index])
    chosen, left = np.array([group[0] for group in options]), width
    for index in sorted(picks):
        chosen[index] = options[index][picks[index][left]]
        left -= int(flat.costs[chosen[index]] - least[index])
    return chosen


def _with_group(best: Floats, flat: _Flat, options: Ints) -> tuple[Floats, NDArray[np.int16]]:
    """One more group: the values by budget, and the option of the group at each; the dearer one on equal values."""
    width = len(best)
    grown, pick = np.full(width, -np.inf), np.zeros(width, dtype=np.int16)
    for place in range(len(options) - 1, -1, -1):
        extra = int(flat.costs[options[place]] - flat.costs[options[0]])
        if extra >= width:
            continue
        offered = best[: width - extra] + flat.values[options[place]]
        better = offered > grown[extra:]
        grown[extra:][better] = offered[better]
        pick[extra:][better] = place
    return grown, pick

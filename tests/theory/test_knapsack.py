"""The knapsack under FfDL has the greatest value of all choices: against trying them all, and by a plain programme."""

from __future__ import annotations

from itertools import product
from math import isclose

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scheduler_core.allocate.knapsack import Group, best_options

#: Steps of cost and value; few values, so that ties and dips are frequent.
STEPS = st.lists(st.tuples(st.integers(1, 5), st.sampled_from((-1.0, 0.0, 0.5, 1.0, 1.5, 3.0))), max_size=4)


def group(steps: list[tuple[int, float]]) -> Group:
    """Options that follow from one another by these steps."""
    costs, values = [0], [0.0]
    for cost, value in steps:
        costs.append(costs[-1] + cost)
        values.append(values[-1] + value)
    return Group(costs=tuple(costs), values=tuple(values))


def value_of(groups: list[Group], options: list[int]) -> float:
    """What a choice is worth in all."""
    return sum(one.values[option] for one, option in zip(groups, options, strict=True))


def cost_of(groups: list[Group], options: list[int]) -> int:
    """What a choice costs in all."""
    return sum(one.costs[option] for one, option in zip(groups, options, strict=True))


@given(drawn=st.lists(STEPS, max_size=5), budget=st.integers(0, 30))
def test_no_choice_is_worth_more(drawn: list[list[tuple[int, float]]], budget: int) -> None:
    """Every choice within the budget is tried."""
    groups = [group(steps) for steps in drawn]
    found = best_options(groups, budget)
    choices = [list(choice) for choice in product(*(range(len(one.costs)) for one in groups))]
    best = max(value_of(groups, choice) for choice in choices if cost_of(groups, choice) <= budget)

    assert cost_of(groups, found) <= budget
    assert isclose(value_of(groups, found), best, abs_tol=1e-9)


@pytest.mark.parametrize("budget", [0, 1, 50, 399, 400, 777, 1200])
def test_many_groups_that_the_bounds_do_not_decide(budget: int) -> None:
    """400 groups of one indivisible step of 3, 5 or 7, worth nearly the same for its cost; by a plain programme."""
    groups = [group([((3, 5, 7)[index % 3], (3.0, 5.01, 7.0)[index % 3])]) for index in range(400)]
    plain = [0.0] * (budget + 1)
    for one in groups:
        for left in range(budget, one.costs[1] - 1, -1):
            plain[left] = max(plain[left], plain[left - one.costs[1]] + one.values[1])

    found = best_options(groups, budget)

    assert cost_of(groups, found) <= budget
    assert isclose(value_of(groups, found), plain[budget], abs_tol=1e-9)

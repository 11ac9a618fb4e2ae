"""Speeds by number of GPUs."""

from __future__ import annotations

import pytest

from scheduler_core.errors import InvalidValue
from scheduler_core.simulate.physics import Curves, speed_table, voda_curves
from tests.unit.simulate.builders import job


def test_curve_is_straight_between_points_and_flat_behind() -> None:
    """Speed at 2 GPUs is halfway between those at 1 and 3, at 5 it is that at 3."""
    curves = Curves(points_by_category={"": {1: 10.0, 3: 20.0}})
    assert speed_table(curves, job("x", 0, 1, 1, 5).spec) == (0.0, 10.0, 15.0, 20.0, 20.0, 20.0)


def test_unknown_category_is_named() -> None:
    """A job without a curve is an error that names what there is."""
    with pytest.raises(InvalidValue, match=r"job 'x': expected a category of .*'VGG16'.*, got ''"):
        voda_curves().samples_per_s(job("x", 0, 1).spec, {"a": 1})


def test_vodas_applications() -> None:
    """InceptionV3 on 4 GPUs, also on two nodes, is 3.5 times as fast as on one."""
    spec = job("x", 0, 1, 1, 4, category="InceptionV3").spec
    assert voda_curves().samples_per_s(spec, {"a": 2, "b": 2}) == 3.5

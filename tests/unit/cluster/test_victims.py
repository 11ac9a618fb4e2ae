"""Strikes are repaired in an order in which repairs can work."""

from __future__ import annotations

import functools
import random
import time
from typing import cast

import pytest

from tests.cluster.installed import Installation
from tests.cluster.victims import Repair, Striker


@pytest.fixture
def done() -> list[str]:
    """What was repaired, in order."""
    return []


def striker(done: list[str], *broken: tuple[str, str, float]) -> Striker:
    """One that has broken these: name, node, and in how many seconds it is to be repaired."""
    now_s = time.monotonic()
    repairs = [
        Repair(due_s=now_s + in_s, node=node, deed=functools.partial(done.append, name)) for name, node, in_s in broken
    ]
    return Striker(voda=cast("Installation", None), chance=random.Random(1), repairs=repairs)


def test_a_node_waits_for_the_control_plane(done: list[str]) -> None:
    """It registers with the API server: that comes first, though it is due later."""
    found = striker(done, ("n1", "n1", -1.0), ("kube-apiserver", "", 100.0))

    found.repair()
    assert done == []
    found.repair(all_of_it=True)
    assert done == ["kube-apiserver", "n1"]


def test_what_is_not_due_stays_broken(done: list[str]) -> None:
    """And is repaired once."""
    found = striker(done, ("workflow-controller", "", -1.0), ("n1", "n1", 100.0))

    found.repair()
    found.repair()

    assert (done, [one.node for one in found.repairs]) == (["workflow-controller"], ["n1"])

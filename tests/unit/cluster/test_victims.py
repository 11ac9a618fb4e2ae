"""Strikes are repaired in an order in which repairs can work."""

from __future__ import annotations

import functools
import random
import time
from types import SimpleNamespace
from typing import cast

import pytest

from tests.cluster.installed import Installation
from tests.cluster.victims import Repair, Striker


@pytest.fixture
def done() -> list[str]:
    """What was repaired, in order."""
    return []


def installation(done: list[str] | None = None, *dead: str) -> Installation:
    """One on a cluster of which these parts are dead; what is started comes to ``done``."""
    cluster = SimpleNamespace(is_alive=lambda part: part not in dead, start=[].append if done is None else done.append)
    return cast("Installation", SimpleNamespace(cluster=cluster))


def striker(done: list[str], **broken: float) -> Striker:
    """One that has broken these parts, each to be repaired in so many seconds; ``_`` stands for ``-``."""
    now_s, names = time.monotonic(), {part: part.replace("_", "-") for part in broken}
    repairs = [
        Repair(
            due_s=now_s + in_s,
            node="n1" if names[part] == "node" else "",
            part=names[part],
            deed=functools.partial(done.append, names[part]),
        )
        for part, in_s in broken.items()
    ]
    return Striker(voda=installation(), chance=random.Random(1), repairs=repairs)


@pytest.mark.parametrize("other", ["workflow_controller", "kube_apiserver"])
def test_a_node_waits_for_the_control_plane(done: list[str], other: str) -> None:
    """It registers with the API server: that comes first, though it is due later."""
    found = striker(done, node=-1.0, **{other: 100.0})

    found.repair()
    assert done == []
    found.repair(all_of_it=True)
    assert done == [other.replace("_", "-"), "node"]


def test_the_controller_waits_for_the_api_server(done: list[str]) -> None:
    """It ends at once where none answers; Kubernetes would start it until one does."""
    found = striker(done, workflow_controller=-1.0, kube_apiserver=100.0)

    found.repair()
    assert done == []
    found.repair(all_of_it=True)
    assert done == ["kube-apiserver", "workflow-controller"]


def test_what_is_not_due_stays_broken(done: list[str]) -> None:
    """And is repaired once."""
    found = striker(done, workflow_controller=-1.0, node=100.0)

    found.repair()
    found.repair()

    assert (done, [one.node for one in found.repairs]) == (["workflow-controller"], ["n1"])


def test_a_controller_that_ended_by_itself_is_started_again() -> None:
    """It does where the API server is lost while it starts; in a cluster it is a Deployment's pod."""
    done: list[str] = []
    found = Striker(voda=installation(done, "workflow-controller"), chance=random.Random(1))

    found.repair(all_of_it=True)

    assert done == ["workflow-controller"]

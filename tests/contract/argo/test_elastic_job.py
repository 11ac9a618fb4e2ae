"""The whole life of the recursive elastic job, step by step, as the real controller lived it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.contract.argo import golden
from tests.contract.argo.elastic_life import ACTS, NAME, elastic_world, reaches, recorded, state
from tests.contract.argo.world import ENDED, World


@pytest.fixture(params=["processes", "engine"])
def world(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[World]:
    """The job, submitted, in one of the worlds."""
    with elastic_world(request.param, tmp_path) as made:
        yield made


def test_elastic_job_lives_as_on_the_real_controller(world: World) -> None:
    """After each of eleven steps phase, progress and every node agree, and in the end all that must."""
    outcome = golden.outcome(NAME)

    for act, step in zip(ACTS, outcome["steps"], strict=True):
        act(world)
        expected = recorded(step)
        reached = reaches(world, expected)

        assert reached or state(world.status) == expected, step["after"]

    assert world.status["phase"] in ENDED
    assert golden.agreed(world.status) == golden.expected(outcome["final"])

"""A world of local mode without its engine: a store with nodes, templates and hand-made jobs."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.unit.cli.world import World


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    """An empty world with two nodes of two slots, and the shipped templates; this test stands in for its engine."""
    made = World(tmp_path / "home")
    made.start()
    yield made
    made.stop()
    made.store.close()

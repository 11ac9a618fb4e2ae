"""What the tests of whole jobs share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.e2e.agents import WarmAgents
from tests.e2e.rig import TRAIN


@pytest.fixture(scope="session")
def agents() -> Iterator[WarmAgents]:
    """Warm agents; warmed up once for all tests."""
    made = WarmAgents(TRAIN)
    yield made
    made.close()

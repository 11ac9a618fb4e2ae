"""What a cluster was asked to be is kept as it was."""

from __future__ import annotations

from pathlib import Path

from tests.cluster import state
from tests.cluster.nodes import parse
from tests.cluster.places import Home
from tests.cluster.state import State


def test_a_state_is_read_as_it_was_written(tmp_path: Path) -> None:
    """Nodes and their labels too; where there is none, there is none."""
    home = Home(folder=tmp_path)
    asked = State(origin="this boot", number=3, nodes=parse("3x2"), has_controller=False)

    before = state.read(home)
    state.write(home, asked)

    assert (before, state.read(home)) == (None, asked)

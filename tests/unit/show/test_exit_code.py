"""What a missed figure does to the exit code of `make show`."""

from __future__ import annotations

import pytest

from tests.show.__main__ import exit_code
from tests.show.registry import Row, at_most, exactly

SLOW = at_most("the way there", 3.0, 2.0, "s")
LONG = at_most("a file", 500, 400, "lines")
WRONG = exactly("exit code", 1, 0)
RIGHT = exactly("exit code", 0, 0)


@pytest.mark.parametrize(
    ("rows", "speed_is_shown", "expected"),
    [
        ([RIGHT], False, 0),
        ([RIGHT, SLOW], False, 1),
        ([RIGHT, SLOW], True, 0),  # a machine shared with others cannot decide on times
        ([RIGHT, LONG], True, 1),
        ([SLOW, WRONG], True, 1),
    ],
)
def test_speed_decides_only_where_it_is_not_merely_shown(rows: list[Row], speed_is_shown: bool, expected: int) -> None:
    """Every missed figure fails, but for times on the clock where they are merely shown."""
    assert exit_code(rows, speed_is_shown=speed_is_shown) == expected

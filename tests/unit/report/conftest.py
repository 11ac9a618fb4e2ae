"""The hand-made world of the command line's tests."""

from tests.unit.cli.conftest import world

__all__ = ["world"]

"""Documents of our own to which nothing is done: what the golden ones leave out."""

from __future__ import annotations

from tests.contract.two_worlds.documents import NAMES, case
from tests.contract.two_worlds.play import Case
from tests.contract.two_worlds.verb_cases import SCRIPTS


def own_cases() -> list[Case]:
    """All of them, in the order of their names: by subject."""
    return [case(name) for name in NAMES if name not in SCRIPTS]

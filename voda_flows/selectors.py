"""Label selectors as kubectl writes them: ``key=value``, ``key!=value``, ``key in (a,b)``, ``key notin (a)``, ``key``.

In: text and an object's labels. Out: whether they fit. A pure value that stores, reports and the command line share.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from scheduler_core.errors import InvalidValue

_NAME = r"[A-Za-z0-9](?:[-A-Za-z0-9_.]*[A-Za-z0-9])?"
_KEY = rf"(?:[a-z0-9](?:[-a-z0-9.]*[a-z0-9])?/)?{_NAME}"
_EQUAL = re.compile(rf"({_KEY})\s*(==|=|!=)\s*({_NAME}|)")
_SET = re.compile(rf"({_KEY})\s+(in|notin)\s*\(([^()]*)\)")
_PRESENT = re.compile(rf"(!?)\s*({_KEY})")
_VALUE = re.compile(rf"(?:{_NAME})?")
_FORMS = "`key=value`, `key!=value`, `key in (a,b)`, `key notin (a,b)`, `key` or `!key`"


@dataclass(frozen=True, slots=True, kw_only=True)
class Requirement:
    """One part of a selector.

    Attributes:
        key: The label's key.
        values: The values meant, None for any.
        wanted: Whether the label is to have one of them; else it must not, and may be missing, as kubectl has it.
    """

    key: str
    values: frozenset[str] | None
    wanted: bool

    def fits(self, labels: Mapping[str, str]) -> bool:
        """Whether these labels are as required."""
        has = self.key in labels and (self.values is None or labels[self.key] in self.values)
        return has is self.wanted


@dataclass(frozen=True, slots=True)
class Selector:
    """What labels must be like; an empty selector fits all.

    Attributes:
        requirements: All of them must hold.
    """

    requirements: tuple[Requirement, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.requirements)

    def fits(self, labels: Mapping[str, str] | None) -> bool:
        """Whether an object with these labels is meant."""
        return all(requirement.fits(labels or {}) for requirement in self.requirements)


def parse_selector(text: str) -> Selector:
    """The selector that a text means.

    Args:
        text: Parts joined by commas, all of which must hold; empty for everything.

    Raises:
        InvalidValue: A part is none of the forms.

    >>> parse_selector("team in (a,b),!old").fits({"team": "a"})
    True
    >>> parse_selector("team!=a").fits({})
    True
    """
    return Selector(tuple(_requirement(part.strip()) for part in _parts(text) if part.strip()))


def _parts(text: str) -> Iterator[str]:
    """The text at its commas, but for those in parentheses."""
    depth, start = 0, 0
    for place, letter in enumerate(text):
        depth += (letter == "(") - (letter == ")")
        if letter == "," and depth == 0:
            yield text[start:place]
            start = place + 1
    yield text[start:]


def _requirement(part: str) -> Requirement:
    """One part."""
    if found := _EQUAL.fullmatch(part):
        return Requirement(key=found[1], values=frozenset({found[3]}), wanted=found[2] != "!=")
    if found := _SET.fullmatch(part):
        values = [value.strip() for value in found[3].split(",")]
        if any(values) and all(_VALUE.fullmatch(value) for value in values):
            return Requirement(key=found[1], values=frozenset(values), wanted=found[2] == "in")
    if found := _PRESENT.fullmatch(part):
        return Requirement(key=found[2], values=None, wanted=not found[1])
    raise InvalidValue(f"-l: expected {_FORMS} (several joined by commas), found `{part}`")

"""Template variables: ``{{name}}`` and ``{{=expression}}`` in any text of a document.

In: a value of a document (text, list or map) and the variables that are known; out: the value with the known ones
replaced, as raw text, and everything else as it was: what is not known yet (a later step's output, ``{{item}}``) is
replaced by whoever knows it. Nothing that comes out is looked through again.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from voda_flows.local.argo.expressions import UnknownName, evaluate
from voda_flows.local.argo.names import text

OPENING, CLOSING = "{{", "}}"

Variables = Mapping[str, Any]


@lru_cache(maxsize=4096)
def pieces(source: str) -> tuple[tuple[str, str], ...]:
    """The text as (plain text, content of the tag behind it) in order; the last has an empty tag.

    >>> pieces("a {{x}} b")
    (('a ', 'x'), (' b', ''))
    """
    found, position = [], 0
    # Not by a regular expression: one looks for the end anew at every brace of a text that has none, which takes
    # minutes for a text of braces alone.
    while (start := source.find(OPENING, position)) >= 0 and (end := source.find(CLOSING, start + 2)) >= 0:
        found.append((source[position:start], source[start + 2 : end]))
        position = end + 2
    found.append((source[position:], ""))
    return tuple(found)


def tags(source: str) -> tuple[str, ...]:
    """What stands between the braces of each tag, stripped; ``=...`` for expressions."""
    return tuple(tag.strip() for _, tag in pieces(source)[:-1])


def tags_within(value: Any) -> list[str]:  # noqa: ANN401 - any value of a document
    """All tags in a document's value, in the order in which they stand there."""
    if isinstance(value, str):
        return list(tags(value)) if "{{" in value else []
    if isinstance(value, Mapping):
        return [tag for key, part in value.items() for tag in (*tags_within(key), *tags_within(part))]
    if isinstance(value, list | tuple):
        return [tag for part in value for tag in tags_within(part)]
    return []


def replace(source: str, variables: Variables) -> str:
    """The text with every tag replaced whose variables are all known.

    Raises:
        InvalidValue: An expression is wrong, or uses what local mode does not know.
    """
    if "{{" not in source:
        return source
    return "".join(plain + _tag_value(tag, variables) for plain, tag in pieces(source)[:-1]) + pieces(source)[-1][0]


def substitute(value: Any, variables: Variables) -> Any:  # noqa: ANN401 - any value of a document
    """A document's value with the known tags of all its texts replaced; parts without tags are shared, not copied."""
    if isinstance(value, str):
        return replace(value, variables)
    if isinstance(value, Mapping):
        return {replace(key, variables): substitute(part, variables) for key, part in value.items()}
    if isinstance(value, list):
        return [substitute(part, variables) for part in value]
    return value


def _tag_value(tag: str, variables: Variables) -> str:
    name = tag.strip()
    if name.startswith("="):
        try:
            return text(evaluate(name[1:], variables))
        except UnknownName:
            return "{{" + tag + "}}"
    if name in variables:
        return text(variables[name])
    return "{{" + tag + "}}"

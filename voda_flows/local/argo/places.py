"""Where in a document a fault stands: the ``path`` of an ``InvalidValue``, put together on the way out of the checks.

Argo's words name a place in their own way (``templates.main.steps[0].a``); the path is that of the document, with
which the line in the user's file is found.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from scheduler_core.errors import InvalidValue

_ROOTS = ("spec", "metadata")


@contextmanager
def at(path: str) -> Iterator[None]:
    """Put a path before that of whatever is refused inside; a path from the document's root stays as it is."""
    try:
        yield
    except InvalidValue as wrong:
        if not wrong.path.startswith(_ROOTS):
            wrong.path = joined(path, wrong.path)
        raise


@contextmanager
def elsewhere() -> Iterator[None]:
    """Forget the path of what is refused inside: it stands in another document than the user's."""
    try:
        yield
    except InvalidValue as wrong:
        wrong.path = ""
        raise


def joined(path: str, rest: str) -> str:
    """Two paths as one."""
    return f"{path}.{rest}" if path and rest and not rest.startswith("[") else path + rest


def place_of_text(value: Any, text: str) -> str:  # noqa: ANN401 - any part of a document
    """The path, within a part of a document, of the first text that holds another; empty where none does.

    >>> place_of_text({"args": ["a", "b {{x}}"]}, "{{x}}")
    'args[1]'
    """
    rows: list[tuple[str, Any]] = []
    if isinstance(value, Mapping):
        rows = [(str(name), part) for name, part in value.items()]
    elif isinstance(value, list | tuple):
        rows = [(f"[{index}]", part) for index, part in enumerate(value)]
    for name, part in rows:
        if text in name or (isinstance(part, str) and text in part):
            return name
        if rest := place_of_text(part, text):
            return joined(name, rest)
    return ""

"""JSON patches (RFC 6902) on documents: the operations ``add``, ``replace``, ``remove`` and ``test``.

Pure: documents in, a changed copy out. ``kustomize.py`` calls it for the patches of our kustomizations.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable
from typing import Any

from scheduler_core.errors import InvalidValue
from voda_flows.objects import Object

_OPERATIONS = ("add", "remove", "replace", "test")


def json_patch(document: Object, operations: Iterable[Object], *, where: str) -> Object:
    """A document with operations carried out in their order.

    Args:
        document: Stays as it is.
        operations: Mappings with ``op``, ``path`` and, but for ``remove``, ``value``.
        where: Where they stand, for messages.

    Returns:
        The changed copy.

    Raises:
        InvalidValue: An operation is none, its path leads nowhere, or a ``test`` finds something else.

    >>> json_patch({"a": [1]}, [{"op": "add", "path": "/a/-", "value": 2}], where="x")
    {'a': [1, 2]}
    """
    changed = copy.deepcopy(document)
    for operation in operations:
        name, path = operation.get("op"), str(operation.get("path") or "")
        if name not in _OPERATIONS or not path.startswith("/"):
            raise InvalidValue(f"{where}: expected op out of {', '.join(_OPERATIONS)} and a path, got {operation!r}")
        try:
            _carry_out(changed, operation, path)
        except (KeyError, IndexError, ValueError, TypeError) as wrong:
            raise InvalidValue(f"{where}: expected {path} to be in the document, it is not ({wrong!r})") from wrong
        except _Different as wrong:
            raise InvalidValue(f"{where}: expected {operation.get('value')!r} at {path}, found {wrong}") from wrong
    return changed


class _Different(Exception):
    """A test that found something else."""


def _carry_out(document: Object, operation: Object, path: str) -> None:
    *parents, last = [part.replace("~1", "/").replace("~0", "~") for part in path[1:].split("/")]
    place: Any = document
    for part in parents:
        place = place[int(part)] if isinstance(place, list) else place[part]
    name, value = operation["op"], copy.deepcopy(operation.get("value"))
    if name == "add" and isinstance(place, list):
        place.insert(_index(place, last), value)
    elif name == "add":
        place[last] = value
    else:
        _on_existing(place, int(last) if isinstance(place, list) else last, name, value)


def _on_existing(place: Any, key: Any, name: str, value: Any) -> None:  # noqa: ANN401 - any part of a document
    """Replace, remove or test what has to be there."""
    found = place[key]
    if name == "replace":
        place[key] = value
    elif name == "remove":
        del place[key]
    elif found != value:
        raise _Different(repr(found))


def _index(place: list[Any], text: str) -> int:
    """Where an entry is to be inserted; ``-`` is the end."""
    index = len(place) if text == "-" else int(text)
    if not 0 <= index <= len(place):
        raise IndexError(text)
    return index

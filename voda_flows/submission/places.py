"""A document that knows where it was read: the line and column of each of its fields, so that a fault can name them.

In: documents with their places, and faults with the path of what is wrong; out: faults that begin with
``job.yaml:14:9``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from scheduler_core.errors import InvalidValue
from voda_flows.objects import Object

Path = tuple[str | int, ...]
Place = tuple[int, int] | str
"""Line and column, from 1; or what else a value came from, as ``-p epochs``."""
_INDEX = re.compile(r"\[(\d+)\]")


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """One document of a file.

    Attributes:
        body: The document.
        source: Name of the file; empty for a document that was made, not read.
        places: Where each field's name, and each entry of a list, stands.
    """

    body: Object
    source: str = ""
    places: Mapping[Path, Place] = field(default_factory=dict)

    @property
    def kind(self) -> str:
        """Its kind, as written."""
        return str(self.body.get("kind"))

    @property
    def title(self) -> str:
        """What it is called in messages."""
        meta = self.body.get("metadata")
        named = meta if isinstance(meta, dict) else {}
        return f"{self.kind} {named.get('name') or named.get('generateName') or '(no name)'}"

    def place(self, path: str) -> str:
        """Where a path stands: ``job.yaml:14:9``; of one that is not written, what lies nearest above it."""
        if not self.source:
            return ""
        parts = tuple(_parts(self.body, path))
        known = next((parts[:end] for end in range(len(parts), -1, -1) if parts[:end] in self.places), ())
        place = self.places.get(known, (1, 1))
        return place if isinstance(place, str) else f"{self.source}:{place[0]}:{place[1]}"

    def fault(self, wrong: InvalidValue, *, who: str = "") -> InvalidValue:
        """The fault with its place and its path before it.

        Args:
            wrong: What a check said.
            who: Name of the document, where the check does not say it.

        Returns:
            The same, to be raised ``from`` it.
        """
        said = str(wrong)
        if wrong.path and wrong.path not in said:
            said = f"{wrong.path}: {said}"
        parts = [self.place(wrong.path), who if who and who not in said else "", said]
        return InvalidValue(": ".join(part for part in parts if part), path=wrong.path)


def _parts(body: object, path: str) -> Iterator[str | int]:
    """The steps of a written path, as far as the document goes; keys may have dots in them."""
    while path:
        found = _INDEX.match(path)
        if found and isinstance(body, list) and int(found[1]) < len(body):
            step: str | int = int(found[1])
            body, path = body[int(found[1])], path[found.end() :].removeprefix(".")
        elif isinstance(body, dict) and (key := _key(body, path)) is not None:
            step, body, path = key, body[key], path[len(key) :].removeprefix(".")
        else:
            return
        yield step


def _key(body: Mapping[str, object], path: str) -> str | None:
    """The longest key that the path begins with."""
    fitting = [key for key in body if path == key or path.startswith((f"{key}.", f"{key}["))]
    return max(fitting, key=len, default=None)

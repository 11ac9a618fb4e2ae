"""Files of documents as the command line names them: read, or refused with what was probably meant."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from pathlib import Path

import click

from scheduler_core.errors import InvalidValue
from voda_flows.cli import output
from voda_flows.submission.documents import MAX_BYTES, decoded, parse
from voda_flows.submission.places import Document


def read(names: Sequence[str]) -> list[Document]:
    """The documents of files in order; what other readers would take otherwise is said on stderr.

    Args:
        names: Paths, and ``-`` for standard input.

    Raises:
        InvalidValue: One cannot be read, or has no document.
    """
    return [document for name in names for document in _read(name)]


def _read(name: str) -> list[Document]:
    source = "standard input" if name == "-" else name
    try:
        with click.open_file(name, "rb") as stream:
            content = stream.read(MAX_BYTES + 1)
    except OSError as wrong:
        raise InvalidValue(
            f"{source}: expected a file to read, found: {wrong.strerror or wrong}{_near_file(name)}"
        ) from wrong
    documents, remarks = parse(decoded(content, source=source), source=source)
    for remark in remarks:
        output.story(f"warning: {remark}")
    if not documents:
        found = "only comments" if content.strip() else "an empty file"
        raise InvalidValue(
            f"{source}:1:1: expected at least one document, found {found}\nsee templates/examples for one that works"
        )
    return documents


def _near_file(name: str) -> str:
    """A suggestion to end a message with, where the folder has a file of nearly this name."""
    path = Path(name)
    siblings = [entry.name for entry in path.parent.iterdir() if entry.is_file()] if path.parent.is_dir() else []
    nearest = difflib.get_close_matches(path.name, siblings, n=1)
    return f"; did you mean '{path.with_name(nearest[0])}'?" if nearest and not path.exists() else ""

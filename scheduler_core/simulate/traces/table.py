"""Tables of numbers as text with commas: the header must be the one expected, and errors name the line."""

from __future__ import annotations

from collections.abc import Iterator

from scheduler_core.errors import InvalidValue


def rows(text: str, header: tuple[str, ...], *, name: str) -> Iterator[tuple[int, list[str]]]:
    """Rows of a table with their line numbers, the header being line 1; empty lines are left out.

    Args:
        text: The file's text.
        header: Names of its columns, all and in order.
        name: What to call the file in errors.

    Raises:
        InvalidValue: Another header, or a row with another number of fields.
    """
    lines = text.splitlines()
    if not lines or tuple(lines[0].split(",")) != header:
        raise InvalidValue(f"{name}, line 1: expected header {','.join(header)}, got {''.join(lines[:1])!r}")
    for number, line in enumerate(lines[1:], start=2):
        if not line:
            continue
        fields = line.split(",")
        if len(fields) != len(header):
            raise InvalidValue(f"{name}, line {number}: expected {len(header)} fields, got {line!r}")
        yield number, fields


def numbers(fields: list[str], *, name: str, line: int) -> tuple[float, ...]:
    """Fields as numbers.

    Raises:
        InvalidValue: One of them is none.
    """
    try:
        return tuple(float(field) for field in fields)
    except ValueError as strange:
        raise InvalidValue(f"{name}, line {line}: expected numbers, got {','.join(fields)!r}") from strange

"""Aligned columns in the manner of kubectl: no frames, so that pipes can read them; colours only on a terminal."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence

import click

#: Colour of a phase on a terminal.
COLOURS: Mapping[str, str] = {
    "Queued": "yellow",
    "Pending": "yellow",
    "Starting": "cyan",
    "Running": "blue",
    "Stopping": "magenta",
    "Succeeded": "green",
    "Failed": "red",
    "Error": "red",
}
_GAP = "   "


def show(headers: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print columns on stdout; on a terminal, lines end at its edge.

    Args:
        headers: One word per column.
        rows: Text per column.
    """
    width = click_width() if sys.stdout.isatty() else None
    for number, line in enumerate(align(headers, rows, width=width)):
        click.echo(_coloured(line, rows[number - 1]) if number and _colours() else line)


def align(headers: Sequence[str], rows: Sequence[Sequence[str]], *, width: int | None = None) -> list[str]:
    """Columns as lines, the headers first.

    Args:
        headers: One word per column.
        rows: Text per column.
        width: Cut lines at this many characters; None for never.

    Returns:
        The lines.

    >>> align(["NAME", "AGE"], [["digits", "3s"], ["x", "12m"]])
    ['NAME     AGE', 'digits   3s', 'x        12m']
    """
    table = [list(headers), *[[_one_line(cell) for cell in row] for row in rows]]
    widths = [max(len(row[column]) for row in table) for column in range(len(headers))]
    lines = [_GAP.join(cell.ljust(size) for cell, size in zip(row, widths, strict=True)).rstrip() for row in table]
    return [line if width is None or len(line) <= width else f"{line[: width - 1]}…" for line in lines]


def click_width() -> int:
    """Columns of the terminal, 80 where nobody says."""
    try:
        return int(os.environ["COLUMNS"])
    except (KeyError, ValueError):
        try:
            return os.get_terminal_size(sys.stdout.fileno()).columns or 80
        except (OSError, ValueError):
            return 80


def _colours() -> bool:
    """Whether stdout is a terminal whose user wants colours."""
    return sys.stdout.isatty() and not os.environ.get("NO_COLOR")


def _coloured(line: str, row: Sequence[str]) -> str:
    """A line with its first phase word coloured."""
    for cell in row:
        if cell in COLOURS and cell in line:
            return line.replace(cell, click.style(cell, fg=COLOURS[cell]), 1)
    return line


def _one_line(cell: str) -> str:
    """A cell without line breaks; an empty one as a dash, so that columns can be counted."""
    return " ".join(cell.split()) or "-"

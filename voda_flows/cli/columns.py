"""Aligned columns in the manner of kubectl: no frames, so that pipes can read them; colours only on a terminal.

On a terminal that is too narrow, what matters least goes: long texts are shortened first, then columns are left out
from the right, and at last names are shortened in the middle. A pipe gets everything.
"""

from __future__ import annotations

import os
import sys
import textwrap
from collections.abc import Mapping, Sequence
from typing import Final

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
_GAP: Final = "   "
_NARROW_GAP: Final = " "
#: A text that is shortened keeps as much as this; less says nothing.
_LEAST: Final = 12
_LEAST_NAME: Final = 8
_LEAST_TEXT: Final = 24
#: Columns that stay to the last: who, and how it is.
_KEPT: Final = 2


def show(headers: Sequence[str], rows: Sequence[Sequence[str]], *, wrap: bool = False) -> None:
    """Print columns on stdout; on a terminal, lines end at its edge.

    Args:
        headers: One word per column, what matters most first.
        rows: Text per column.
        wrap: Whether the last column is to be read whole: it goes on in further lines.
    """
    width = click_width() if sys.stdout.isatty() else None
    phases = COLOURS if has_colours() else {}
    for number, line in enumerate(align(headers, rows, width=width, wrap=wrap)):
        click.echo(_coloured(line, phases) if number else line)


def facts(values: Mapping[str, str]) -> None:
    """Print names and values, a pair a line; on a terminal, a long value goes on below itself.

    Args:
        values: By name; pairs without a value are left out.
    """
    size = max(map(len, values)) + 3
    width = click_width() if sys.stdout.isatty() else None
    for name, value in values.items():
        if value:
            wrapped = [value] if width is None else textwrap.wrap(value, max(_LEAST, width - size))
            click.echo(f"{name + ':':<{size}}{wrapped[0]}")
            for more in wrapped[1:]:
                click.echo(f"{'':{size}}{more}")


def align(
    headers: Sequence[str], rows: Sequence[Sequence[str]], *, width: int | None = None, wrap: bool = False
) -> list[str]:
    """Columns as lines, the headers first.

    Args:
        headers: One word per column, what matters most first.
        rows: Text per column.
        width: No line is longer, where that is possible; None for no bound.
        wrap: Whether the last column goes on in further lines where it would be cut.

    Returns:
        The lines.

    >>> align(["NAME", "AGE"], [["digits", "3s"], ["x", "12m"]])
    ['NAME     AGE', 'digits   3s', 'x        12m']
    >>> align(["NAME", "STATUS", "AGE"], [["digits", "Running", "3s"]], width=16)
    ['NAME   STATUS', 'digits Running']
    """
    table = [list(headers), *[[_one_line(cell) for cell in row] for row in rows]]
    widths = [max(len(row[column]) for row in table) for column in range(len(headers))]
    gap = _GAP
    if width is not None and sum(widths) + len(gap) * (len(widths) - 1) > width:
        gap = _NARROW_GAP
        if wrap:
            return _wrapped(table, widths, width)
        widths = fitted(widths, [len(header) for header in headers], width, gap=len(gap))
    return [_line(row, widths, gap) for row in table]


def _line(row: Sequence[str], widths: Sequence[int], gap: str) -> str:
    """A row; names are cut in the middle, because what is made in numbers differs at the end."""
    cells = (cut(row[column], size, middle=column == 0).ljust(size) for column, size in enumerate(widths))
    return gap.join(cells).rstrip()


def _wrapped(table: Sequence[Sequence[str]], widths: Sequence[int], width: int) -> list[str]:
    """Rows whose last column goes on below itself; of the others, the rightmost give way until it has room."""
    last, kept = len(widths) - 1, list(range(len(widths) - 1))
    while len(kept) > 1 and width - sum(widths[column] + 1 for column in kept) < _LEAST_TEXT:
        kept.pop()
    indent = sum(widths[column] + 1 for column in kept)
    lines = []
    for row in table:
        first, *more = textwrap.wrap(row[last], max(_LEAST, width - indent)) or ["-"]
        lines.append(f"{''.join(row[column].ljust(widths[column] + 1) for column in kept)}{first}")
        lines += [f"{'':{indent}}{text}" for text in more]
    return [line.rstrip() for line in lines]


def fitted(widths: Sequence[int], least: Sequence[int], width: int, *, gap: int) -> list[int]:
    """Widths of the columns that stay, so that a line fits.

    Args:
        widths: What each column wants.
        least: Widths of the headers: no column is narrower.
        width: Room for a line.
        gap: Room between two columns.

    Returns:
        A width for each column that stays; those left out were the rightmost.

    >>> fitted([30, 9, 6, 40], [4, 6, 3, 7], 60, gap=1)
    [30, 9, 6, 12]
    >>> fitted([30, 9, 6, 40], [4, 6, 3, 7], 40, gap=1)
    [30, 9]
    """
    kept = list(widths)
    while True:
        over = sum(kept) + gap * (len(kept) - 1) - width
        if over <= 0:
            return kept
        last = len(kept) - 1
        slack = max(0, kept[last] - max(_LEAST, least[last])) if last >= _KEPT else 0
        if slack >= over:
            kept[last] -= over
            return kept
        if last < _KEPT:
            break
        kept.pop()
    kept[0] = max(min(_LEAST_NAME, kept[0]), kept[0] - over)
    return kept


def cut(text: str, width: int, *, middle: bool = False) -> str:
    """A text of at most that width; where it is too long, an ellipsis says so.

    >>> cut("abcdef", 4), cut("abcdef", 5, middle=True), cut("abc", 3)
    ('abc…', 'ab…ef', 'abc')
    """
    if len(text) <= width:
        return text
    if middle:
        tail = (width - 1) // 2
        return f"{text[: width - 1 - tail]}…{text[len(text) - tail :]}"
    return f"{text[: max(0, width - 1)]}…"


def click_width() -> int:
    """Columns of the terminal, 80 where nobody says."""
    try:
        return int(os.environ["COLUMNS"]) or 80
    except (KeyError, ValueError):
        try:
            return os.get_terminal_size(sys.stdout.fileno()).columns or 80
        except (OSError, ValueError):
            return 80


def is_smart() -> bool:
    """Whether stdout is a terminal that can move its cursor and show colours."""
    return sys.stdout.isatty() and os.environ.get("TERM", "") not in ("dumb", "unknown")


def has_colours() -> bool:
    """Whether stdout is a terminal whose user wants colours (https://no-color.org)."""
    return is_smart() and not os.environ.get("NO_COLOR")


def _coloured(line: str, phases: Mapping[str, str]) -> str:
    """A line with its first phase word coloured."""
    for word in line.split():
        if word in phases:
            return line.replace(word, click.style(word, fg=phases[word]), 1)
    return line


def _one_line(cell: str) -> str:
    """A cell without line breaks; an empty one as a dash, so that columns can be counted."""
    return " ".join(cell.split()) or "-"

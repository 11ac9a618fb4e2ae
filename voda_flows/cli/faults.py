"""How a fault is said: one line on stderr, with what to do in the lines after it."""

from __future__ import annotations

import click

from scheduler_core.errors import VodaError


def say(wrong: VodaError) -> None:
    """Say what went wrong in one line; further lines of the message are hints."""
    first, *more = str(wrong).splitlines() or [type(wrong).__name__]
    click.echo(f"error: {first}", err=True)
    for line in more:
        click.echo(line if line.startswith((" ", "hint:")) else f"hint: {line}", err=True)

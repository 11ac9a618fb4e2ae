"""``voda version``: what runs here, read from packages' own descriptions; nothing is imported for it."""

from __future__ import annotations

import platform
from importlib import metadata
from typing import Final

import click

from voda_flows.cli import output
from voda_flows.cli.verbs import verb
from voda_flows.local.migrations import MIGRATIONS

#: Packages that training needs, and that this machine may lack.
_PACKAGES: Final = ("horovod", "torch")


@verb(
    "voda version",
    "voda version -o json",
)
@click.option("-o", "--output", "form", type=click.Choice(("json", "yaml")), help="How to print the result.")
def command(form: str | None) -> None:
    """Print the versions of Voda, Python, Horovod and PyTorch, and of the schema of the local state."""
    found: dict[str, str | int | None] = {
        "voda": _installed("voda"),
        "python": platform.python_version(),
        **{name: _installed(name) for name in _PACKAGES},
        "schema": len(MIGRATIONS),
    }
    if form:
        output.data(dict(found), form)
        return
    for name, value in found.items():
        click.echo(f"{name:<8} {'not installed' if value is None else value}")


def _installed(package: str) -> str | None:
    """The version of a package, None where there is none."""
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None

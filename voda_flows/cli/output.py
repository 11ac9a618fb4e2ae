"""Objects on stdout in the forms that ``-o`` names."""

from __future__ import annotations

import json
from collections.abc import Sequence

import click

from voda_flows.objects import Object
from voda_flows.yaml_text import dump_yaml


def data(document: Object, form: str) -> None:
    """Print one document.

    Args:
        document: What to print.
        form: ``json`` or ``yaml``.
    """
    if form == "json":
        click.echo(json.dumps(document, indent=2, ensure_ascii=False))
    else:
        click.echo(dump_yaml([document]), nl=False)


def objects(found: Sequence[Object], form: str) -> None:
    """Print objects as kubectl does: several become a ``List``.

    Args:
        found: The objects.
        form: ``name``, ``json`` or ``yaml``.
    """
    if form == "name":
        for body in found:
            click.echo(body["metadata"]["name"])
        return
    data({"apiVersion": "v1", "kind": "List", "items": list(found)}, form)


def story(line: str) -> None:
    """Say on stderr what is going on."""
    click.echo(line, err=True)

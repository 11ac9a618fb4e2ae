"""``voda up``: nodes, engine and scheduler on this machine."""

from __future__ import annotations

from pathlib import Path

import click

from scheduler_core.errors import InvalidValue
from voda_flows.cli import output
from voda_flows.cli.names import SETTING
from voda_flows.cli.options import home_option, local_only
from voda_flows.cli.verbs import verb
from voda_flows.control.settings import check, configure
from voda_flows.local import up as local
from voda_flows.worlds import open_local


@verb(
    "voda up",
    "voda up --nodes 2x2",
    "voda up --nodes nodes.yaml --set decide_interval_s=10",
)
@click.option("--nodes", metavar="NxM|FILE", help="N nodes with M GPU slots each, or a YAML file.  [default: 2x2]")
@click.option(
    "--set", "settings", type=SETTING, multiple=True, metavar="K=V", help="Set one of the scheduler's settings."
)
@home_option
@local_only
def command(home: Path, nodes: str | None, settings: tuple[str, ...]) -> None:
    """Start virtual nodes, the engine and the scheduler on this machine; what runs already is kept.

    The engine goes on in the background until `voda down`.
    """
    values, wanted = dict(_pair(text) for text in settings), local.read_nodes(nodes) if nodes else None
    check(values, where="--set")  # before the store is opened, which would leave a world behind
    configure(open_local(home), values, where="--set")
    found = local.up(home, wanted)
    output.story("started" if found.started else "was up already")
    if found.scheduler:
        output.story(f"scheduler: {found.scheduler}")
    click.echo(f"nodes {', '.join(found.nodes)}")


def _pair(text: str) -> tuple[str, str]:
    """A key and its value."""
    key, sign, value = text.partition("=")
    if not sign:
        raise InvalidValue(f"--set: expected `setting=value`, found `{text}`")
    return key, value

"""``voda nodes``: machines, their slots and who holds them."""

from __future__ import annotations

from collections.abc import Sequence

import click

from scheduler_core.errors import NotFound
from voda_flows.cli import columns, output, snapshot
from voda_flows.cli.names import NODE
from voda_flows.cli.options import Shared, shared_options
from voda_flows.cli.verbs import verb
from voda_flows.config import near_miss
from voda_flows.objects import Object


@verb(
    "voda nodes",
    "voda nodes n0 -o wide",
)
@click.argument("names", type=NODE, metavar="[NODE]...", nargs=-1)
@shared_options()
def command(shared: Shared, names: tuple[str, ...]) -> None:
    """List nodes: how many GPU slots each has, how many are free, and which job holds the others."""
    store = shared.store()
    there = store.list("Node")
    nodes = [_find(there, name) for name in names] or there
    if shared.output in ("name", "json", "yaml"):
        output.objects(nodes, shared.output)
        return
    views = [view for view in snapshot.nodes_now(shared.world) if not names or view.name in names]
    headers, rows = ["NAME", "SLOTS", "FREE", "HELD BY"], []
    for view in views:
        held = [holder or "free" for holder in view.holders]
        state = [] if view.ready else ["takes nothing new"]
        rows.append([view.name, str(len(held)), str(view.holders.count("")), ", ".join([*held, *state])])
    if shared.output == "wide":
        headers.append("LABELS")
        for row, view in zip(rows, views, strict=True):
            row.append(",".join(f"{key}={value}" for key, value in sorted(view.labels.items())))
    columns.show(headers, rows)


def _find(there: Sequence[Object], name: str) -> Object:
    """A node of the list, which is all that the right to list gives; or which one was probably meant."""
    by_name = {node["metadata"]["name"]: node for node in there}
    if name not in by_name:
        raise NotFound(f"no node {name!r}{near_miss(name, by_name) if by_name else '; there is none'}")
    return by_name[name]

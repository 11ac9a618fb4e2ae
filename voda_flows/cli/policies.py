"""``voda policies``: the allocation policies that can be set, where they are from and what they look at."""

from __future__ import annotations

import click

from scheduler_core.allocate.registry import Described, described
from scheduler_core.errors import Forbidden
from voda_flows.cli import columns, output
from voda_flows.cli.options import Shared, shared_options
from voda_flows.cli.snapshot import settings_of
from voda_flows.cli.verbs import verb
from voda_flows.objects import Object


@verb(
    "voda policies",
    "voda policies -o json",
)
@shared_options()
def command(shared: Shared) -> None:
    """List allocation policies: source, what each looks at, whether it resizes jobs; a `*` marks the one that is set.

    Set one with `voda up --set policy=NAME`, or on a cluster in the ConfigMap `voda-config`.
    """
    found = described()
    if shared.output == "name":
        for one in found:
            click.echo(one.name)
        return
    chosen = _chosen(shared)
    if shared.is_data:
        output.data({"items": [_document(one, chosen) for one in found]}, shared.output)
        return
    columns.show(
        ["NAME", "ELASTIC", "SOURCE", "NEEDS", "DOES"],
        [
            [
                f"{one.name}{'*' if one.name == chosen else ''}",
                {True: "yes", False: "no", None: "-"}[one.is_elastic],
                one.source,
                ", ".join(need.value for need in one.needs) or "-",
                one.summary,
            ]
            for one in found
        ],
    )


def _chosen(shared: Shared) -> str:
    """The policy that is set; empty where one may not see it."""
    try:
        return settings_of(shared.world).policy
    except Forbidden:
        return ""


def _document(one: Described, chosen: str) -> Object:
    """A policy for programs."""
    return {
        "name": one.name,
        "source": one.source,
        "needs": [need.value for need in one.needs],
        "elastic": one.is_elastic,
        "summary": one.summary,
        "set": one.name == chosen,
    }

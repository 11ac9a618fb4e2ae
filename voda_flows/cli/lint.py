"""``voda lint``: what ``voda submit`` would refuse, said without submitting anything; with ``--offline``, anywhere."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import click

from scheduler_core.errors import InvalidValue
from voda_flows.cli import files, output
from voda_flows.cli.faults import say
from voda_flows.cli.options import Shared, shared_options
from voda_flows.cli.verbs import verb
from voda_flows.submission.checks import faults, remarks_on
from voda_flows.submission.places import Document
from voda_flows.submission.prepare import Wishes, prepared
from voda_flows.submission.world import offline_world, world_of


@verb(
    "voda lint templates/examples/digits.yaml --offline",
    "voda lint jobs/*.yaml",
    "cat job.yaml | voda lint -",
)
@click.argument("names", metavar="FILE|-...", nargs=-1, required=True)
@click.option("--offline", is_flag=True, help="Ask no world: default settings, shipped templates, any GPUs.")
@shared_options(output=False)
def command(shared: Shared, names: tuple[str, ...], offline: bool) -> None:
    """Check Workflow documents as submit would, and create nothing.

    The first fault of each document is said with its file, line and column. Exit 2 when there is one.
    """
    context = click.get_current_context()
    explicit = context.get_parameter_source("namespace") is not click.core.ParameterSource.DEFAULT
    wishes = Wishes.of(
        parameters=(), namespace=shared.namespace if explicit else None, otherwise=shared.world.namespace
    )
    world = offline_world() if offline else world_of(shared.world)
    found, ready = list[InvalidValue](), dict[str, list[Document]]()
    for name in names:
        try:
            ready[name] = prepared(files.read([name]), wishes, workdir=shared.workdir)
        except InvalidValue as wrong:
            found.append(wrong)
    documents = [document for right in ready.values() for document in right]
    found += faults(documents, world)
    for each in found:
        say(each)
    if found:
        context.exit(InvalidValue.exit_code)
    for remark in remarks_on(documents, world):
        output.story(f"warning: {remark}")
    for name, right in ready.items():
        click.echo(f"{name}: {_counted(right)}, nothing to object to")


def _counted(documents: Sequence[Document]) -> str:
    """What a file holds: ``2 Workflow, 1 CronWorkflow``."""
    return ", ".join(f"{number} {kind}" for kind, number in Counter(one.kind for one in documents).items())

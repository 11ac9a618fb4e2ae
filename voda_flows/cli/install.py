"""``voda install``: Voda on a cluster, as ``kubectl apply -k`` would put it there, and the scheduler started."""

from __future__ import annotations

from collections.abc import Iterable

import click

from voda_flows.cli import output
from voda_flows.cli.verbs import verb
from voda_flows.install import applying, starting
from voda_flows.install.images import PARTS, Part, images
from voda_flows.install.overlays import ONE_NAMESPACE, OVERLAYS, Wanted, documents
from voda_flows.kube.api import Api
from voda_flows.kube.cluster import Cluster
from voda_flows.objects import Object
from voda_flows.worlds import open_api
from voda_flows.yaml_text import dump_yaml

_OVERLAYS = "; ".join(f"{name}: {said}" for name, said in OVERLAYS.items())


@verb(
    "voda install --dry-run",
    "voda install -n ml --image registry.example.com/voda:0.1.0 --training-image registry.example.com/voda-train:0.1.0",
    "voda install --overlay cluster -n team-a -n team-b",
    "voda install -o yaml > voda.yaml",
)
@click.option(
    "-n",
    "--namespace",
    "namespaces",
    multiple=True,
    metavar="NAME",
    help="Namespace of jobs; with --overlay cluster any number.  [default: the overlay's]",
)
@click.option(
    "--overlay",
    default=ONE_NAMESPACE,
    show_default=True,
    metavar="NAME|FOLDER",
    help=f"What is installed, or a folder with a kustomization of your own. {_OVERLAYS}.",
)
@click.option("--image", default="", metavar="IMAGE", help="Image of the scheduler.  [default: what is there]")
@click.option(
    "--training-image",
    default="",
    metavar="IMAGE",
    help="Image of jobs that name none.  [default: what is there, at first the overlay's]",
)
@click.option("--dry-run", "is_trial", is_flag=True, help="Ask the API server what it would do; change nothing.")
@click.option("--force", "is_forced", is_flag=True, help="Take over fields that somebody else has set otherwise.")
@click.option(
    "-o",
    "--output",
    "form",
    type=click.Choice(("json", "yaml")),
    help="Print the documents, ask no cluster and apply nothing.",
)
@click.option("--kubeconfig", default="", metavar="FILE", help="Kubeconfig to use.  [default: as kubectl]")
@click.option("--context", default="", metavar="NAME", help="Context in it.  [default: its current one]")
def command(*, form: str | None, is_trial: bool, is_forced: bool, **more: str | tuple[str, ...]) -> None:
    """Install or bring up to date Voda on a cluster that has Argo Workflows, and start the scheduler.

    Settings in the ConfigMap voda-config stay as they are, and so do images that are there, unless others are named.
    """
    wanted = _wanted(more)
    found = documents(wanted)
    if form is not None:
        _print(found, form)
        return
    api = open_api(Cluster(kubeconfig=str(more["kubeconfig"]), context=str(more["context"])))
    try:
        install(api, found, wanted.staying, applying.Manner(is_trial=is_trial, is_forced=is_forced))
    finally:
        api.close()


def install(api: Api, bodies: Iterable[Object], staying: Iterable[Part], manner: applying.Manner) -> None:
    """Install on a cluster, and say what becomes of each document and of the scheduler.

    Args:
        api: The cluster's API server.
        bodies: The documents that are wanted.
        staying: What keeps the image that it has there.
        manner: How they are applied.

    Raises:
        VodaError: As ``applying.apply``.
    """
    own = applying.ordered(bodies)
    found = applying.with_live_images(api, own, staying)
    for before, after in zip(own, found, strict=True):
        if before != after:
            output.story(_kept(after))
    for applied in applying.apply(api, found, manner):
        click.echo(f"{applied.key} {applied.what}{' (dry run)' if manner.is_trial else ''}")
    if not manner.is_trial and starting.has_scheduler(found):
        output.story(f"scheduler: {_started(starting.start_scheduler(api, found))}")


def _started(started: starting.Started | None) -> str:
    """What is said of the scheduler's runs."""
    if started is None:
        return "runs already"
    if not started.ended:
        return f"{started.run} started"
    ended = ", ".join(started.ended)
    return f"restarted, its version or settings of the pod have changed: {ended} ended, {started.run} started"


def _kept(document: Object) -> str:
    """What is said of a document whose image nobody has asked for."""
    named = " and ".join(dict.fromkeys(each.image for each in images(document)))
    (option,) = (part.option for part in PARTS if part.is_part(document))
    return f"{applying.document_key(document)} keeps its image {named}; {option} sets another"


def _wanted(options: dict[str, str | tuple[str, ...]]) -> Wanted:
    return Wanted(
        overlay=str(options["overlay"]),
        namespaces=tuple(options["namespaces"]),
        image=str(options["image"]),
        training_image=str(options["training_image"]),
    )


def _print(found: list[Object], form: str) -> None:
    """The documents as a file that kubectl takes: one after another in YAML, a List in JSON."""
    if form == "yaml":
        click.echo(dump_yaml(applying.ordered(found)), nl=False)
    else:
        output.objects(applying.ordered(found), form)

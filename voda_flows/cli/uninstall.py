"""``voda uninstall``: Voda taken from a cluster; what people made there stays."""

from __future__ import annotations

import click

from voda_flows.cli import output
from voda_flows.cli.verbs import verb
from voda_flows.install import removing
from voda_flows.install.overlays import CLUSTER, ONE_NAMESPACE, OVERLAYS, Wanted, documents
from voda_flows.kube.cluster import Cluster
from voda_flows.worlds import open_api

_OVERLAYS = ", ".join(OVERLAYS)


@verb(
    "voda uninstall --dry-run",
    "voda uninstall -n ml",
    "voda uninstall --overlay cluster -n team-a -n team-b",
)
@click.option(
    "-n",
    "--namespace",
    "namespaces",
    multiple=True,
    metavar="NAME",
    help="Namespace of jobs, as it was installed.  [default: the overlay's]",
)
@click.option(
    "--overlay",
    default=ONE_NAMESPACE,
    show_default=True,
    metavar="NAME|FOLDER",
    help=f"What was installed: {_OVERLAYS}, or a folder with a kustomization of your own.",
)
@click.option("--dry-run", "is_trial", is_flag=True, help="Say what would be deleted; change nothing.")
@click.option("--force", "is_forced", is_flag=True, help="Even while jobs are live: they fail then.")
@click.option("--kubeconfig", default="", metavar="FILE", help="Kubeconfig to use.  [default: as kubectl]")
@click.option("--context", default="", metavar="NAME", help="Context in it.  [default: its current one]")
def command(*, namespaces: tuple[str, ...], overlay: str, is_trial: bool, is_forced: bool, **cluster: str) -> None:
    """Take Voda from a cluster: scheduler, rights, templates, settings and what the scheduler has written.

    Namespaces, claims, volumes with their checkpoints and ended Workflows stay. Live jobs are ended first, by you.
    """
    found = documents(Wanted(overlay=overlay, namespaces=namespaces))
    api = open_api(Cluster(kubeconfig=cluster["kubeconfig"], context=cluster["context"]))
    try:
        if not is_forced:
            removing.check_no_jobs(api, found, everywhere=overlay == CLUSTER)
        for removed in removing.remove(api, found, is_trial=is_trial):
            click.echo(f"{removed.key} {removed.what}{' (dry run)' if is_trial else ''}")
    finally:
        api.close()
    output.story("claims and namespaces stay, with checkpoints and ended Workflows; kubectl delete takes them away")

"""Usage: ``python -m tests.cluster.demo [--keep]``: ``voda demo`` on real Kubernetes and Argo, on this computer.

Brings a cluster of three nodes with four GPUs up where none is, puts Voda on it, runs the demo, and takes down what it
brought up. A cluster that was up stays so.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import click
import yaml

from deploy.setup.progress import Progress, interrupted
from tests.cluster import images, nodes, programs, requirements
from tests.cluster.certificates import ARGO_NAMESPACE
from tests.cluster.cluster import Cluster
from tests.cluster.faults import CannotRunHereError, ClusterError
from tests.cluster.installed import NAMESPACE, install
from tests.cluster.nodes import Node
from tests.cluster.overlay import environment
from voda_flows.objects import Object

#: As many GPUs as the demo's jobs share, on three nodes.
GPUS_OF_NODES = (2, 1, 1)
#: Quicker than in production, where a minute between two disturbances is nothing.
SETTINGS = {"decide_interval_s": "5"}
CANNOT_RUN = 3
_ARGOS_SETTINGS = f"/api/v1/namespaces/{ARGO_NAMESPACE}/configmaps/workflow-controller-configmap"


def shape() -> tuple[Node, ...]:
    """The nodes of the demo's cluster."""
    return tuple(
        Node(name=node.name, index=node.index, gpus=gpus, labels=node.labels)
        for node, gpus in zip(nodes.parse(f"{len(GPUS_OF_NODES)}x1"), GPUS_OF_NODES, strict=True)
    )


def show_computer_to_all_pods(cluster: Cluster) -> None:
    """Have Argo give every pod this computer's files and environment: those of a user's own steps run Python too."""
    found = cluster.api.get(_ARGOS_SETTINGS)
    settings: Object = yaml.safe_load(found["data"]["config"])
    settings["mainContainer"] = {
        "name": "main",
        "imagePullPolicy": "Never",
        "env": [{"name": name, "value": value} for name, value in environment().items()],
        "volumeMounts": [images.host_mount()],
    }
    settings["workflowDefaults"] = {"spec": {"podSpecPatch": yaml.safe_dump({"volumes": [images.host_volume()]})}}
    cluster.api.patch(_ARGOS_SETTINGS, {"data": {"config": yaml.safe_dump(settings)}})


@contextmanager
def up(*, keep: bool) -> Iterator[Cluster]:
    """The cluster with Voda on it; at the end as it was, unless it is to be kept."""
    requirements.check()
    requirements.install_packages()
    programs.provide()
    cluster = Cluster()
    was_up = cluster.home.state.exists()
    try:
        with Progress("cluster") as progress:
            cluster.up(None if was_up else shape(), tell=progress.detail)
            progress.detail("Voda")
            show_computer_to_all_pods(cluster)
            install(cluster, SETTINGS).store.close()
            progress.detail("up")
        yield cluster
    finally:
        if not (was_up or keep):
            cluster.down()


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--keep", is_flag=True, help="Leave the cluster and the demo's jobs for whoever wants to look at them.")
@click.option(
    "--folder",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path("runs/demo-cluster"),
    show_default=True,
    help="Where report and record go.",
)
def main(folder: Path, *, keep: bool) -> int:
    """Run the demo on a cluster of this computer; exit 0 when every job succeeded and the record shows what it must."""
    with up(keep=keep) as cluster:
        command = [sys.executable, "-m", "voda_flows.cli", "demo", "--kubeconfig", str(cluster.kubeconfig)]
        options = ["-n", NAMESPACE, "--folder", str(folder), *(["--keep"] if keep else [])]
        ended = subprocess.run([*command, *options], check=False, env={**os.environ, "KUBECONFIG": ""})
        if keep:
            click.echo(f"export KUBECONFIG={cluster.kubeconfig}", err=True)
    return ended.returncode


def run() -> int:
    """Run the command line; returns the exit code."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # whoever ends us, nothing is left running
    try:
        code = main(standalone_mode=False)
    except click.ClickException as wrong:
        wrong.show()
        return wrong.exit_code
    except CannotRunHereError as reason:
        click.echo(str(reason), err=True)
        return CANNOT_RUN
    except ClusterError as fault:
        click.echo(str(fault), err=True)
        return 1
    except (click.Abort, KeyboardInterrupt):
        return interrupted()
    return int(code or 0)


if __name__ == "__main__":
    sys.exit(run())

"""Usage: ``python -m tests.cluster up|down|status|build|check``. stdout is the result, stderr the story.

Exit codes: 0 done, 1 failed (or, of ``status``, something does not run), 2 usage, 3 cannot run on this computer.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

import click
from rich.console import Console
from rich.table import Table

from deploy.setup.progress import Progress, interrupted
from scheduler_core.errors import VodaError
from tests.cluster import built_image, nodes, programs, requirements
from tests.cluster.cluster import Cluster
from tests.cluster.faults import CannotRunHereError, ClusterError
from tests.cluster.status import PartStatus, read_status

CANNOT_RUN = 3


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
def main() -> None:
    """Kubernetes and Argo Workflows as plain processes on this computer."""


@main.command()
@click.option("--nodes", "shape", help="3x2 is three nodes with two GPUs each, 0 none; or a YAML file of nodes.")
@click.option("--controller/--no-controller", default=None, help="Whether Argo's workflow controller runs.")
def up(shape: str | None, controller: bool | None) -> None:
    """Bring the cluster up, or make whole what died of it."""
    wanted = None if shape is None else nodes.parse(shape)
    cluster = Cluster()
    requirements.check()
    requirements.install_packages()
    programs.provide()
    with Progress("cluster") as progress:
        cluster.up(wanted, controller=controller, tell=progress.detail)
        progress.detail("up")
    folders = ":".join(str(Path(cluster.programs.path(program)).parent) for program in ("kubectl", "argo"))
    click.echo(f"export KUBECONFIG={cluster.kubeconfig}\nexport PATH={folders}:$PATH")


@main.command()
def down() -> None:
    """Take the cluster down; nothing of it is left."""
    with Progress("cluster") as progress:
        Cluster().down()
        progress.detail("down, nothing left")


@main.command()
def status() -> None:
    """Print what runs; ends with 1 where something does not."""
    cluster = Cluster()
    found = read_status(cluster)
    Console(width=None if sys.stdout.isatty() else 120).print(_table(found))
    click.echo(f"kubeconfig {cluster.kubeconfig}, logs in {cluster.home.logs}")
    if not all(part.is_well for part in found):
        raise ClusterError("expected every part to be well, some are not; `make cluster` makes them whole")


@main.command()
@click.option("--image", is_flag=True, help="Build the scheduler's image of this checkout too, as its tests would.")
def build(image: bool) -> None:
    """Build what is not in the cache and print where it is."""
    for name, folder in programs.provide().folders.items():
        click.echo(f"{name:12} {folder}")
    if image:
        click.echo(f"{'image':12} {built_image.provide().archive}")


@main.command()
def check() -> None:
    """Say in one line why the cluster cannot run here; ends with 3 then."""
    requirements.check()
    click.echo("the cluster can run here")


def _table(found: list[PartStatus]) -> Table:
    table = Table("part", "process", "up", "memory", "state", box=None)
    for part in found:
        age = "" if part.started_s is None else f"{time.time() - part.started_s:.0f} s"
        memory = "" if part.memory_bytes is None else f"{part.memory_bytes / 1e6:.0f} MB"
        table.add_row(part.name, str(part.pid or ""), age, memory, part.state)
    return table


def run() -> int:
    """Run one command line; returns the exit code."""
    try:
        main(standalone_mode=False)
    except click.ClickException as wrong:
        wrong.show()
        return wrong.exit_code
    except CannotRunHereError as reason:
        click.echo(str(reason), err=True)
        return CANNOT_RUN
    except (ClusterError, VodaError) as fault:
        click.echo(str(fault), err=True)
        return 1
    except (click.Abort, KeyboardInterrupt):
        return interrupted()
    return 0


if __name__ == "__main__":
    sys.exit(run())

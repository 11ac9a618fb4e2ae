"""``voda demo``: five jobs on four GPUs, live, with a table and a page at the end."""

from __future__ import annotations

import contextlib
import signal
from collections.abc import Iterator
from pathlib import Path

import click

from scheduler_core.errors import Conflict
from voda_flows.cli import columns, output, screen
from voda_flows.cli.names import NAMESPACE, POLICY
from voda_flows.cli.options import cluster_of, cluster_options
from voda_flows.cli.snapshot import settings_of
from voda_flows.cli.verbs import verb
from voda_flows.demo import run as demo
from voda_flows.demo.cluster_stage import ClusterStage
from voda_flows.demo.local_stage import LocalStage, empty_home
from voda_flows.demo.script import ACTS, acts
from voda_flows.demo.stage import Stage
from voda_flows.report import table
from voda_flows.report.jobs import Named
from voda_flows.worlds import is_cluster, open_world


@verb(
    "voda demo",
    "voda demo --folder /tmp/demo --keep",
    "voda demo --policy afs_l",
    "voda demo --context my-cluster -n voda",
)
@click.option(
    "--folder",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path("runs/demo"),
    show_default=True,
    help="Where report and record go, and local mode's state.",
)
@click.option("--keep", is_flag=True, help="Keep state and logs, for `voda --home FOLDER/home`; on a cluster the jobs.")
@click.option(
    "--policy", type=POLICY, metavar="NAME", help="Allocation policy; on a cluster the one that is set there."
)
@click.option("-n", "--namespace", type=NAMESPACE, help="Namespace of jobs, on a cluster.  [default: the context's]")
@cluster_options
@click.pass_context
def command(context: click.Context, /, folder: Path, *, keep: bool, policy: str | None, **where: str | None) -> None:
    """Watch five real training jobs share four GPUs: growing, shrinking, preempted, resumed.

    They run on this machine, on two nodes that it pretends to be; with --context or --kubeconfig on a cluster with
    Voda and exactly four free GPUs. Exit 0 when every job succeeded and the record shows what it must.
    """
    folder = folder.absolute()
    root = demo.root_folder()
    demo.prepare_folder(folder)
    for number in (signal.SIGTERM, signal.SIGINT):  # whoever ends us, nothing is left running
        signal.signal(number, signal.default_int_handler)
    good = False
    with _stage(folder, root, where, policy) as stage:
        try:
            stage.start()
            outcome = _play(stage, folder, root)
            good = outcome.holds
        finally:
            stage.finish(keep=keep or not good)
            if not good:
                output.story(f"everything was ended; look at what it left: voda list {stage.options}")
    context.exit(0 if good else 1)


def _play(stage: Stage, folder: Path, root: Path) -> demo.Outcome:
    """The demo itself, and what came of it."""
    resizes = _resizes(settings_of(stage.world).policy)
    director = demo.Director(stage=stage, root=root, left=list(acts(resizes=resizes)))
    screen.watch(stage.world, stage.namespace, until=director.act, note=lambda: director.note, meant=_is_ours)
    outcome = demo.conclude(stage, folder, resizes=resizes)
    _show(outcome, stage)
    return outcome


def _resizes(policy: str) -> bool:
    """Whether a policy resizes running jobs; one of another package may."""
    from scheduler_core.allocate.registry import described  # noqa: PLC0415 - brings numpy

    return any(one.name == policy and one.is_elastic is not False for one in described())


def _is_ours(one: Named) -> bool:
    return one.workflow["metadata"]["name"] in {act.example for act in ACTS}


@contextlib.contextmanager
def _stage(folder: Path, root: Path, where: dict[str, str | None], policy: str | None) -> Iterator[Stage]:
    """This machine, or the cluster that is named; the policy that serves others is not the demo's to change."""
    asked = where.pop("namespace") or ""
    named = " ".join(f"--{name} {value}" for name, value in where.items() if value)
    cluster = cluster_of(where)
    if cluster is None and not is_cluster():
        if asked:
            raise click.UsageError("-n is for a cluster: expected --context or --kubeconfig with it")
        yield LocalStage(empty_home(folder), root, policy or "")
        return
    world = open_world(folder, cluster, asked)
    namespace = asked or world.namespace
    try:
        if policy and (there := settings_of(world).policy) != policy:
            raise Conflict(
                f"expected the cluster's policy to be {policy!r}, it is {there!r}; set it in its ConfigMap, "
                f"for all its jobs: kubectl -n {world.scheduler_namespace} patch configmap voda-config --type merge "
                f'-p \'{{"data": {{"policy": "{policy}"}}}}\''
            )
        yield ClusterStage(world, namespace, f"-n {namespace} {named}".rstrip())
    finally:
        world.close()


def _show(outcome: demo.Outcome, stage: Stage) -> None:
    """The tables, and where the rest is."""
    click.echo()
    columns.show(table.HEADERS, table.rows(outcome.record))
    click.echo(f"\n{table.total(outcome.record)}\n")
    columns.show(
        ["FIGURE", "VALUE", "MUST BE", "HOLDS"],
        [[check.figure, check.value, check.must_be, "yes" if check.holds else "NO"] for check in outcome.checks],
    )
    click.echo(f"\nreport: {outcome.page}")
    for name in outcome.failed:
        output.story(f"error: job {name!r} did not succeed; see: voda logs {name} {stage.options}")

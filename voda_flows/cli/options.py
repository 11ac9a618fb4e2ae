"""Options that several subcommands share, as one decorator, and what they come to."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

import click
from click.core import ParameterSource

from voda_flows.cli.moments import SINCE
from voda_flows.cli.names import DEFAULT_HOME, JOB, NAMESPACE, STATUS
from voda_flows.cli.output import story
from voda_flows.selectors import Selector, parse_selector
from voda_flows.store import ObjectStore
from voda_flows.world import World
from voda_flows.worlds import is_cluster, open_world

if TYPE_CHECKING:
    from voda_flows.kube.cluster import Cluster

__all__ = ["FORMATS", "JOB", "Shared", "all_option", "home_option", "job_names", "shared_options", "yes_option"]

FORMATS: Final = ("wide", "name", "json", "yaml")

_Command = TypeVar("_Command", bound=Callable[..., Any])


@dataclass(frozen=True, slots=True, kw_only=True)
class Shared:
    """What the shared options come to.

    Attributes:
        world: The world that is meant.
        namespace: Namespace asked for, None for all.
        output: ``wide``, ``name``, ``json``, ``yaml`` or empty.
        labels: What labels must be like.
        phases: Phases of jobs that are meant, empty for all.
        since_s: Only what was submitted since, seconds since the epoch; None for everything.
    """

    world: World
    namespace: str | None = "default"
    output: str = ""
    labels: Selector = Selector()
    phases: frozenset[str] = frozenset()
    since_s: float | None = None

    @property
    def is_local(self) -> bool:
        """Whether it is local mode."""
        return self.world.home is not None

    @property
    def workdir(self) -> Path | None:
        """Folder in which pods start when nobody names one: this one; on a cluster their images say."""
        return Path.cwd() if self.is_local else None

    def store(self) -> ObjectStore:
        """Open the world's objects.

        Raises:
            NotFound: Nothing was ever started there.
            VodaError: It cannot be opened.
        """
        return self.world.store

    def note(self) -> str:
        """What is to be said where jobs cannot go on; empty while they can."""
        return self.world.note()

    def warn_if_down(self) -> None:
        """Say on stderr that jobs cannot go on, where that is so."""
        said = self.note()
        if said:
            story(f"warning: {said}")

    @property
    def narrows(self) -> bool:
        """Whether the options name a part of the jobs."""
        return bool(self.labels or self.phases or self.since_s is not None)

    @property
    def is_data(self) -> bool:
        """Whether the output is for a machine."""
        return self.output in ("json", "yaml")


def home_option(command: _Command) -> _Command:
    """``--home``, as a Path."""
    return click.option(
        "--home",
        envvar="VODA_HOME",
        default=DEFAULT_HOME,
        show_default=True,
        show_envvar=True,
        help="Folder of the local state.",
        callback=lambda _ctx, _param, value: Path(value).expanduser().absolute(),
    )(command)


def cluster_options(command: _Command) -> _Command:
    """``--context``, ``--kubeconfig`` and ``--argo-server``: naming one chooses the cluster."""
    for name, metavar, said in (
        ("--context", "NAME", "Work on the cluster of this context.  [default: local mode]"),
        ("--kubeconfig", "FILE", "Work on the cluster of this kubeconfig."),
        ("--argo-server", "HOST:PORT", "Go through this argo-server, with the token in ARGO_TOKEN."),
    ):
        command = click.option(name, default="", metavar=metavar, help=said)(command)
    return command


def cluster_of(options: dict[str, Any]) -> Cluster | None:
    """The cluster that is named, None where none is; takes the two options out.

    Raises:
        click.UsageError: Local mode's folder, or an argo-server, is named too.
    """
    kubeconfig, context = options.pop("kubeconfig", ""), options.pop("context", "")
    server = options.get("argo_server")
    if not (kubeconfig or context or server):
        return None
    if server and (kubeconfig or context):
        raise click.UsageError("expected one way to a cluster, found --argo-server and --context or --kubeconfig")
    if click.get_current_context().get_parameter_source("home") is ParameterSource.COMMANDLINE:
        raise click.UsageError("expected one world, found --home (local mode) and the name of a cluster")
    if server:
        return None
    from voda_flows.kube.cluster import Cluster  # noqa: PLC0415 - local mode has no use for it

    return Cluster(kubeconfig=kubeconfig, context=context)


def local_only(command: _Command) -> _Command:
    """For what is done on this machine only: says so where a cluster is named."""

    @functools.wraps(command)
    def wrapper(**kwargs: Any) -> Any:  # noqa: ANN401 - click hands over what it parsed
        named = [name for name in ("context", "kubeconfig", "argo_server") if kwargs.pop(name, "")]
        if named or is_cluster():
            name = click.get_current_context().info_name
            raise click.UsageError(f"`voda {name}` is for this machine only; on a cluster see `voda install`")
        return command(**kwargs)

    wrapped: Any = wrapper
    for name in ("--context", "--kubeconfig", "--argo-server"):
        wrapped = click.option(name, default="", hidden=True)(wrapped)
    result: _Command = wrapped
    return result


def job_names(command: _Command) -> _Command:
    """Names of jobs, any number, as ``names``."""
    return click.argument("names", type=JOB, metavar="[JOB]...", nargs=-1)(command)


def all_option(said: str) -> Callable[[_Command], _Command]:
    """``--all`` instead of names, as ``everything``; its help says which jobs these are."""
    return click.option("--all", "everything", is_flag=True, help=said)


def yes_option(command: _Command) -> _Command:
    """``--yes``, where ``--all`` asks first."""
    return click.option("-y", "--yes", is_flag=True, help="Do not ask whether --all is meant.")(command)


def shared_options(*, many: bool = False, output: bool = True, filters: bool = False) -> Callable[[_Command], _Command]:
    """``--home``, ``--context`` and the like, ``-n``, ``-o``, for commands on many jobs ``-A`` and ``-l``.

    They are given on as one ``Shared``, whose world is let go of in the end.

    Args:
        many: Whether the command is about many jobs.
        output: Whether it takes ``-o``.
        filters: Whether it takes ``--status`` and ``--since`` too.

    Returns:
        A decorator.
    """

    def decorate(command: _Command) -> _Command:
        @functools.wraps(command)
        def wrapper(**kwargs: Any) -> Any:  # noqa: ANN401 - click hands over what it parsed
            shared = _shared(kwargs)
            try:
                return command(shared=shared, **kwargs)
            finally:
                for remark in shared.world.remarks():
                    story(f"note: {remark}")
                shared.world.close()

        wrapped: Any = wrapper
        for add in reversed(_options(many=many, output=output, filters=filters)):
            wrapped = add(wrapped)
        result: _Command = wrapped
        return result

    return decorate


def _shared(kwargs: dict[str, Any]) -> Shared:
    """Take the shared options out of what click parsed."""
    asked, is_all = kwargs.pop("namespace", None) or "", kwargs.pop("all_namespaces", False)
    phases = kwargs.pop("status", None) or ()
    cluster = cluster_of(kwargs)
    server = kwargs.pop("argo_server", "")
    world = open_world(kwargs.pop("home"), cluster, None if is_all else asked, argo_server=server)
    return Shared(
        world=world,
        namespace=None if is_all else asked or world.namespace,
        output=kwargs.pop("output", None) or "",
        labels=parse_selector(kwargs.pop("selector", None) or ""),
        phases=frozenset(phase for several in phases for phase in several),
        since_s=kwargs.pop("submitted_since", None),
    )


def _options(*, many: bool, output: bool, filters: bool) -> list[Callable[[Any], Any]]:
    """The decorators of the shared options."""
    chosen: list[Callable[[Any], Any]] = [
        click.option(
            "-n", "--namespace", type=NAMESPACE, help="Namespace of the jobs.  [default: default, or the context's]"
        )
    ]
    if many:
        chosen.append(click.option("-A", "--all-namespaces", is_flag=True, help="Jobs of all namespaces."))
        chosen.append(
            click.option(
                "-l",
                "--selector",
                metavar="LABELS",
                help="Only Workflows with such labels: key=value, key!=value, key in (a,b), several joined by commas.",
            )
        )
    if filters:
        chosen.append(
            click.option(
                "--status", multiple=True, type=STATUS, metavar="PHASE[,...]", help="Only jobs in one of these phases."
            )
        )
        chosen.append(
            click.option(
                "--since", "submitted_since", type=SINCE, metavar="TIME", help="Only jobs submitted since, such as 2h."
            )
        )
    if output:
        chosen.append(click.option("-o", "--output", type=click.Choice(FORMATS), help="How to print the result."))
    return [*chosen, home_option, cluster_options]

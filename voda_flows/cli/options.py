"""Options that several subcommands share, as one decorator, and what they come to."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TypeVar

import click

from scheduler_core.errors import NotFound
from voda_flows.cli import output
from voda_flows.cli.moments import SINCE
from voda_flows.cli.names import DEFAULT_HOME, JOB, NAMESPACE, STATUS
from voda_flows.local.processes import is_running, is_stopped, named_by
from voda_flows.local.store import LocalStore
from voda_flows.selectors import Selector, parse_selector
from voda_flows.worlds import is_cluster, open_local

__all__ = ["FORMATS", "JOB", "Shared", "all_option", "home_option", "job_names", "shared_options", "yes_option"]

FORMATS: Final = ("wide", "name", "json", "yaml")

_Command = TypeVar("_Command", bound=Callable[..., Any])


@dataclass(frozen=True, slots=True, kw_only=True)
class Shared:
    """What the shared options come to.

    Attributes:
        home: Folder of the local state.
        namespace: Namespace asked for, None for all.
        output: ``wide``, ``name``, ``json``, ``yaml`` or empty.
        labels: What labels must be like.
        phases: Phases of jobs that are meant, empty for all.
        since_s: Only what was submitted since, seconds since the epoch; None for everything.
    """

    home: Path
    namespace: str | None = "default"
    output: str = ""
    labels: Selector = Selector()
    phases: frozenset[str] = frozenset()
    since_s: float | None = None

    def store(self) -> LocalStore:
        """Open the world's objects.

        Raises:
            NotFound: Nothing was ever started there.
            VodaError: A cluster is asked for.
        """
        if not is_cluster() and not (self.home / "state.db").exists():
            raise NotFound(f"expected a running `voda up`, found no state in {self.home}\nstart one with `voda up`")
        return open_local(self.home)

    def note(self) -> str:
        """What is to be said where jobs cannot go on; empty while the engine runs."""
        if not is_running(self.home):
            return "nothing runs jobs here now; `voda up` starts it again"
        engine = named_by(self.home / "engine.json")
        if engine is not None and is_stopped(engine):
            return f"nothing runs jobs here now: the engine (pid {engine}) was stopped; `voda up` wakes it"
        return ""

    def warn_if_down(self) -> None:
        """Say on stderr that jobs cannot go on, where that is so."""
        if self.note():
            output.story(f"warning: {self.note()}")

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
    """``--home``, ``-n``, ``-o`` and, for commands on many jobs, ``-A`` and ``-l``; given on as one ``Shared``.

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
            return command(shared=_shared(kwargs), **kwargs)

        wrapped: Any = wrapper
        for add in reversed(_options(many=many, output=output, filters=filters)):
            wrapped = add(wrapped)
        result: _Command = wrapped
        return result

    return decorate


def _shared(kwargs: dict[str, Any]) -> Shared:
    """Take the shared options out of what click parsed."""
    namespace = kwargs.pop("namespace", "default")
    phases = kwargs.pop("status", None) or ()
    return Shared(
        home=kwargs.pop("home"),
        namespace=None if kwargs.pop("all_namespaces", False) else namespace,
        output=kwargs.pop("output", None) or "",
        labels=parse_selector(kwargs.pop("selector", None) or ""),
        phases=frozenset(phase for several in phases for phase in several),
        since_s=kwargs.pop("submitted_since", None),
    )


def _options(*, many: bool, output: bool, filters: bool) -> list[Callable[[Any], Any]]:
    """The decorators of the shared options."""
    chosen: list[Callable[[Any], Any]] = [
        click.option(
            "-n", "--namespace", type=NAMESPACE, default="default", show_default=True, help="Namespace of the jobs."
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
    return [*chosen, home_option]

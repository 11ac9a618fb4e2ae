"""Options that several subcommands share, as one decorator, and what they come to."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TypeVar

import click
from click.shell_completion import CompletionItem

from scheduler_core.errors import InvalidValue, NotFound
from voda_flows.cli import output
from voda_flows.local.processes import is_running
from voda_flows.local.store import LocalStore
from voda_flows.worlds import open_store

DEFAULT_HOME: Final = "~/.voda"
FORMATS: Final = ("wide", "name", "json", "yaml")

_Command = TypeVar("_Command", bound=Callable[..., Any])


@dataclass(frozen=True, slots=True, kw_only=True)
class Shared:
    """What the shared options come to.

    Attributes:
        home: Folder of the local state.
        namespace: Namespace asked for, None for all.
        output: ``wide``, ``name``, ``json``, ``yaml`` or empty.
        labels: Labels that must match.
    """

    home: Path
    namespace: str | None = "default"
    output: str = ""
    labels: dict[str, str]

    def store(self) -> LocalStore:
        """Open the world's objects.

        Raises:
            NotFound: Nothing was ever started there.
        """
        if not (self.home / "state.db").exists():
            raise NotFound(f"expected a running `voda up`, found no state in {self.home}\nstart one with `voda up`")
        return open_store(self.home)

    def note(self) -> str:
        """What is to be said where jobs cannot go on; empty while the engine runs."""
        return "" if is_running(self.home) else "nothing runs jobs here now; `voda up` starts it again"

    def warn_if_down(self) -> None:
        """Say on stderr that jobs cannot go on, where that is so."""
        if self.note():
            output.story(f"warning: {self.note()}")

    @property
    def is_data(self) -> bool:
        """Whether the output is for a machine."""
        return self.output in ("json", "yaml")


class JobName(click.types.StringParamType):
    """A job's name, which a shell can complete."""

    name = "job"

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:  # noqa: ARG002 - click's
        """Names of Workflows that begin like this."""
        home = Path(ctx.params.get("home") or os.environ.get("VODA_HOME") or DEFAULT_HOME).expanduser()
        if not (home / "state.db").exists():
            return []
        names = [body["metadata"]["name"] for body in open_store(home).list("Workflow", ctx.params.get("namespace"))]
        return [CompletionItem(name) for name in names if name.startswith(incomplete)]


JOB: Final = JobName()


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


def shared_options(*, many: bool = False, output: bool = True) -> Callable[[_Command], _Command]:
    """``--home``, ``-n``, ``-o`` and, for commands on many jobs, ``-A`` and ``-l``; given on as one ``Shared``.

    Args:
        many: Whether the command is about many jobs.
        output: Whether it takes ``-o``.

    Returns:
        A decorator.
    """

    def decorate(command: _Command) -> _Command:
        @functools.wraps(command)
        def wrapper(**kwargs: Any) -> Any:  # noqa: ANN401 - click hands over what it parsed
            namespace = None if kwargs.pop("all_namespaces", False) else kwargs.pop("namespace", "default")
            kwargs.pop("namespace", None)
            shared = Shared(
                home=kwargs.pop("home"),
                namespace=namespace,
                output=kwargs.pop("output", None) or "",
                labels=selector(kwargs.pop("selector", None) or ""),
            )
            return command(shared=shared, **kwargs)

        wrapped: Any = wrapper
        for add in reversed(_options(many=many, output=output)):
            wrapped = add(wrapped)
        result: _Command = wrapped
        return result

    return decorate


def selector(text: str) -> dict[str, str]:
    """Labels from ``a=b,c=d``.

    Raises:
        InvalidValue: A part is no ``key=value``.
    """
    pairs = [part.strip() for part in text.split(",") if part.strip()]
    for pair in pairs:
        if "=" not in pair.replace("==", "=") or "!=" in pair:
            raise InvalidValue(f"-l: expected `key=value` (several joined by commas), found `{pair}`")
    return dict(pair.replace("==", "=").split("=", 1) for pair in pairs)


def _options(*, many: bool, output: bool) -> list[Callable[[Any], Any]]:
    """The decorators of the shared options."""
    chosen: list[Callable[[Any], Any]] = [
        click.option("-n", "--namespace", default="default", show_default=True, help="Namespace of the jobs.")
    ]
    if many:
        chosen.append(click.option("-A", "--all-namespaces", is_flag=True, help="Jobs of all namespaces."))
        chosen.append(click.option("-l", "--selector", metavar="K=V[,K=V]", help="Only Workflows with these labels."))
    if output:
        chosen.append(click.option("-o", "--output", type=click.Choice(FORMATS), help="How to print the result."))
    return [*chosen, home_option]

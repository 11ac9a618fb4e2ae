"""Words on the command line that a shell can complete and that are checked as they are read: jobs, nodes, phases."""

from __future__ import annotations

import difflib
import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click
from click.shell_completion import CompletionItem

from scheduler_core.errors import VodaError
from voda_flows.cli.columns import COLOURS
from voda_flows.config import Settings, near_miss

if TYPE_CHECKING:
    from voda_flows.kube.cluster import Cluster

    _WordsType = click.ParamType[tuple[str, ...]]
else:  # generic for type checkers only in older versions of click
    _WordsType = click.ParamType

DEFAULT_HOME: Final = "~/.voda"
LATEST: Final = "@latest"
#: Phases of jobs, in the order of a life.
PHASES: Final = tuple(COLOURS)


class NameType(click.types.StringParamType):
    """The name of an object, which a shell can complete.

    Args:
        name: What it is, for usage lines.
        kind: The kind of the objects.
        more: Names that are always there.
    """

    def __init__(self, name: str, kind: str, more: tuple[str, ...] = ()) -> None:
        self.name = name
        self._kind = kind
        self._more = more

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:  # noqa: ARG002 - click's
        """Names that begin like this, in the namespace that stands on the line."""
        namespace = None if self._kind == "Node" or ctx.params.get("all_namespaces") else ctx.params.get("namespace")
        return _items((*_places(ctx, self._kind, namespace, "name"), *self._more), incomplete)


class Namespaces(click.types.StringParamType):
    """A namespace."""

    name = "namespace"

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:  # noqa: ARG002 - click's
        """Namespaces in which there are jobs."""
        return _items(sorted(set(_places(ctx, "Workflow", None, "namespace"))), incomplete)


class Phases(_WordsType):
    """Phases of jobs, joined by commas, in any case of letters: ``Running,queued``."""

    name = "phase"

    def convert(
        self, value: str | Sequence[str], param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[str, ...]:
        """The phases as they are written elsewhere."""
        if not isinstance(value, str):
            return tuple(value)
        by_word = {phase.lower(): phase for phase in PHASES}
        words = [word.strip() for word in value.split(",") if word.strip()]
        for word in words:
            if word.lower() not in by_word:
                near = difflib.get_close_matches(word.lower(), by_word, n=1)
                meant = f"; did you mean {by_word[near[0]]!r}?" if near else ""
                self.fail(f"{word!r} is not one of {', '.join(map(repr, PHASES))}{meant}", param, ctx)
        return tuple(by_word[word.lower()] for word in words)

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:  # noqa: ARG002 - click's
        """The last of the phases on the line."""
        before, comma, begun = incomplete.rpartition(",")
        fitting = [phase for phase in PHASES if phase.lower().startswith(begun.lower())]
        return _items((f"{before}{comma}{phase}" for phase in fitting), "")


class Setting(click.types.StringParamType):
    """A setting of the scheduler as ``name=value``; names are completed, and values where there is a choice."""

    name = "setting"

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:  # noqa: ARG002 - click's
        """Settings, and after ``policy=`` the policies."""
        key, sign, _ = incomplete.partition("=")
        if not sign:
            return _items((f"{name}=" for name in _settings()), incomplete)
        return _items((f"{key}={value}" for value in _CHOICES.get(key, tuple)()), incomplete)


class Policies(click.types.StringParamType):
    """The name of an allocation policy."""

    name = "policy"

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """The name, if there is such a policy."""
        known = _policies()
        if value not in known:
            self.fail(f"expected one of {', '.join(known)}, got {value!r}{near_miss(value, known)}", param, ctx)
        return value

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:  # noqa: ARG002 - click's
        """Policies that begin like this."""
        return _items(_policies(), incomplete)


def _places(ctx: click.Context, kind: str, namespace: str | None, field: str) -> list[str]:
    """Names (or namespaces) of what there is; none where nothing was started: a completion starts nothing."""
    from voda_flows.worlds import open_world  # noqa: PLC0415 - usage lines need no store

    home = Path(ctx.params.get("home") or os.environ.get("VODA_HOME") or DEFAULT_HOME).expanduser()
    try:
        world = open_world(home, _cluster(ctx), "" if kind == "Node" or namespace else None)
        found = [str(body["metadata"][field]) for body in world.store.list(kind, namespace)]
        world.close()
    except VodaError:  # nothing to complete from
        return []
    return found


def _cluster(ctx: click.Context) -> Cluster | None:
    """The cluster that stands on the line, None where none does."""
    kubeconfig, context = ctx.params.get("kubeconfig") or "", ctx.params.get("context") or ""
    if not (kubeconfig or context):
        return None
    from voda_flows.kube.cluster import Cluster  # noqa: PLC0415 - local mode has no use for it

    return Cluster(kubeconfig=kubeconfig, context=context)


def _settings() -> list[str]:
    """Names of the settings."""
    return [entry.name for entry in fields(Settings)]


def _policies() -> tuple[str, ...]:
    """Names of the policies."""
    from scheduler_core.allocate.registry import policy_names  # noqa: PLC0415 - only completions ask

    return policy_names()


def _items(words: Iterable[str], begun: str) -> list[CompletionItem]:
    """The words that begin like this."""
    return [CompletionItem(word) for word in words if word.startswith(begun)]


_CHOICES: Final[dict[str, Callable[[], tuple[str, ...]]]] = {"policy": _policies}

JOB: Final = NameType("job", "Workflow", (LATEST,))
NODE: Final = NameType("node", "Node")
NAMESPACE: Final = Namespaces()
STATUS: Final = Phases()
SETTING: Final = Setting()
POLICY: Final = Policies()

"""The table of subcommands, and the click group that imports a subcommand only when it is called."""

from __future__ import annotations

import difflib
import importlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import click
from click.shell_completion import CompletionItem

#: Subcommand -> what it does, in the order of the help; the module of the same name holds ``command``.
VERBS = {
    "up": "Start nodes, engine and scheduler on this machine.",
    "down": "Stop them; what jobs have learned stays on disk.",
    "demo": "Watch five jobs share four slots, from start to report.",
    "install": "Install Voda on a cluster that has Argo Workflows.",
    "uninstall": "Take Voda from a cluster; what people made there stays.",
    "submit": "Submit Workflow documents.",
    "lint": "Check documents as submit would, and create nothing.",
    "list": "List jobs.",
    "get": "Show one job's life so far.",
    "watch": "Watch nodes, jobs, queue and decisions live.",
    "events": "Tell a job's life, event by event.",
    "logs": "Print the output of a job's driver and workers.",
    "wait": "Wait until jobs have ended.",
    "stop": "End a job in good order; what it has done stays.",
    "terminate": "End a job at once, without its exit handlers.",
    "suspend": "Start nothing new of a job; what runs goes on.",
    "resume": "Let a suspended job go on; open gates take their defaults.",
    "retry": "Run a job that failed again, from where it failed.",
    "resubmit": "Submit a job anew, as it was.",
    "delete": "Delete a job and its records.",
    "nodes": "List nodes and who holds their slots.",
    "top": "Show what nodes and jobs use: GPU slots, CPU, memory, samples.",
    "queue": "List waiting jobs in the order in which they will be served, and queues.",
    "policies": "List allocation policies, their sources and what they look at.",
    "explain": "Say why a job waits, or why it has what it has.",
    "cron": "List cron workflows, run one now, delete them.",
    "report": "Sum up what jobs did: a table, a page, a record.",
    "completion": "Print what makes a shell complete.",
    "version": "Print versions.",
}

#: What the command ends with; docs/guides/command-line.md says the same.
EXIT_CODES = {
    "0": "done; for wait, the jobs succeeded",
    "1": "failed; for wait, a job failed",
    "2": "wrong usage, or a document that is refused",
    "3": "not found",
    "4": "conflict: it exists already, or changed meanwhile",
    "5": "nobody answers, or the time was over",
    "130": "interrupted with Ctrl-C",
}


class ReaderLeft(Exception):
    """Whoever read our output has gone, as ``head`` does: no failure, and nobody to tell."""


@contextmanager
def _quiet_pipe() -> Iterator[None]:
    """Before click makes a failure of a pipe whose reader has gone."""
    try:
        yield
    except BrokenPipeError as gone:
        raise ReaderLeft from gone


class Verbs(click.Group):
    """A group whose members are looked up by name in ``voda_flows.cli``."""

    def make_context(self, *arguments: Any, **more: Any) -> click.Context:  # noqa: ANN401 - click's
        """Read the command line, which may print help."""
        with _quiet_pipe():
            return super().make_context(*arguments, **more)

    def invoke(self, ctx: click.Context) -> Any:  # noqa: ANN401 - click's
        """Run the subcommand."""
        with _quiet_pipe():
            return super().invoke(ctx)

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Subcommands from the table, and options."""
        fitting = [CompletionItem(name, help=said) for name, said in VERBS.items() if name.startswith(incomplete)]
        return [*fitting, *click.Command.shell_complete(self, ctx, incomplete)]

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002 - click's
        """What the exit code means."""
        with formatter.section("Exit codes"):
            formatter.write_dl(list(EXIT_CODES.items()))

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's
        """The subcommands, in the order of the table."""
        return list(VERBS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002 - click's
        """Import one subcommand."""
        if cmd_name not in VERBS:
            return None
        command: click.Command = importlib.import_module(f"voda_flows.cli.{cmd_name}").command
        command.name = cmd_name
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the subcommand, or say which one was probably meant."""
        if args and not args[0].startswith("-") and args[0] not in VERBS:
            near = difflib.get_close_matches(args[0], VERBS, n=1)
            meant = f"; did you mean `{near[0]}`?" if near else ""
            raise click.UsageError(f"no such command `{args[0]}`{meant}", ctx=ctx)
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002 - click's
        """The help's list, from the table alone: nothing is imported for it."""
        with formatter.section("Commands"):
            formatter.write_dl(list(VERBS.items()))


def _write_examples(examples: Sequence[str], formatter: click.HelpFormatter) -> None:
    """Write the examples as they are to be typed, unwrapped."""
    with formatter.section("Examples"):
        for example in examples:
            formatter.write(f"{'':>{formatter.current_indent}}{example}\n")


class Verb(click.Command):
    """A subcommand whose help ends in examples."""

    examples: tuple[str, ...] = ()

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002 - click's
        """Write the examples."""
        _write_examples(self.examples, formatter)


class VerbGroup(click.Group):
    """A subcommand that has subcommands of its own, and whose help ends in examples too."""

    examples: tuple[str, ...] = ()

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002 - click's
        """Write the examples."""
        _write_examples(self.examples, formatter)


def verb(*examples: str) -> Callable[[Callable[..., Any]], Verb]:
    """Make a function a subcommand.

    Args:
        examples: Command lines for the end of its help, at least one.

    Returns:
        A decorator.
    """

    def decorate(function: Callable[..., Any]) -> Verb:
        made: Verb = click.command(cls=Verb)(function)
        made.examples = examples
        return made

    return decorate


def verb_group(*members: tuple[str, Verb]) -> Callable[[Callable[..., Any]], VerbGroup]:
    """Make a function a subcommand with subcommands; its examples are theirs.

    Args:
        members: Names and subcommands.

    Returns:
        A decorator.
    """

    def decorate(function: Callable[..., Any]) -> VerbGroup:
        made: VerbGroup = click.group(cls=VerbGroup)(function)
        for name, member in members:
            made.add_command(member, name)
        made.examples = tuple(example for _, member in members for example in member.examples)
        return made

    return decorate

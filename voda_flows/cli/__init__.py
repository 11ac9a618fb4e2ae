"""The voda command: one file per subcommand; parse, one call, print.

stdout is the result, stderr the story. Exit codes: 0 ok, 1 failed, 2 usage, 3 not found, 4 conflict, 5 unreachable or
timed out. A subcommand's module is imported only when it is called, so that every call starts fast.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

import click

from scheduler_core.errors import VodaError
from voda_flows.cli import faults, shells, streams
from voda_flows.cli.verbs import ReaderLeft, Verbs

_INTERRUPTED = 130


@click.command(cls=Verbs, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(package_name="voda", message="%(version)s")
def voda() -> None:
    """Elastic training jobs on shared GPUs, as Argo Workflows."""


def run(arguments: Sequence[str]) -> int:
    """Run one command line.

    Args:
        arguments: What stands after ``voda``.

    Returns:
        The exit code.
    """
    try:
        # Not `list(...)`: once that verb is imported, the name is its module here.
        code = voda.main(args=[*arguments], prog_name="voda", standalone_mode=False)
        sys.stdout.flush()
    except (click.Abort, KeyboardInterrupt):
        return _INTERRUPTED
    except click.ClickException as wrong:
        return _usage(wrong)
    except (VodaError, OSError, ReaderLeft) as wrong:
        return _failed(wrong)
    return code if isinstance(code, int) else 0


def main() -> None:
    """Run the command line of this process and end with its exit code."""
    streams.make_ready()
    if shells.VARIABLE in os.environ:
        shells.make_ready()
    sys.exit(run(sys.argv[1:]))


def _usage(wrong: click.ClickException) -> int:
    """Say what is wrong with the command line, and where its help is."""
    if isinstance(wrong, click.exceptions.NoArgsIsHelpError):
        click.echo(wrong.format_message(), err=True)
        return wrong.exit_code
    click.echo(f"error: {wrong.format_message()}", err=True)
    context = getattr(wrong, "ctx", None)
    if context is not None:
        click.echo(f"hint: see `{context.command_path} --help`", err=True)
    return wrong.exit_code


def _failed(wrong: VodaError | OSError | ReaderLeft) -> int:
    """Say what went wrong, and give its exit code."""
    if isinstance(wrong, (ReaderLeft, BrokenPipeError)):
        # The reader of our output has left, as `head` does: say nothing more, not even at interpreter exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        return 0
    if isinstance(wrong, OSError):
        # A full disk, a folder that may not be read: no defect of ours, so no traceback.
        wrong = VodaError(f"expected to read and write files, got '{wrong}'\nlook at its disk and try again")
    faults.say(wrong)
    return wrong.exit_code

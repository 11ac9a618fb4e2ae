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
from voda_flows.cli.verbs import Verbs

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
    except click.exceptions.NoArgsIsHelpError as wrong:
        click.echo(wrong.format_message(), err=True)
        return wrong.exit_code
    except click.ClickException as wrong:
        return _usage(wrong)
    except (click.Abort, KeyboardInterrupt):
        return _INTERRUPTED
    except VodaError as wrong:
        return _failed(wrong)
    except BrokenPipeError:
        # The reader of our output has left, as `head` does: say nothing more, not even at interpreter exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        return 0
    except OSError as wrong:
        # A full disk, a folder that may not be read: no defect of ours, so no traceback.
        return _failed(VodaError(f"expected to read and write files, got '{wrong}'\nlook at its disk and try again"))
    return code if isinstance(code, int) else 0


def main() -> None:
    """Run the command line of this process and end with its exit code."""
    sys.exit(run(sys.argv[1:]))


def _usage(wrong: click.ClickException) -> int:
    """Say what is wrong with the command line, and where its help is."""
    click.echo(f"error: {wrong.format_message()}", err=True)
    context = getattr(wrong, "ctx", None)
    if context is not None:
        click.echo(f"hint: see `{context.command_path} --help`", err=True)
    return wrong.exit_code


def _failed(wrong: VodaError) -> int:
    """Say what went wrong in one line; further lines of the message are hints."""
    first, *more = str(wrong).splitlines() or [type(wrong).__name__]
    click.echo(f"error: {first}", err=True)
    for line in more:
        click.echo(line if line.startswith((" ", "hint:")) else f"hint: {line}", err=True)
    return wrong.exit_code

"""``voda completion``: what a shell is to run once, so that it completes verbs, options, jobs, nodes and settings."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

from voda_flows.cli import shells
from voda_flows.cli.verbs import verb


@verb(
    "voda completion bash > ~/.local/share/bash-completion/completions/voda",
    "voda completion zsh > ~/.zfunc/_voda",
    "voda completion fish > ~/.config/fish/completions/voda.fish",
)
@click.argument("shell", type=click.Choice(shells.SHELLS))
@click.pass_context
def command(context: click.Context, shell: str) -> None:
    """Print the completion script of a shell; put it where the shell reads it at its start.

    It asks `voda` itself for what fits: verbs, options, and the names of jobs, nodes, namespaces, phases and policies
    of the world that VODA_HOME names.
    """
    shells.make_ready()
    made = get_completion_class(shell)
    assert made is not None, shell
    click.echo(made(context.find_root().command, {}, "voda", shells.VARIABLE).source())

"""Which jobs a command line means: those it names, or those that its options fit; and asking before ending all."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Final

import click

from voda_flows.cli.options import Shared
from voda_flows.objects import Object, phase_of, seconds
from voda_flows.report import jobs
from voda_flows.report.jobs import Named
from voda_flows.store import ObjectStore

#: Options that choose jobs, by the names of their parameters; a verb takes some of them.
_OPTIONS: Final = {"everything": "--all", "selector": "-l", "status": "--status", "submitted_since": "--since"}


def choose(shared: Shared, store: ObjectStore, names: Sequence[str], *, everything: bool = False) -> list[Named]:
    """The jobs that are meant, each Workflow and job once.

    Args:
        shared: The shared options.
        store: Where the jobs are.
        names: Names on the command line.
        everything: Whether ``--all`` was said.

    Returns:
        In the order of the names, else in order of creation; options may fit none, and never choose the scheduler.

    Raises:
        click.UsageError: Names and options together, or neither where somebody must say.
        NotFound: A name that is none.
    """
    if names and (shared.narrows or everything):
        raise click.UsageError(f"expected names of jobs or options that choose them ({_options()}), found both")
    if not (names or shared.narrows or everything):
        raise click.UsageError(f"expected names of jobs, or options that choose them ({_options()}); found neither")
    if not names:
        every = jobs.every(store, shared.namespace, shared.labels)
        return narrowed(shared, [one for one in every if not jobs.is_schedulers(one.workflow)])
    found = [jobs.find(store, shared.namespace, name) for name in names]
    once = {(one.workflow["metadata"]["uid"], *(life.name for life in one.lives)): one for one in found}
    return list(once.values())


def _options() -> str:
    """Those of the options that the verb takes."""
    taken = {parameter.name for parameter in click.get_current_context().command.params}
    return ", ".join(option for name, option in _OPTIONS.items() if name in taken)


def narrowed(shared: Shared, found: Sequence[Named]) -> list[Named]:
    """Those in the phases and of the time that the options name."""
    return [one for one in found if is_meant(shared, one)]


def workflows_of(chosen: Sequence[Named]) -> list[Object]:
    """Their Workflows, each once."""
    return list({one.workflow["metadata"]["uid"]: one.workflow for one in chosen}.values())


def is_confirmed(deed: str, chosen: Sequence[Object], *, yes: bool) -> bool:
    """Ask before something is done to all jobs; where nobody can answer, only ``--yes`` will do.

    Args:
        deed: What is to be done, as ``delete``.
        chosen: The Workflows.
        yes: Whether ``--yes`` was said.

    Raises:
        click.UsageError: There is no terminal to ask at.
    """
    if yes or not chosen:
        return True
    count = f"{len(chosen)} {'job' if len(chosen) == 1 else 'jobs'}"
    if not sys.stdin.isatty():
        raise click.UsageError(f"--all: expected --yes where nobody can be asked whether to {deed} {count}")
    names = ", ".join(body["metadata"]["name"] for body in chosen[:5]) + (", ..." if len(chosen) > 5 else "")
    return click.confirm(f"{deed} {count} ({names})?", err=True)


def is_meant(shared: Shared, one: Named) -> bool:
    """Whether a Workflow has the labels and the age that are meant, and one of its jobs the phase."""
    meta = one.workflow["metadata"]
    if shared.since_s is not None and (seconds(meta["creationTimestamp"]) or 0.0) < shared.since_s:
        return False
    phases = {life.phase for life in one.lives} or {phase_of(one.workflow) or "Pending"}
    return shared.labels.fits(meta.get("labels")) and (not shared.phases or bool(phases & shared.phases))

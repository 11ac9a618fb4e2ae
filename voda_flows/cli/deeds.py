"""What is done to Workflows that a command line chooses: refused as a whole where one of those named does not allow it.

In: names or options, and a deed; out: the Workflows to which it was done, each said on stdout. ``terminate``,
``suspend``, ``resume`` and ``retry`` are such deeds; what they do is in ``voda_flows/operations.py``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypedDict

import click

from scheduler_core.errors import Conflict
from voda_flows.cli import output
from voda_flows.cli.choosing import choose, is_confirmed, workflows_of
from voda_flows.cli.options import Shared
from voda_flows.objects import Object
from voda_flows.world import World


class Asked(TypedDict):
    """Options of a deed."""

    everything: bool
    yes: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Deed:
    """Something that is done to Workflows.

    Attributes:
        verb: What it is called, as ``suspend``.
        done: What is said of a Workflow to which it was done, as ``suspended``.
        check: Raises ``Conflict`` for a Workflow to which it cannot be done.
        do: Does it; gives the Workflow as it is kept.
    """

    verb: str
    done: str
    check: Callable[[Object], object]
    do: Callable[[World, Object], Object]


def perform(shared: Shared, names: Sequence[str], deed: Deed, asked: Asked) -> list[Object]:
    """Do it to all that are chosen.

    Args:
        shared: The shared options.
        names: Names on the command line.
        deed: What is to be done.
        asked: Whether all are meant, and whether that is confirmed.

    Returns:
        The Workflows to which it was done, as they were read; none where it was not confirmed (exit 1).

    Raises:
        Conflict: It cannot be done to one of those named; then nothing was done. Options choose only what it fits.
        NotFound: A name that is none.
    """
    store = shared.store()
    chosen = workflows_of(choose(shared, store, names, everything=asked["everything"]))
    if names:
        for body in chosen:
            deed.check(body)
    else:
        chosen = [body for body in chosen if _fits(deed, body)]
    if asked["everything"] and not is_confirmed(deed.verb, chosen, yes=asked["yes"]):
        click.get_current_context().exit(1)
    for body in chosen:
        kept = deed.do(shared.world, body)
        name = body["metadata"]["name"]
        if kept["metadata"]["resourceVersion"] == body["metadata"]["resourceVersion"]:
            output.story(f"{name}: there was nothing to {deed.verb}")
        click.echo(f"{name} {deed.done}")
    if not chosen:
        output.story(f"nothing to {deed.verb}")
    shared.warn_if_down()
    return chosen


def _fits(deed: Deed, body: Object) -> bool:
    """Whether it can be done to this one."""
    try:
        deed.check(body)
    except Conflict:
        return False
    return True

"""Templates that lead back to themselves with nothing that could end it: Argo would nest them until its limit of 100.

In: which template calls which, and whether something stands between; out: nothing, or the fault.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from scheduler_core.errors import InvalidValue
from voda_flows.local.argo.arguments import expands

Template = tuple[str, str]
"""(scope, name) of a template."""


class Calling(NamedTuple):
    """One unconditional call: what is called, and the path of the step or task that does."""

    called: Template
    path: str


def may_stop(step: Mapping[str, Any]) -> bool:
    """Whether a step or task may come to nothing: it has a condition, or runs once per item of a list."""
    return bool(step.get("when") or step.get("depends")) or (expands(step) and step.get("withItems") != [])


def check_ends(calls: Mapping[Template, Sequence[Calling]]) -> None:
    """Refuse a circle of templates each of which always calls the next.

    Args:
        calls: The unconditional calls of each template, in order.

    Raises:
        InvalidValue: There is one; names it, with the path of the call that closes it.
    """
    done: set[Template] = set()
    for start in calls:
        trail: list[tuple[Template, int]] = [(start, 0)]
        while trail:
            template, number = trail.pop()
            following = calls.get(template, ())
            if template in done or number >= len(following):
                done.add(template)
                continue
            trail.append((template, number + 1))
            call = following[number]
            above = [one for one, _ in trail]
            if call.called in above:
                raise _endless([*above[above.index(call.called) :], call.called], call.path)
            trail.append((call.called, 0))


def _endless(circle: Sequence[Template], path: str) -> InvalidValue:
    names = " -> ".join(name for _, name in circle)
    return InvalidValue(
        f"templates.{circle[-1][1]}: expected a `when` somewhere in {names}, found none: it would never end; "
        "give the step that leads back one that is false at last",
        path=path,
    )

"""What happens when a stage fails: one job that causes it is quarantined by name, else the previous target stays.

In: the target and a way to try a decision. Out: a ``Decision`` that says what went wrong. A policy or placer is foreign
code and may raise anything; whatever it raises must stop neither the other jobs nor the converge loop.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from scheduler_core.model.decision import Decision, DecisionKind
from scheduler_core.model.target import Target


def fenced(attempt: Callable[[Target], Decision], target: Target, suspects: Sequence[str]) -> Decision:
    """Try a decision; where it fails, try to do without the one job that makes it fail.

    Args:
        attempt: Decides, leaving out the jobs that the target it is given quarantines.
        target: The stored target.
        suspects: Jobs that may be at fault, sorted by id.

    Returns:
        The decision; with a ``fault`` when a job was quarantined for it, or when the previous target stays.
    """
    try:
        return attempt(target)
    except Exception as broken:  # noqa: BLE001  # the fence: see the module's docstring
        fault = f"{type(broken).__name__}: {broken}"
    left = list(suspects)
    while len(left) > 1:
        half = left[: len(left) // 2]
        left = half if _cured(attempt, target, half, fault) else left[len(half) :]
    cured = _cured(attempt, target, left, fault) if left else None
    return replace(cured, fault=fault) if cured else Decision(target=target, kind=DecisionKind.FENCED, fault=fault)


def _cured(
    attempt: Callable[[Target], Decision], target: Target, left_out: Sequence[str], fault: str
) -> Decision | None:
    """The decision without these jobs, None where it fails all the same."""
    quarantined = {**target.quarantined, **dict.fromkeys(left_out, fault)}
    try:
        return attempt(replace(target, quarantined=dict(sorted(quarantined.items()))))
    except Exception:  # noqa: BLE001  # the fence: the first fault is the one that is reported
        return None

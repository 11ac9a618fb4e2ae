"""Policies by name: ours, and those that other packages offer under the entry point group ``voda.policies``."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from typing import Final

from scheduler_core.errors import InvalidValue
from scheduler_core.model.ports import Policy

#: Entry point group in which a package may offer policies of its own.
GROUP: Final = "voda.policies"


class Need(StrEnum):
    """What a policy looks at beside the jobs' requests and the GPUs there are."""

    SPEED = "speed tables"
    REMAINING = "remaining time"
    SERVICE = "service"


@dataclass(frozen=True, slots=True, kw_only=True)
class Described:
    """What people are told of a policy.

    Attributes:
        name: What it is chosen by.
        source: Where its rule is from.
        needs: What it looks at; empty where it needs nothing, or where it does not say.
        is_elastic: Whether it gives a job sizes between those that it was asked for; None where it does not say.
        summary: What it does, one sentence without a full stop.
    """

    name: str
    source: str
    needs: tuple[Need, ...]
    is_elastic: bool | None
    summary: str


VODA: Final = "Voda, IC2E 2023"

#: Each has a module of its name beside this one, with the policy under the same name. It is imported when the policy is
#: asked for: who only lists them imports no solver.
_OURS: Final[tuple[Described, ...]] = (
    Described(
        name="afs_l",
        source="AFS-L, NSDI 2021",
        needs=(Need.SPEED, Need.REMAINING),
        is_elastic=True,
        summary="each next worker to the job to which it is worth most, short jobs before long ones",
    ),
    Described(
        name="elastic_fifo",
        source=VODA,
        needs=(Need.SPEED,),
        is_elastic=True,
        summary="minima in order of arrival, then what is left in turn",
    ),
    Described(
        name="elastic_srjf",
        source=VODA,
        needs=(Need.SPEED, Need.REMAINING),
        is_elastic=True,
        summary="minima to the jobs with least work left, then what is left in turn",
    ),
    Described(
        name="elastic_tiresias",
        source="EDL, TPDS 2021, on Tiresias, NSDI 2019",
        needs=(Need.SPEED, Need.SERVICE),
        is_elastic=True,
        summary="as tiresias, old jobs cut back when many wait, and what is left where it speeds up most",
    ),
    Described(
        name="ffdl",
        source="FfDL, MASCOTS 2020",
        needs=(Need.SPEED,),
        is_elastic=True,
        summary="jobs in order of arrival at the sizes of the greatest speed-up in all",
    ),
    Described(
        name="fifo",
        source=VODA,
        needs=(),
        is_elastic=False,
        summary="minima in order of arrival",
    ),
    Described(
        name="srjf",
        source=VODA,
        needs=(Need.REMAINING,),
        is_elastic=False,
        summary="minima to the jobs with least work left",
    ),
    Described(
        name="tiresias",
        source="Tiresias, NSDI 2019",
        needs=(Need.SERVICE,),
        is_elastic=False,
        summary="what each asks for to the jobs that had least service since they started",
    ),
)

_OUR_NAMES: Final = frozenset(told.name for told in _OURS)


def policy_names() -> tuple[str, ...]:
    """Every name that ``policy_named`` answers to, sorted."""
    return tuple(sorted({*_OUR_NAMES, *(point.name for point in entry_points(group=GROUP))}))


def described() -> tuple[Described, ...]:
    """Every policy that can be chosen, by name; of another package's only where it is from is known."""
    theirs = {point.name: point for point in entry_points(group=GROUP) if point.name not in _OUR_NAMES}
    told = (*_OURS, *(_foreign(point) for point in theirs.values()))
    return tuple(sorted(told, key=lambda policy: policy.name))


def _foreign(point: EntryPoint) -> Described:
    """A policy of another package, which is not loaded for this."""
    package = point.dist.name if point.dist else "another package"
    return Described(name=point.name, source=f"{package} ({point.value})", needs=(), is_elastic=None, summary="")


@cache
def policy_named(name: str) -> Policy:
    """The policy of that name; one of ours cannot be replaced from outside.

    Args:
        name: A name of ``policy_names()``.

    Raises:
        InvalidValue: No policy has that name; the message lists those that exist.
    """
    if name in _OUR_NAMES:
        ours: Policy = getattr(import_module(f"{__package__}.{name}"), name)
        return ours
    for point in entry_points(group=GROUP, name=name):
        theirs: Policy = point.load()
        return theirs
    raise InvalidValue(f"policy: expected one of {', '.join(policy_names())}, got {name!r}")

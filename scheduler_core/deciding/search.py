"""Which jobs make a stage fail: found by halving, so that everybody else is served.

In: a way to try the stage on some of the jobs, and how far an earlier round came. Out: the result without the guilty
jobs, or that leaving out jobs does not cure it, or how far this round came (a try may cost a time limit, so a search
may take several rounds). Assumed is only that a job which makes the stage fail does so whoever is served beside it;
where that does not hold, nobody is called guilty with whom the stage was not seen to fail.

One guilty job among n costs about log2(n) + 4 tries (all, none, the halves, the last one once more, all but it), each
further one log2(n) + 2.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from typing import Generic, TypeVar

from scheduler_core.errors import StageFailed
from scheduler_core.model.target import Search

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Tries(Generic[T]):
    """How a stage is tried.

    Attributes:
        jobs: Every job that may be at fault, in a fixed order.
        attempt: The stage with exactly these of them served, or whatever it raises.
        has_time: Whether this round can bear another try.
    """

    jobs: Sequence[str]
    attempt: Callable[[Collection[str]], T]
    has_time: Callable[[], bool]


@dataclass(frozen=True, slots=True, kw_only=True)
class Found(Generic[T]):
    """The stage's result without the guilty jobs, and what it did wrong with each of them."""

    result: T
    search: Search


@dataclass(frozen=True, slots=True, kw_only=True)
class Uncured:
    """The stage fails with no job at all, with all jobs that work one by one, or with every single one."""


def fault_text(broken: Exception) -> str:
    """What went wrong, in one line; a stage that ran elsewhere has said it already."""
    return str(broken) if isinstance(broken, StageFailed) else f"{type(broken).__name__}: {broken}"


def go_on(search: Search, tries: Tries[T]) -> Search | Found[T] | Uncured:
    """Continue a search while there is time.

    Args:
        search: How far it came; one that begins has its ``fault`` and ``began_s`` only.
        tries: How the stage is tried now. Jobs may have come and gone since the search began.

    Returns:
        The end of the search, or how far it came.
    """
    while tries.has_time():
        search = _among(search, tries.jobs)
        step = _after_try(search, tries)
        if not isinstance(step, Search):
            return step
        search = step
        if len(tries.jobs) > 1 and set(tries.jobs) == set(search.guilty):
            return Uncured()
    return search


def _after_try(search: Search, tries: Tries[T]) -> Search | Found[T] | Uncured:
    """What is known after one more try."""
    served = _next_served(search, tries.jobs)
    try:
        result, fault = tries.attempt(served), ""
    except Exception as broken:  # noqa: BLE001  # a stage is foreign code and may raise anything
        result, fault = None, fault_text(broken)
    if not search.works_alone:
        return Uncured() if fault else replace(search, works_alone=True, suspects=tuple(tries.jobs))
    if search.suspects:
        return _halved(search, fault)
    if result is not None:
        return Found(result=result, search=search)
    unknown = _unknown(search, tries.jobs)
    return replace(search, suspects=unknown) if unknown else Uncured()


def _among(search: Search, jobs: Collection[str]) -> Search:
    """The search without jobs that are gone."""
    live = set(jobs)
    return replace(
        search,
        cleared=tuple(job for job in search.cleared if job in live),
        suspects=tuple(job for job in search.suspects if job in live),
        guilty={job: why for job, why in search.guilty.items() if job in live},
    )


def _next_served(search: Search, jobs: Sequence[str]) -> tuple[str, ...]:
    """Whom to serve in the next try: nobody, the cleared ones with half of the suspects, or all but the guilty."""
    if not search.works_alone:
        return ()
    if search.suspects:
        return (*search.cleared, *_first_half(search.suspects))
    return tuple(job for job in jobs if job not in search.guilty)


def _first_half(suspects: tuple[str, ...]) -> tuple[str, ...]:
    return suspects[: max(1, len(suspects) // 2)]


def _halved(search: Search, fault: str) -> Search:
    """What a try of the first half says: where it works, one of the second half is guilty."""
    half = _first_half(search.suspects)
    if not fault:
        return replace(search, cleared=(*search.cleared, *half), suspects=search.suspects[len(half) :])
    if len(half) > 1:
        return replace(search, suspects=half)
    return replace(search, suspects=(), guilty={**search.guilty, half[0]: fault})


def _unknown(search: Search, jobs: Sequence[str]) -> tuple[str, ...]:
    known = {*search.cleared, *search.guilty}
    return tuple(job for job in jobs if job not in known)

"""How far a job is, so that it never goes backwards: the furthest point that any of its drivers has shown.

In: the nodes of a job's drivers, in order of their start, each with ``N/M`` in hundredths of an epoch: M is what
remained when its segment began, lowered to N when it ends early (docs/contracts.md, section 3). Out: hundredths done
and in all, or nothing. A driver that was lost takes back what it did since its checkpoint, but not what was shown of
it: that is done again meanwhile.

On a cluster Argo reads N/M every few seconds, and counts a pod that succeeded as all done: where it has missed the last
word, M stands for both. And N = M does not say where a driver began. So a driver that ends by itself hands out
``N/M E``: N of M as it showed them last, and E as what it lowers both to; and the checkpoint step tells where the
segment began and how far it came. Until one of them is there, what a driver may have shown lies between two bounds.
What is shown of the job is the most that is certain, and only while no driver may have shown more: nothing that was
shown before is then above it. Where one may have, nobody knows for the moment.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from voda_flows.objects import Object
from voda_flows.workflows.parameters import DRIVER_PROGRESS
from voda_flows.workflows.tree import parameters

UNITS_PER_EPOCH = 100
_DONE: Final = ("Succeeded", "Skipped", "Omitted")
# Pods write these: no more digits than a job could have.
_COUNTS = re.compile(r"([0-9]{1,12})/([0-9]{1,12})")
_WORD = re.compile(rf"{_COUNTS.pattern} ([0-9]{{1,12}})")
_UNSAID = (0, 1)  # what Argo counts for a pod that has said nothing yet
_FULL: Final = (1, 1)  # and for one that has succeeded without saying anything


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """What a checkpoint step told of its segment, in hundredths of an epoch from the job's beginning.

    Attributes:
        began: Where the segment began, None where it does not say.
        furthest: The furthest point of it, None where it does not say.
        end: Where it ended, None where it does not say.
    """

    began: int | None = None
    furthest: int | None = None
    end: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Span:
    """A place that lies between two, both included."""

    least: int
    most: int

    def plus(self, units: int) -> _Span:
        return _Span(least=self.least + units, most=self.most + units)


_NOTHING: Final = _Span(least=0, most=0)
_UNTOLD: Final = Kept()


def counts(driver: Object) -> tuple[int, int]:
    """N and M of one driver, (0, 0) before it said so."""
    found = _COUNTS.fullmatch(str(driver.get("progress", "")))
    done, total = map(int, found.groups()) if found else _UNSAID
    return (0, 0) if (done, total) == _UNSAID else (done, total)


def last_word(driver: Object) -> tuple[int, int, int] | None:
    """N, M and E that a driver handed out; None where it did not.

    >>> last_word({"outputs": {"parameters": [{"name": "progress", "value": "474/2260 470"}]}})
    (474, 2260, 470)
    """
    found = _WORD.fullmatch(parameters(driver, "outputs").get(DRIVER_PROGRESS, ""))
    done, total, end = map(int, found.groups()) if found else (1, 0, 0)
    return (done, total, end) if max(done, end) <= total else None


def reached(
    drivers: Iterable[Object], epochs: float, told: Mapping[str, Kept] = MappingProxyType({})
) -> tuple[int, int] | None:
    """Hundredths of an epoch done and in all.

    Args:
        drivers: Nodes, by start.
        epochs: Epochs asked for; 0 where nobody knows, the first driver that says how much there is counts then.
        told: What checkpoint steps told, by the id of the driver's node.

    Returns:
        (done, in all); (0, 0) where nothing was done yet; None where a driver may have shown more than is certain.

    >>> reached([{"progress": "46/46", "phase": "Succeeded"}, {"progress": "4/54", "phase": "Running"}], 1)
    (50, 100)
    """
    whole, known = round(epochs * UNITS_PER_EPOCH), False
    begin, least, most = _NOTHING, 0, 0
    for driver in drivers:
        word, kept = last_word(driver), told.get(str(driver.get("id")), _UNTOLD)
        done, remained = word[:2] if word else counts(driver)
        if word or done < remained:  # not lowered: it says where it began
            whole = whole or begin.most + remained
            begin, known = _exactly(max(0, whole - remained)), True
        elif kept.began is not None:
            begin = _exactly(kept.began)
        shown = _shown(driver, begin, kept, whole)
        begin = _end(driver, begin, shown, kept, whole)
        least, most = max(least, shown.least), max(most, shown.most)
    if min(most, whole or most) > least:
        return None
    return least, max(least, whole if least or known else 0)


def _exactly(units: int) -> _Span:
    return _Span(least=units, most=units)


def _shown(driver: Object, begin: _Span, kept: Kept, whole: int) -> _Span:
    """The furthest that a driver may have shown, from where it began (then it is exact where it was not lowered)."""
    word, (done, remained) = last_word(driver), counts(driver)
    if word:
        said = begin.plus(max(word[0], done if done < remained else 0))  # another pod of the same node goes on
    elif not remained or _is_silent(driver):
        said = _NOTHING
    elif done < remained or driver.get("phase") not in _DONE:
        said = begin.plus(done)
    elif kept.furthest is not None:
        said = _NOTHING
    elif kept.end is not None and begin.most + done >= whole:
        said = _exactly(kept.end)  # M/M for N/M, or all of it
    elif begin.most + done >= whole or (done, remained) == _FULL:
        said = _Span(least=0, most=begin.most + done)
    else:
        said = begin.plus(done)
    if kept.furthest is None:
        return said
    return _Span(least=max(said.least, kept.furthest), most=max(said.most, kept.furthest))


def _end(driver: Object, begin: _Span, shown: _Span, kept: Kept, whole: int) -> _Span:
    """Where the next driver begins, if it lowers its M: each segment before it has then ended as it was asked to.

    One that does not lower it says itself where it began, at the most here.
    """
    if word := last_word(driver):
        return begin.plus(word[2])
    if kept.end is not None:
        # One that was stopped before it began says 0.
        return _Span(least=max(begin.least, kept.end), most=max(begin.most, kept.end))
    if driver.get("phase") not in _DONE:
        return _Span(least=begin.least, most=max(begin.most, whole))
    return begin if _is_silent(driver) else _Span(least=begin.least, most=max(begin.most, shown.most))


def _is_silent(driver: Object) -> bool:
    """Whether a driver has ended well without a word: it was stopped before it began."""
    said = parameters(driver, "outputs").get(DRIVER_PROGRESS)
    return said == "" and driver.get("phase") in _DONE and counts(driver) == _FULL

"""How far a job is, so that it never goes backwards: the furthest point that any of its drivers has reached.

In: the nodes of a job's drivers, in order of their start, each with ``N/M`` in hundredths of an epoch: M is what
remained when its segment began, lowered to N when it ends early (docs/contracts.md, section 3). Out: hundredths done
and in all. A driver that was lost takes back what it did since its checkpoint, but not what was shown of it: that is
done again meanwhile.

On a cluster Argo reads N/M every few seconds, and counts a pod that succeeded as all done: where it has missed the last
word, M stands for both. And N = M does not say where a driver began that came after one that failed. So a driver that
ends by itself hands out ``N/M E``: N of M as it showed them last, and E as what it lowers both to. Where it was killed,
N and M stay as they were; without either, only the end of its segment says how much it was.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from types import MappingProxyType

from voda_flows.objects import Object
from voda_flows.workflows.parameters import DRIVER_PROGRESS
from voda_flows.workflows.tree import parameters

UNITS_PER_EPOCH = 100
_FAILED = ("Failed", "Error")
# Pods write these: no more digits than a job could have.
_COUNTS = re.compile(r"([0-9]{1,12})/([0-9]{1,12})")
_WORD = re.compile(rf"{_COUNTS.pattern} ([0-9]{{1,12}})")
_UNSAID = (0, 1)  # what Argo counts for a pod that has said nothing yet


def counts(driver: Object) -> tuple[int, int]:
    """N and M of one driver, (0, 0) before it said so; one that ended without a step counts as one hundredth."""
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
    drivers: Iterable[Object], epochs: float, ends: Mapping[str, float] = MappingProxyType({})
) -> tuple[int, int]:
    """Hundredths of an epoch done and in all.

    Args:
        drivers: Nodes, by start.
        epochs: Epochs asked for, for as long as no driver has said how much there is; 0 where nobody knows.
        ends: Epochs done at the end of a driver's segment, by the id of its node, where that is known.

    Returns:
        (done, in all); (0, 0) where nothing is known.

    >>> reached([{"progress": "46/46", "phase": "Succeeded"}, {"progress": "4/54", "phase": "Running"}], 1)
    (50, 100)
    """
    asked, nodes = round(epochs * UNITS_PER_EPOCH), list(drivers)
    best, begin_least, whole, is_known = 0, 0, 0, True
    for driver in nodes:
        word = last_word(driver)
        done, remained = word[:2] if word else counts(driver)
        begin, end = begin_least, ends.get(str(driver.get("id")))
        if word is None and done == remained and end is not None:
            told = max(1, round(end * UNITS_PER_EPOCH) - begin_least)
            done = remained = told if done - told > len(nodes) else done  # nearer is each segment's rounding
        if word or done < remained:  # not lowered: it says where it began
            told = begin_least + remained
            is_near = abs(told - asked) <= len(nodes)  # each segment rounds
            whole = whole or (told if is_known and not is_near else asked or told)
            begin = max(0, whole - remained)
        best = max(best, begin + done)
        # Where the next one begins is not known then: at a checkpoint somewhere before.
        is_known = is_known and driver.get("phase") not in _FAILED
        begin_least = begin if driver.get("phase") in _FAILED else begin + (word[2] if word else done)
    return best, max(best, whole or (asked if best else 0))

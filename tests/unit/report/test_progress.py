"""A job's progress never goes backwards, whatever becomes of its drivers."""

from __future__ import annotations

import pytest

from voda_flows.objects import Object
from voda_flows.report.progress import Kept, last_word, reached


def driver(progress: str, phase: str = "Running", word: str = "") -> Object:
    """A driver's node, with its last word if it has said one."""
    said = {"outputs": {"parameters": [{"name": "progress", "value": word}]}} if word else {}
    return {"progress": progress, "phase": phase, **said}


def silent() -> Object:
    """The node of a driver that was stopped before it began."""
    return {**driver("1/1", "Succeeded"), "outputs": {"parameters": [{"name": "progress", "value": ""}]}}


@pytest.mark.parametrize(
    ("drivers", "found"),
    [
        ([], (0, 0)),
        ([driver("0/1", "Pending")], (0, 0)),
        ([driver("46/100")], (46, 100)),
        # Stopped for a resize: M was lowered, and the next one's is what remained.
        ([driver("46/46", "Succeeded")], (46, 100)),
        ([driver("46/46", "Succeeded"), driver("0/1", "Pending")], (46, 100)),
        ([driver("46/46", "Succeeded"), driver("4/54")], (50, 100)),
        ([driver("46/46", "Succeeded"), driver("54/54", "Succeeded", "54/54 54")], (100, 100)),
        # Lost at 46, checkpoint at 40: the next one begins there, and nothing is shown twice or taken back.
        ([driver("46/100", "Failed")], (46, 100)),
        ([driver("46/100", "Error"), driver("2/60")], (46, 100)),
        ([driver("46/100", "Error"), driver("10/60")], (50, 100)),
        ([driver("46/100", "Error"), driver("0/60", "Error"), driver("30/60")], (70, 100)),
        ([driver("99/99", "Succeeded"), driver("nonsense")], (99, 100)),
        # Argo counts a driver that was stopped before it began as 1/1: it is none of what was done.
        ([silent()], (0, 0)),
        ([silent(), driver("33/100")], (33, 100)),
        ([silent(), driver("33/33", "Failed")], (33, 100)),
        ([driver("40/100", "Failed"), silent(), driver("5/70")], (40, 100)),
        ([driver("46/46", "Succeeded"), silent(), driver("0/54")], (46, 100)),
        # It may have been stopped at any of these: all of it was M/M, or N = M after one that nobody saw the end of.
        ([driver("100/100", "Succeeded")], None),
        ([driver("46/100", "Error"), driver("60/60", "Succeeded")], None),
        ([driver("46/100", "Error"), driver("20/20")], None),
        ([driver("46/46", "Succeeded"), driver("1/1", "Succeeded")], None),
        ([driver("46/46", "Succeeded"), driver("1/1", "Succeeded"), driver("1/54")], (47, 100)),
        # What they handed out says it all: Argo missed a last word; one that began at 40 after a loss was stopped, or
        # ended the job; one showed more than it kept.
        ([driver("100/100", "Succeeded", "46/100 46")], (46, 100)),
        ([driver("46/100", "Error"), driver("20/20", "Succeeded", "20/60 20")], (60, 100)),
        ([driver("46/100", "Error"), driver("60/60", "Succeeded", "60/60 60")], (100, 100)),
        ([driver("20/20", "Succeeded", "46/100 20"), driver("1/80")], (46, 100)),
        ([driver("20/20", "Succeeded", "46/100 20"), driver("30/80")], (50, 100)),
    ],
)
def test_furthest_point_of_all_drivers_counts(drivers: list[Object], found: tuple[int, int] | None) -> None:
    """Of one epoch; a driver that was lost keeps what it had shown, and what is done again is not added to it.

    None where a driver may have shown more than is certain.
    """
    assert reached(drivers, 1) == found


@pytest.mark.parametrize("word", ["²/9 1", "9" * 5000 + "/9 1", "5/4 1", "1/4 5", "1/4", "-1/4 1", "1/4 1\n"])
def test_what_a_pod_hands_out_beyond_reason_counts_as_nothing(word: str) -> None:
    """It is the job's owner who writes it: nobody else's list may break for it."""
    assert last_word(driver("1/4", "Succeeded", word)) is None
    assert reached([driver("²/4", "Succeeded", word)], 1) == (0, 0)


def test_argo_counts_a_driver_that_succeeded_as_all_done() -> None:
    """Where it has missed the last word; how far it was is known as soon as its checkpoint step has told."""
    first = {**driver("100/100", "Succeeded"), "id": "first"}

    ended = {"first": Kept(end=46)}
    assert reached([first], 1, ended) == (46, 100)
    assert reached([first, driver("0/1", "Pending")], 1, ended) == (46, 100)
    assert reached([first, driver("4/54")], 1, ended) == (50, 100)
    assert reached([first], 1, {"first": Kept(end=100)}) == (100, 100)


def test_what_a_segment_kept_counts_whatever_its_driver_said_last() -> None:
    """A driver was cut off at its end, begun at 40; the one after it was stopped as asked, and its word is missing."""
    drivers = [{**driver("20/60", "Error"), "id": "first"}, driver("5/5", "Failed")]

    assert reached(drivers, 1) is None
    assert reached(drivers, 1, {"first": Kept(began=40, furthest=63, end=61)}) == (66, 100)


def test_nobody_knows_how_much_there_is() -> None:
    """Without a number of epochs what was done is all that there is, until a driver says more."""
    assert reached([driver("46/46")], 0) == (46, 46)
    assert reached([driver("46/46", "Succeeded"), driver("1/54")], 0) == (47, 100)

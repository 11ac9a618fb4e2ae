"""A job's progress never goes backwards, whatever becomes of its drivers."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest
from hypothesis import given
from hypothesis import strategies as st

from voda_flows.objects import Object
from voda_flows.report.progress import last_word, reached


def driver(progress: str, phase: str = "Running", word: str = "") -> Object:
    """A driver's node, with its last word if it has said one."""
    said = {"outputs": {"parameters": [{"name": "progress", "value": word}]}} if word else {}
    return {"progress": progress, "phase": phase, **said}


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
        ([driver("46/46", "Succeeded"), driver("54/54", "Succeeded")], (100, 100)),
        # Lost at 46, checkpoint at 40: the next one begins there, and nothing is shown twice or taken back.
        ([driver("46/100", "Failed")], (46, 100)),
        ([driver("46/100", "Error"), driver("2/60")], (46, 100)),
        ([driver("46/100", "Error"), driver("10/60")], (50, 100)),
        ([driver("46/100", "Error"), driver("60/60", "Succeeded")], (60, 100)),
        ([driver("46/100", "Error"), driver("0/60", "Error"), driver("30/60")], (70, 100)),
        ([driver("99/99", "Succeeded"), driver("nonsense")], (99, 100)),
        ([driver("1/1", "Succeeded")], (1, 100)),
        ([driver("40/100", "Failed"), driver("1/1", "Succeeded"), driver("5/70")], (40, 100)),
        ([driver("46/46", "Succeeded"), driver("1/1", "Succeeded"), driver("0/54")], (47, 100)),
        # What they handed out says it all: Argo missed a last word; one that began at 40 after a loss was stopped, or
        # ended the job; one showed more than it kept.
        ([driver("100/100", "Succeeded", "46/100 46")], (46, 100)),
        ([driver("46/100", "Error"), driver("20/20", "Succeeded", "20/60 20")], (60, 100)),
        ([driver("46/100", "Error"), driver("60/60", "Succeeded", "60/60 60")], (100, 100)),
        ([driver("20/20", "Succeeded", "46/100 20"), driver("1/80")], (46, 100)),
        ([driver("20/20", "Succeeded", "46/100 20"), driver("30/80")], (50, 100)),
    ],
)
def test_furthest_point_of_all_drivers_counts(drivers: list[Object], found: tuple[int, int]) -> None:
    """Of one epoch; a driver that was lost keeps what it had shown, and what is done again is not added to it."""
    assert reached(drivers, 1) == found


@pytest.mark.parametrize("word", ["²/9 1", "9" * 5000 + "/9 1", "5/4 1", "1/4 5", "1/4", "-1/4 1", "1/4 1\n"])
def test_what_a_pod_hands_out_beyond_reason_counts_as_nothing(word: str) -> None:
    """It is the job's owner who writes it: nobody else's list may break for it."""
    assert last_word(driver("1/4", "Succeeded", word)) is None
    assert reached([driver("²/4", "Succeeded", word)], 1) == (0, 0)


def test_argo_counts_a_driver_that_succeeded_as_all_done() -> None:
    """Where it has missed the last word; how far it was is known as soon as its checkpoint step has told."""
    first = {**driver("100/100", "Succeeded"), "id": "first"}

    assert reached([first], 1, {"first": 0.46}) == (46, 100)
    assert reached([first, driver("0/1", "Pending")], 1, {"first": 0.46}) == (46, 100)
    assert reached([first, driver("4/54")], 1, {"first": 0.46}) == (50, 100)
    assert reached([first], 1, {"first": 1.0}) == (100, 100)


def test_a_driver_that_ended_without_a_step_takes_nothing_back() -> None:
    """It counts as one hundredth, since 0 of M would count as M of M; its record says 0."""
    first = {**driver("1/1", "Succeeded"), "id": "first"}

    assert reached([first], 1) == reached([first], 1, {"first": 0.0}) == (1, 100)


def test_nobody_knows_how_much_there_is() -> None:
    """Without a number of epochs what was done is all that there is, until a driver says more."""
    assert reached([driver("46/46", "Succeeded")], 0) == (46, 46)
    assert reached([driver("46/46", "Succeeded"), driver("1/54")], 0) == (47, 100)


@dataclass
class Told:
    """As ``Story`` on a cluster, where nobody sees the volume, and Argo may miss what a driver writes last."""

    whole: int
    checkpoint: int = 0
    went_on: bool = True
    nodes: list[Object] = field(default_factory=list)
    seen: list[float] = field(default_factory=list)

    def show(self, progress: str, phase: str, word: str = "") -> None:
        """The last driver's node is so now."""
        self.nodes[-1] = {**driver(progress, phase, word), "id": str(len(self.nodes))}
        done, total = reached(self.nodes, self.whole / 100)
        self.seen.append(done / total if total else 0.0)

    def segment(self, steps: int, back: int, end: str, *, is_missed: bool) -> None:
        """A driver begins at the checkpoint, makes steps, loses some, and is stopped, is done, fails or is lost."""
        remained = self.whole - self.checkpoint
        self.nodes.append(driver("0/1", "Pending"))
        for done in range(min(steps, remained - 1) + 1):
            self.show(f"{done}/{remained}", "Running")
        if end == "lost":
            self.went_on = False
            self.show(f"{done}/{remained}", "Error")
            return
        done = remained if end == "done" else done
        kept = done if end == "done" else max(done - back, 0)
        word = f"{done}/{remained} {kept}"
        lowered = f"{done}/{max(done, 1)}" if self.went_on else f"{min(done, remained - 1)}/{remained}"
        if not is_missed:
            self.show(lowered, "Running")
        shown = f"{done}/{remained}" if is_missed else lowered
        whole = shown.partition("/")[2]
        self.show(
            f"{whole}/{whole}" if end == "stopped" else shown, "Succeeded" if end == "stopped" else "Failed", word
        )
        self.went_on = self.went_on and end == "stopped"
        self.checkpoint += kept // 2 if end == "failed" else kept


@given(
    whole=st.integers(100, 400),
    segments=st.lists(
        st.tuples(
            st.integers(0, 40),
            st.integers(0, 20),
            st.sampled_from(["stopped", "done", "failed", "lost"]),
            st.booleans(),
        ),
        max_size=8,
    ),
)
def test_progress_never_goes_backwards_by_what_drivers_hand_out(
    whole: int, segments: list[tuple[int, int, str, bool]]
) -> None:
    """Without the volume, and before a checkpoint step has told anything."""
    story = Told(whole)
    for steps, back, end, is_missed in segments:
        if story.checkpoint < whole - 1:
            story.segment(steps, back, end, is_missed=is_missed)

    assert story.seen == sorted(story.seen)


@dataclass
class Story:
    """A job of so many hundredths of an epoch, its checkpoint, and its drivers' nodes."""

    whole: int
    checkpoint: int = 0
    nodes: list[Object] = field(default_factory=list)
    ends: list[int] = field(default_factory=list)
    told: dict[str, float] = field(default_factory=dict)
    seen: list[float] = field(default_factory=list)

    def show(self, progress: str, phase: str) -> None:
        """The last driver's node is so now; what is then shown of the job is noted."""
        self.nodes[-1] = {**driver(progress, phase), "id": str(len(self.nodes))}
        done, total = reached(self.nodes, self.whole / 100, self.told)
        self.seen.append(max(done, *self.ends, 0) / total if total else 0.0)

    def segment(self, steps: int, end: str) -> None:
        """A driver begins at the checkpoint, goes on for some steps, and is stopped, fails or is lost.

        Only one that is lost does not write down where it ended (``end.json``), and then lowers no M.
        """
        remained = self.whole - self.checkpoint
        self.nodes.append(driver("0/1", "Pending"))
        for done in range(min(steps, remained - 1) + 1):
            self.show(f"{done}/{remained}", "Running")
        if end == "lost":
            self.show(self.nodes[-1]["progress"], "Error")
            return
        self.ends.append(self.checkpoint + done)
        self.show(self.nodes[-1]["progress"], "Running")
        lowered = f"{done}/{max(done, 1)}"
        self.show(lowered, "Running")
        self.show(lowered, "Succeeded" if end == "stopped" else "Failed")
        self.told[self.nodes[-1]["id"]] = (self.ends[-1] + 0.4 * (-1) ** len(self.nodes)) / 100  # N was rounded
        self.show(lowered, "Succeeded" if end == "stopped" else "Failed")
        self.checkpoint += done if end == "stopped" else done // 2


@given(
    whole=st.integers(100, 400),
    segments=st.lists(st.integers(1, 40), min_size=1, max_size=8),
)
def test_progress_never_goes_backwards_over_graceful_resizes(whole: int, segments: list[int]) -> None:
    """However often a job is stopped and resumed, each look shows at least as much as the one before."""
    story = Story(whole)
    for steps in segments:
        if story.checkpoint < whole - 1:
            story.segment(steps, "stopped")

    assert story.seen == sorted(story.seen)
    assert story.seen[-1] == pytest.approx(story.checkpoint / whole)


@given(
    whole=st.integers(100, 400),
    segments=st.lists(st.integers(0, 40), min_size=1, max_size=8),
    last=st.integers(1, 40),
)
def test_progress_never_goes_backwards_over_losses(whole: int, segments: list[int], last: int) -> None:
    """Drivers that are lost one after the other take nothing back, and the one that stays is counted from its begin."""
    story = Story(whole)
    for steps in segments:
        story.segment(steps, "lost")
    story.segment(last, "lost")

    assert story.seen == sorted(story.seen)
    assert story.seen[-1] == pytest.approx(max(*segments, last) / whole)


@given(
    whole=st.integers(100, 400),
    segments=st.lists(st.tuples(st.integers(0, 40), st.sampled_from(["stopped", "failed", "lost"])), max_size=8),
)
def test_progress_never_goes_backwards_whatever_becomes_of_the_drivers(
    whole: int, segments: list[tuple[int, str]]
) -> None:
    """Stops, failures and losses in any order; a driver that fails goes on from a checkpoint before its end."""
    story = Story(whole)
    for steps, end in segments:
        if story.checkpoint < whole - 1:
            story.segment(steps, end)

    assert story.seen == sorted(story.seen)

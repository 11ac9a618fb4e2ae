"""A job's progress never goes backwards: played over whole lives, looked at after every change that anybody can see.

Drivers write what ``runtime/driver_progress.py`` writes. They are killed at any moment or stopped, Argo misses lines,
outputs come after the phase, checkpoint steps are lost before or after their verdict. Where nobody knows, nothing is
shown; what is shown after that is still not less than what was shown before.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from hypothesis import given
from hypothesis import strategies as st

from voda_flows.objects import Object
from voda_flows.report.progress import Kept, reached

#: Places are counted in thousandths of an epoch, so that hundredths are rounded.
PER_HUNDREDTH = 10
#: How a driver ends: before its training begins (killed, or stopped); in its midst; with a word of its own; with its
#: end written down, but killed before the line that lowers M, or after it.
ENDS = ("killed early", "stopped early", "lost", "failed", "stopped", "cut before", "cut after")
AS_ASKED = frozenset({"stopped early", "stopped", "cut before", "cut after"})


@dataclass(frozen=True, kw_only=True)
class Life:
    """What becomes of one segment.

    Attributes:
        steps: How far each step goes, in thousandths.
        back: How much is lost in place before the end.
        kept: Percent of what it did that is in a checkpoint, where it did not end as asked.
        end: One of ``ENDS``.
        missed: Whether Argo misses a line, by step; the last one is the last line of all.
        outputs: Whether the word comes with the phase, after it, or never.
        checkpoint: Whether its checkpoint step told, was lost after its verdict, or before.
    """

    steps: tuple[int, ...]
    back: int
    kept: int
    end: str
    missed: tuple[bool, ...]
    outputs: str
    checkpoint: str


def rounded(place: int) -> int:
    """Hundredths of an epoch, as Python rounds them."""
    return round(place / PER_HUNDREDTH)


@dataclass
class Story:
    """A job of so many hundredths, its volume and its nodes.

    ``seen`` has what was shown after each change, None where nobody knew.
    """

    whole: int
    at: int = 0
    went_on: bool = True
    nodes: list[Object] = field(default_factory=list)
    told: dict[str, Kept] = field(default_factory=dict)
    seen: list[tuple[int, int] | None] = field(default_factory=list)

    def look(self, **changes: object) -> None:
        """The last driver's node has changed."""
        self.nodes[-1] = {**self.nodes[-1], **changes}
        self.seen.append(reached(self.nodes, self.whole / 100, self.told))

    def live(self, life: Life) -> None:
        """One segment, from its driver's node to the end of its checkpoint step."""
        self.nodes.append({"id": str(len(self.nodes))})
        self.look(progress="0/1", phase="Pending")
        began, furthest, end, shows = self.at, self.at, 0, not life.end.endswith("early")
        if life.end == "killed early":
            self.look(phase="Error")
        elif life.end == "stopped early":
            self.look(phase="Succeeded", progress="1/1", outputs={} if life.outputs == "late" else said(""))
            self.look(outputs=said(""))
        else:
            furthest = self.train(life)
            end = max(furthest - life.back, began)
            self.close(life, began, furthest, end)
        if life.checkpoint == "told":
            ended = life.end not in ("killed early", "lost")
            kept = Kept(began=rounded(began), furthest=rounded(furthest)) if shows else Kept()
            self.told[self.nodes[-1]["id"]] = Kept(
                began=kept.began, furthest=kept.furthest, end=rounded(end) if ended else None
            )
            self.look()
        self.at = end if shows and life.end in AS_ASKED else began + (furthest - began) * life.kept // 100
        if life.end == "failed":
            self.at = min(self.at, end)
        self.went_on = self.went_on and life.end in AS_ASKED and life.checkpoint != "lost"

    def train(self, life: Life) -> int:
        """Steps, of which Argo reads what it does not miss; the furthest point."""
        began, place = self.at, self.at
        whole = self.whole - rounded(began)
        for step, is_missed in zip((0, *life.steps), life.missed, strict=False):
            place = min(place + step, self.whole * PER_HUNDREDTH - 1)
            if not is_missed:
                done = min(rounded(place) - rounded(began), whole - 1)
                self.look(progress=f"{done}/{whole}", phase="Running")
        return place

    def close(self, life: Life, began: int, furthest: int, end: int) -> None:
        """The driver's last line, its pod's end, and its word."""
        whole = self.whole - rounded(began)
        done = min(rounded(furthest) - rounded(began), whole - 1)
        word = f"{done}/{whole} {rounded(end) - rounded(began)}"
        if life.end in {"lost", "cut before"}:
            self.look(phase="Error")
            return
        if not life.missed[-1]:
            self.look(progress=f"{done}/{max(done, 1)}" if self.went_on else f"{done}/{whole}")
        if life.end == "cut after":
            self.look(phase="Failed")
            return
        phase = "Succeeded" if life.end == "stopped" else "Failed"
        counted = self.nodes[-1]["progress"].partition("/")[2]
        progress = f"{counted}/{counted}" if phase == "Succeeded" else self.nodes[-1]["progress"]
        self.look(phase=phase, progress=progress, **({"outputs": said(word)} if life.outputs == "at once" else {}))
        if life.outputs == "late":
            self.look(outputs=said(word))


def said(word: str) -> Object:
    """A driver's outputs."""
    return {"parameters": [{"name": "progress", "value": word}]}


def lives(outputs: tuple[str, ...], checkpoint: tuple[str, ...]) -> st.SearchStrategy[list[Life]]:
    """Segments of which these may be so."""
    life = st.builds(
        Life,
        steps=st.lists(st.integers(0, 150), max_size=3).map(tuple),
        back=st.integers(0, 120),
        kept=st.integers(0, 100),
        end=st.sampled_from(ENDS),
        missed=st.tuples(*[st.booleans()] * 4),
        outputs=st.sampled_from(outputs),
        checkpoint=st.sampled_from(checkpoint),
    )
    return st.lists(life, min_size=1, max_size=7)


def played(whole: int, segments: list[Life]) -> Story:
    """The story of a job."""
    story = Story(whole)
    for life in segments:
        if rounded(story.at) < whole:
            story.live(life)
    return story


@given(whole=st.integers(1, 4), segments=lives(("at once", "late"), ("told", "lost after its verdict", "lost")))
def test_progress_never_goes_backwards_whatever_is_lost_at_whatever_moment(whole: int, segments: list[Life]) -> None:
    """Also over the moments at which nobody knows."""
    shown = [found for found in played(whole * 100, segments).seen if found is not None]

    assert shown == sorted(shown)
    assert {total for _, total in shown} <= {0, whole * 100}


@given(whole=st.integers(1, 4), segments=lives(("at once",), ("told",)))
def test_it_is_known_at_every_moment_where_nothing_is_lost_but_drivers(whole: int, segments: list[Life]) -> None:
    """A driver's outputs come with its end, and each checkpoint step tells: whatever kills drivers, voda shows it."""
    story = played(whole * 100, segments)

    assert None not in story.seen


@given(whole=st.integers(1, 4), segments=lives(("at once", "late"), ("told", "lost after its verdict", "lost")))
def test_what_nobody_knew_is_known_again_once_a_later_driver_is_further(whole: int, segments: list[Life]) -> None:
    """The last driver says that only its last hundredth is left."""
    story = played(whole * 100, segments)
    story.nodes.append({"id": "last", "progress": "98/99", "phase": "Running"})
    story.look()
    story.look(progress="99/99", phase="Succeeded", outputs=said("99/99 99"))

    assert story.seen[-1] == (whole * 100, whole * 100)

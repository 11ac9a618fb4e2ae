"""Files beside the checkpoints, times and pictures."""

from __future__ import annotations

import doctest
import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import pytest

from tests.unit.report.five_jobs import five_jobs
from tests.unit.report.many_jobs import many_jobs
from tests.unit.report.world import START_S
from voda_flows.report import curves, frame, history, lanes, page, statistics, svg, timeline, times
from voda_flows.report.files import SegmentFiles, read_files
from voda_flows.report.record import Record
from voda_flows.report.span import Span
from voda_flows.runtime import reports, segment_record


@pytest.mark.parametrize("module", [times, svg, history, statistics, reports, segment_record])
def test_examples_in_docstrings_hold(module: object) -> None:
    """Every example in a docstring is what comes out."""
    failed, tried = doctest.testmod(module)  # type: ignore[arg-type]

    assert (failed, tried > 0) == (0, True)


def test_files_are_read_by_segment_and_torn_lines_are_left_out(tmp_path: Path) -> None:
    """A line that a crash tore, or that is no object, does not hide the others; other folders are not segments."""
    folder = tmp_path / "segment-2"
    folder.mkdir()
    (folder / "reports.jsonl").write_text('{"epoch": 1}\n[]\n{"epoch": 2}\n{"epo', encoding="utf-8")
    (folder / "resizes.jsonl").write_text('{"kind": "start"}\n', encoding="utf-8")
    (folder / "end.json").write_text('{"outcome": "done"}', encoding="utf-8")
    (tmp_path / "segment-x").mkdir()

    assert read_files(tmp_path) == {
        2: SegmentFiles(rows=({"epoch": 1}, {"epoch": 2}), resizes=({"kind": "start"},), end={"outcome": "done"})
    }


def test_a_job_without_a_folder_has_no_files(tmp_path: Path) -> None:
    """Nothing was written yet: nothing is read."""
    assert read_files(tmp_path / "nowhere") == {}


class _Whole(HTMLParser):
    """Collects tags that are not closed, and addresses that a browser would fetch."""

    VOID = frozenset({"meta", "br", "link", "img", "input"})

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.wrong: list[str] = []
        self.fetched: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.fetched += [value or "" for name, value in attrs if name in ("src", "href", "xlink:href")]
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if self.open.pop() != tag:
            self.wrong.append(tag)


def test_the_page_is_whole_and_needs_no_network() -> None:
    """Every element is closed, nothing is fetched, style and script are inside."""
    text = page.page(five_jobs(), "Voda & friends")
    parser = _Whole()
    parser.feed(text)

    assert (parser.open, parser.wrong, parser.fetched) == ([], [], [])
    assert not re.search(r"https?://|@import|url\((?!#)", text)
    assert "<title>Voda &amp; friends</title>" in text


def test_names_from_outside_are_escaped_in_the_page() -> None:
    """A job may be called anything that YAML allows; markup in messages stays text."""
    made = five_jobs()
    text = page.page(made, '<script>alert("x")</script>')

    assert "<script>alert" not in text


def test_a_page_of_nothing_is_a_page() -> None:
    """Before the first job there is a report too, and it says so."""
    empty = page.page(Record(taken_s=START_S, nodes=(), jobs=()), "Voda report")

    assert "0 of 0" in empty
    assert "No job lived in this span" in empty


def test_the_page_of_hundreds_of_jobs_is_whole_and_small() -> None:
    """About 2 kB a job, however many points they reported; lists and curves are bounded and say so."""
    made = many_jobs(150)
    text = page.page(made, "Voda report")
    parser = _Whole()
    parser.feed(text)

    assert (parser.open, parser.wrong, parser.fetched) == ([], [], [])
    assert len(text) < 450_000
    assert "The 12 that trained longest." in text
    assert "Colours repeat" in text


def test_points_of_a_page_are_bounded_whatever_jobs_reported() -> None:
    """A hundred times the rows make the page hardly bigger."""
    made = many_jobs(40)
    jobs = tuple(
        replace(job, rows=tuple(row | {"time_s": row["time_s"] + n / 100} for row in job.rows for n in range(100)))
        for job in made.jobs
    )

    assert len(page.page(replace(made, jobs=jobs), "r")) < 2.5 * len(page.page(made, "r"))


def test_what_lies_outside_the_span_is_not_drawn() -> None:
    """Bars and marks of a clipped report are those of its span."""
    made = five_jobs()
    late = replace(made, span=Span(from_s=START_S + 100))
    drawn = timeline.slots(late)

    assert "digits w1 on n0\nJan 15 08:00:01" not in drawn
    assert drawn.count('class="bar ') == 7
    assert lanes.lanes(late).count('class="dot shrink"') == 0


def test_a_number_over_time_has_few_corners_and_keeps_its_mean() -> None:
    """What a picture cannot show is averaged, not dropped."""
    steps = [(float(moment), moment % 7) for moment in range(10_000)]

    corners = frame.staircase(steps, 10_000.0)
    area = sum((end - begin) * value for (begin, value), (end, _) in zip(corners[::2], corners[1::2], strict=True))

    assert len(corners) <= 1002
    assert area == pytest.approx(sum(count for _, count in steps), rel=0.01)


@pytest.mark.parametrize(("days", "label"), [(0.5, "12:00"), (5, "Jan 3"), (200, "Jan 31")])
def test_long_spans_are_marked_by_the_clock_and_the_calendar(days: float, label: str) -> None:
    """Times of day within days, days within months; never more than eleven marks."""
    marks = svg.Axis(from_s=0, to_s=days * 86400, left=0, right=1).marks()

    assert label in [said for _, said in marks]
    assert len(marks) <= 11


def test_every_hold_is_a_bar_on_its_slot() -> None:
    """Each slot that a worker held is one bar, with a tip that says who, where and when."""
    made = five_jobs()
    drawn = timeline.slots(made)
    holds = sum(len(held.slots) for job in made.jobs for segment in job.life.segments for held in segment.holdings)

    assert drawn.count('class="bar ') == holds
    assert "digits w0 on n0\nJan 15 08:00:01 to Jan 15 08:01:35 (1m34s)\nfirst step after 5s" in drawn


def test_every_resize_is_a_mark_with_its_reason() -> None:
    """Grown, shrunk, preempted, resumed and ended jobs carry a mark; a reason is in its tip."""
    drawn = lanes.lanes(five_jobs())

    assert [drawn.count(f'class="dot {kind}"') for kind in ("grow", "shrink", "preempt", "resume", "end", "lost")] == [
        1, 2, 2, 2, 3, 1,
    ]  # fmt: skip
    assert "makes room for urgent (0 -&gt; 3)" in drawn


def test_a_worker_is_warming_until_the_first_step_after_it_came() -> None:
    """A start or growth after the grant ends the warming; a worker that left before has none."""
    digits = five_jobs().jobs[0]
    first, last = digits.life.segments[0].holdings[0], digits.life.segments[1].holdings[-1]

    assert timeline.warm_until(digits, first) == START_S + 6
    assert timeline.warm_until(digits, last) == START_S + 154


def test_curves_are_broken_where_a_job_waited() -> None:
    """Each segment is a run of its own; the first metric that a job reported is the one that is drawn."""
    found = curves.curves(five_jobs(), ("validation_loss", "loss"))

    assert [(curve.label, len(curve.runs)) for curve in found] == [("digits", 2), ("text", 2), ("urgent", 1)]


def test_many_rows_are_thinned_but_the_last_is_kept() -> None:
    """A picture has no use for thousands of points."""
    made = five_jobs()
    job = made.jobs[0]
    rows = tuple({"time_s": START_S + number / 50, "loss": 1 / (number + 1), "segment": 0} for number in range(5000))
    many = Record(
        taken_s=made.taken_s,
        nodes=made.nodes,
        jobs=(type(job)(life=job.life, happened=job.happened, rows=rows, numbers=job.numbers),),
    )
    (curve,) = curves.curves(many, ("loss",))

    assert len(curve.runs[0]) <= 700
    assert curve.runs[0][-1] == (START_S + 4999 / 50, 1 / 5000)


@pytest.mark.parametrize(("span", "ticks"), [(9, 10), (60, 7), (175, 6), (4000, 7), (100000, 7)])
def test_axes_have_readable_ticks(span: float, ticks: int) -> None:
    """At most ten round steps, whatever the span."""
    assert len(svg.Axis(from_s=0, to_s=span, left=0, right=1).ticks()) == ticks

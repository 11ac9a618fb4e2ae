"""What segments of one job write of their progress fits together, to the hundredth."""

from __future__ import annotations

import json
from itertools import count, pairwise
from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import given
from hypothesis import strategies as st

from voda_flows.runtime.driver_progress import Places, Progress
from voda_flows.runtime.segment_record import Told, record_text

EPOCHS = 3


def lived(folder: Path, began: float, ended: float) -> tuple[int, int, int]:
    """N, M and E that a segment hands out."""
    places = Places(shown=folder / "progress", kept=folder / "kept", output=folder / "output")
    progress = Progress(places, EPOCHS, clock=count(0, 10).__next__)
    progress.begin(began)
    progress.end(ended)
    counts, _, end = (folder / "output").read_text().partition(" ")
    done, _, whole = counts.partition("/")
    return int(done), int(whole), int(end)


@given(cuts=st.lists(st.floats(0.0, EPOCHS - 0.01), min_size=2, max_size=6).map(sorted))
def test_a_segment_begins_where_the_one_before_it_ended(cuts: list[float]) -> None:
    """What is left of the whole is what those before it did, whatever was rounded."""
    at = 0
    with TemporaryDirectory() as scratch:
        for number, (began, ended) in enumerate(pairwise([0.0, *cuts])):
            folder = Path(scratch, str(number))
            folder.mkdir()
            _, whole, end = lived(folder, began, ended)

            assert EPOCHS * 100 - whole == at
            at += end


def test_the_furthest_point_is_kept_before_it_is_shown_at_the_end_too(tmp_path: Path) -> None:
    """Steps within the last second are written at the end only; a driver in its place shows no less."""
    lived(tmp_path, 1.0, 1.5)

    assert json.loads((tmp_path / "kept").read_text()) == {"begin": 1.0, "furthest": 1.5}


def test_a_record_tells_where_its_segment_began_and_how_far_it_came() -> None:
    """In whole hundredths, however many epochs; nothing where nobody kept it."""
    told = record_text(Told(segment=1, progress={"begin": 1234.561, "furthest": 98765.432}))

    assert json.loads(told)["progress"] == [123456, 9876543]
    assert "progress" not in json.loads(record_text(Told(segment=1, progress={"begin": None, "furthest": "2"})))

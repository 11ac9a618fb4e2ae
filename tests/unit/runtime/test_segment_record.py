"""A segment's record: as small as it must be, and what can still be read from it."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as some

from voda_flows.runtime.segment_record import RECORD_BYTES, Told, record_text, stored_bytes, told_by

WORDS = some.text(max_size=2000)
NUMBERS = some.one_of(some.integers(), some.floats(), some.none(), some.booleans(), WORDS)
ROWS = some.lists(
    some.fixed_dictionaries(
        {"kind": some.sampled_from(["epoch", "step"]), "time_s": NUMBERS, "step": NUMBERS, "loss": NUMBERS},
        optional={"metrics": some.dictionaries(WORDS, NUMBERS, max_size=6)},
    ),
    max_size=30,
)
RESIZES = some.lists(
    some.fixed_dictionaries({"kind": some.sampled_from(["start", "grow"]), "from_size": NUMBERS, "still_s": NUMBERS}),
    max_size=30,
)


@given(rows=ROWS, resizes=RESIZES, words=WORDS, number=NUMBERS)
def test_no_record_is_larger_than_its_bound(
    rows: list[dict[str, Any]], resizes: list[dict[str, Any]], words: str, number: object
) -> None:
    """Whatever a script or a driver wrote down, as it stands in a status; and it is read again."""
    end = {"outcome": words, "step": number, "message": words, "unknown": words}
    told = Told(segment=7, end=end, verdict=end, resizes=tuple(resizes), rows=tuple(rows))
    text = record_text(told)

    assert stored_bytes(text) <= RECORD_BYTES
    assert told_by(text) is not None


def row(step: int, kind: str) -> dict[str, Any]:
    """A report row of a usual script."""
    return {
        "kind": kind,
        "time_s": 1_800_000_000.5 + step,
        "segment": 3,
        "epoch": step // 100,
        "step": step,
        "samples": step * 64,
        "world_size": 4,
        "steps": 100,
        "batch": 64.0,
        "loss": 1 / (step + 1),
        "validation_loss": None,
        "learning_rate": 0.001,
        "compute_s": 1.5,
        "metrics": {"accuracy": 0.123456789},
    }


def test_of_many_rows_and_resizes_those_stay_that_tell_most() -> None:
    """Thinned evenly, first and last kept, epochs before steps; what is left out is counted."""
    rows = tuple(row(step, "epoch" if step % 100 == 0 else "step") for step in range(0, 901, 20))
    resizes = tuple(
        {"kind": "grow", "from_size": n, "to_size": n + 1, "first_step_s": 1_800_000_000.0 + n, "still_s": 0.1234567}
        for n in range(60)
    )
    told = told_by(record_text(Told(segment=3, resizes=resizes, rows=rows)))

    assert told is not None
    assert len(told.resizes) + told.left_out["resizes"] == 60
    assert len(told.rows) + told.left_out["rows"] == len(rows)
    assert min(len(told.resizes), len(told.rows)) >= 8
    assert [told.resizes[index]["from_size"] for index in (0, -1)] == [0, 59]
    assert [told.rows[index]["step"] for index in (0, -1)] == [0, 900]
    assert len([one for one in told.rows if one["kind"] == "epoch"]) == 10
    assert told.rows[-1] == {
        "kind": "epoch",
        "time_s": 1_800_000_900.5,
        "segment": 3,
        "epoch": 9,
        "step": 900,
        "samples": 57600,
        "world_size": 4,
        "loss": 0.0011099,
        "learning_rate": 0.001,
        "metrics": {"accuracy": 0.12346},
    }


def test_a_short_segment_is_told_whole() -> None:
    """Nothing is left out where there is room."""
    rows = tuple(row(step, "epoch") for step in range(0, 501, 100))
    told = told_by(record_text(Told(segment=3, end={"outcome": "done", "step": 500}, rows=rows)))

    assert told is not None
    assert (told.end, [one["step"] for one in told.rows], told.left_out["rows"]) == (
        {"outcome": "done", "step": 500},
        [0, 100, 200, 300, 400, 500],
        0,
    )


def test_long_words_are_cut() -> None:
    """A traceback of a script has no room: its beginning stays."""
    told = told_by(record_text(Told(segment=0, end={"message": "RuntimeError: " + '"' * 5000})))

    assert told is not None
    assert told.end["message"].startswith("RuntimeError: ")
    assert told.end["message"].endswith("…")


@pytest.mark.parametrize("text", ["", "{}", "none", "[]", '{"version": 2, "segment": 0}', '{"version": 1}'])
def test_what_is_no_record_tells_nothing(text: str) -> None:
    """The output's default, or one of a version that is not known."""
    assert told_by(text) is None


def test_a_record_is_one_line_of_json_that_people_can_query() -> None:
    """`kubectl get workflow -o json | jq` finds names that docs/contracts.md has."""
    record = json.loads(record_text(Told(segment=1, rows=(row(5, "epoch"),))))

    assert list(record) == ["version", "segment", "from_s", "end", "verdict", "resizes", "rows", "left_out"]
    assert record["rows"]["columns"][:4] == ["kind", "time_s", "epoch", "step"]
    assert (record["from_s"], record["rows"]["values"][0][1]) == (1_800_000_005, 0.5)

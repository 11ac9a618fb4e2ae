"""The allocation document: read by its schema, taken only by the driver it is for."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from voda_flows.runtime.document import Addressee, Allocation, DocumentFile, Worker, parse, why_ignored
from voda_flows.runtime.errors import BadDocument

BODY: dict[str, Any] = {
    "version": 1,
    "job": "uid/train",
    "driver_uid": "d1",
    "segment": 0,
    "generation": 3,
    "min_workers": 1,
    "workers": [{"id": "w0", "role": "worker", "address": "127.1.0.5", "node": "n0", "slots": 2}],
    "stop": None,
}
ME = Addressee(job="uid/train", driver_uid="d1", segment=0)


def test_a_document_is_read_as_written() -> None:
    """Every field of the contract arrives."""
    assert parse(json.dumps(BODY)) == Allocation(
        job="uid/train",
        driver_uid="d1",
        segment=0,
        generation=3,
        min_workers=1,
        workers=(Worker(id="w0", role="worker", address="127.1.0.5", node="n0", slots=2),),
        stop=None,
    )


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"version": 2}, "expected version 1"),
        ({"generation": "3"}, r"at \$.generation: expected a whole number >= 0, got '3'"),
        ({"generation": True}, r"at \$.generation"),
        ({"min_workers": 0}, r"at \$.min_workers: expected a whole number >= 1, got 0"),
        ({"stop": "now"}, r"at \$.stop: expected null or 'checkpoint', got 'now'"),
        ({"workers": None}, r"at \$.workers: expected a list"),
        ({"workers": [7]}, r"at \$.workers\[0\]: expected an object, got 7"),
        ({"workers": [{"id": "w0"}]}, r"at \$.workers\[0\].address: expected text, got None"),
        ({"workers": BODY["workers"] * 2}, r"expected ids to differ, got \['w0', 'w0'\]"),
        ({"version": True}, "expected version 1"),
        ({"generation": 2**40}, r"at \$.generation: expected at most 2147483647, got 1099511627776"),
        ({"workers": [{**BODY["workers"][0], "slots": 10**9}]}, r"slots: expected at most 1024, got 1000000000"),
        ({"workers": [{**BODY["workers"][0], "id": "w0\n"}]}, r"id: expected at most 253 visible ASCII characters"),
        ({"workers": [{**BODY["workers"][0], "id": "\ud800"}]}, r"id: expected at most 253 visible ASCII characters"),
    ],
)
def test_a_fault_is_named_with_its_path(change: dict[str, Any], says: str) -> None:
    """What is wrong with a document is said where it is wrong."""
    with pytest.raises(BadDocument, match=says):
        parse(json.dumps({**BODY, **change}))


def test_what_is_no_document_is_said_to_be_none() -> None:
    """Text that is no JSON is quoted in part."""
    with pytest.raises(BadDocument, match="expected JSON, got 'workers'"):
        parse("workers")


@pytest.mark.parametrize(
    "text", ["[" * 100_000, '{"version": 1, "version": 1}', '{"version": ' + "9" * 5000, " " * 300_000]
)
def test_what_no_reader_should_have_to_read_is_refused(text: str) -> None:
    """Nested too deeply, a key that stands twice, a number of too many digits, too long: no crash of the driver."""
    with pytest.raises(BadDocument, match="allocation document: expected"):
        parse(text)


@pytest.mark.parametrize(
    ("change", "seen", "reason"),
    [
        ({}, 2, None),
        ({}, 3, "generation 3 is not above 3"),
        ({"driver_uid": "d2"}, -1, "it is for driver_uid 'd2', this is 'd1'"),
        ({"segment": 1}, -1, "it is for segment 1, this is 0"),
        ({"job": "uid/other"}, -1, "it is for job 'uid/other', this is 'uid/train'"),
    ],
)
def test_only_a_newer_document_for_this_driver_counts(change: dict[str, Any], seen: int, reason: str | None) -> None:
    """Job, driver, segment and generation all have to fit."""
    assert why_ignored(parse(json.dumps({**BODY, **change})), ME, seen) == reason


def test_the_file_is_read_once_for_every_change(tmp_path: Path) -> None:
    """No file and no text are no document; a file put in its place is a change even with the same length."""
    path = tmp_path / "allocation"
    file = DocumentFile(path)
    found = [file.changed()]
    for text in ("", "one", "two"):
        (tmp_path / "new").write_text(text)
        (tmp_path / "new").replace(path)
        found += [file.changed(), file.changed()]

    assert found == [None, None, None, "one", None, "two", None]

"""YAML read strictly."""

from __future__ import annotations

import pytest

from scheduler_core.errors import InvalidValue
from voda_flows.submission import documents
from voda_flows.submission.documents import parse


def one(text: str) -> object:
    """The one document of a text."""
    (found,), _ = parse(text, source="t")
    return found


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ("n", "n"),
        ("yes", "yes"),
        ("on", "on"),
        ("true", True),
        ("null", None),
        ("", None),
        ("012", 12),
        ("0o14", 12),
        ("0x1f", 31),
        ("1e3", 1000.0),
        ("1_000", "1_000"),
        ("12:30", "12:30"),
        ("2026-01-31", "2026-01-31"),
        ("'4'", "4"),
        (".5", 0.5),
    ],
)
def test_plain_words_are_read_by_yaml_1_2(written: str, read: object) -> None:
    """Only true and false are booleans, times and sexagesimals stay text, a leading zero is decimal."""
    assert one(f"a: {written}") == {"a": read}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a: 1\nb: 2\na: 3", "line 3: expected each key once, found `a` again (first in line 1)"),
        ("- 1\n- 2", "line 1: expected a document with fields, found list"),
        ("just text", "expected a document with fields, found str"),
        ("a: [1, 2", "expected YAML, found"),
        ("? [a, b]\n: 1", "line 1: expected text as a key, found a sequence"),
        ("a: !!python/object:os.system x", "line 1: expected a value of JSON, found the tag !!python/object:os.system"),
        ("a: " + "[" * 150 + "]" * 150, "at most 100 levels"),
        ("a: &x [*x]", "values with aliases expanded"),
        ("a: 1\nb: !!int x", "line 2: expected a value of JSON, found the tag !!int"),
        ("a: !!timestamp 2024-01-01", "line 1: expected a value of JSON, found the tag !!timestamp"),
        ("a: !!binary aGVsbG8=", "found the tag !!binary"),
        ("a: !!set {b, c}", "found the tag !!set"),
        ("!!map [a]", "found the tag !!map"),
        ("a: " + "9" * 5000, "line 1: expected a number of at most 1000 digits, found 5000"),
    ],
)
def test_what_is_ambiguous_or_dangerous_is_refused_with_its_line(text: str, said: str) -> None:
    """A message names the source, the line and what was found."""
    with pytest.raises(InvalidValue) as wrong:
        parse(text, source="job.yaml")

    assert str(wrong.value).startswith("job.yaml")
    assert said in str(wrong.value)


def test_a_small_file_cannot_grow_large() -> None:
    """Nine levels of nine aliases each would be hundreds of millions of values."""
    levels = ['a0: &a0 ["x","x","x","x","x","x","x","x","x"]']
    levels += [f"a{level}: &a{level} [{','.join([f'*a{level - 1}'] * 9)}]" for level in range(1, 9)]

    with pytest.raises(InvalidValue, match="with aliases expanded"):
        parse("\n".join(levels), source="bomb.yaml")


def test_aliases_and_merges_in_measure_are_fine() -> None:
    """What people use aliases for works."""
    assert one("base: &b {x: 1, y: 2}\nmine: {<<: *b, y: 3}") == {"base": {"x": 1, "y": 2}, "mine": {"x": 1, "y": 3}}


def test_a_file_that_no_cluster_would_take_is_refused() -> None:
    """Size is checked before anything is parsed."""
    with pytest.raises(InvalidValue, match=f"at most {documents.MAX_BYTES} bytes"):
        parse("a: " + "x" * documents.MAX_BYTES, source="big.yaml")


def test_several_documents_and_empty_ones() -> None:
    """Documents are divided by ---; empty ones do not count."""
    assert parse("---\na: 1\n---\n---\nb: 2\n", source="t")[0] == [{"a": 1}, {"b": 2}]


def test_words_that_kubectl_takes_for_booleans_are_remarked_on() -> None:
    """A plain `n` means something else to kubectl: the document works here, and its author is told."""
    found, remarks = parse("name: n\nquoted: 'n'\nother: north\n", source="job.yaml")

    assert found == [{"name": "n", "quoted": "n", "other": "north"}]
    assert remarks == ["job.yaml: line 1: `n` is text here but a boolean to kubectl; quote it"]

"""YAML read strictly."""

from __future__ import annotations

import pytest

from scheduler_core.errors import InvalidValue
from voda_flows.submission import documents
from voda_flows.submission.documents import parse


def one(text: str) -> object:
    """The one document of a text."""
    (found,), _ = parse(text, source="t")
    return found.body


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ("north", "north"),
        ("nO", "nO"),
        ("'no'", "no"),
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
        ("a: 1\nb: 2\na: 3", "job.yaml:3:1: expected each key once, found `a` again (first in line 1)"),
        ("- 1\n- 2", "job.yaml:1:1: expected a document with fields, found a list"),
        ("just text", "expected a document with fields, found a piece of text"),
        ("a: [1, 2", "job.yaml:2:1: expected YAML: did not find expected"),
        ("? [a, b]\n: 1", "job.yaml:1:3: expected text as a key, found a sequence"),
        (
            "a: !!python/object:os.system x",
            "job.yaml:1:4: a: expected a value of JSON, found the tag !!python/object:os.system",
        ),
        ("a: " + "[" * 150 + "]" * 150, "at most 100 levels"),
        ("a: &x [*x]", "values with aliases expanded"),
        ("a: 1\nb: !!int x", "job.yaml:2:4: b: expected a value of JSON, found the tag !!int"),
        ("a: !!timestamp 2024-01-01", "job.yaml:1:4: a: expected a value of JSON, found the tag !!timestamp"),
        ("a: !!binary aGVsbG8=", "found the tag !!binary"),
        ("a: !!set {b, c}", "found the tag !!set"),
        ("!!map [a]", "found the tag !!map"),
        ("a: " + "9" * 5000, "job.yaml:1:4: expected a whole number of at most 64 bits, found one of 5000 digits"),
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
    assert one("base: &b {x: 1, z: 2}\nmine: {<<: *b, z: 3}") == {"base": {"x": 1, "z": 2}, "mine": {"x": 1, "z": 3}}


def test_a_file_that_no_cluster_would_take_is_refused() -> None:
    """Size is checked before anything is parsed."""
    with pytest.raises(InvalidValue, match=f"at most {documents.MAX_BYTES} bytes"):
        parse("a: " + "x" * documents.MAX_BYTES, source="big.yaml")


def test_several_documents_and_empty_ones() -> None:
    """Documents are divided by ---; empty ones do not count."""
    assert [one.body for one in parse("---\na: 1\n---\n---\nb: 2\n", source="t")[0]] == [{"a": 1}, {"b": 2}]


@pytest.mark.parametrize("word", ["n", "y", "no", "Yes", "ON", "off"])
@pytest.mark.parametrize(("text", "at"), [("name: {}", "1:7: name: "), ("a: 1\n{}: 1", "2:1: ")])
def test_words_that_kubectl_takes_for_booleans_are_refused(word: str, text: str, at: str) -> None:
    """As a name or as a value they would mean something else here than there; quoted they mean the same everywhere."""
    with pytest.raises(InvalidValue) as wrong:
        parse(text.format(word), source="job.yaml")

    assert str(wrong.value).startswith(f"job.yaml:{at}expected text, true or false")
    assert f"the bare word `{word}`, which kubectl and argo read as" in str(wrong.value)
    assert one(text.format(f"'{word}'"))


def test_numbers_that_kubectl_reads_as_others_are_remarked_on() -> None:
    """A leading zero is octal to YAML 1.1: the document works here, and its author is told."""
    found, remarks = parse("a: 012\nb: '012'\nc: 12\nd: 1_0\n", source="job.yaml")

    assert [each.body for each in found] == [{"a": 12, "b": "012", "c": 12, "d": "1_0"}]
    assert remarks == [
        "job.yaml:1:4: `012` is another number to kubectl than here; put it in quotes",
        "job.yaml:4:4: `1_0` is another number to kubectl than here; put it in quotes",
    ]


def test_keys_are_text_as_they_are_written() -> None:
    """A label called 1 or true is called so."""
    assert one("{1: a, true: b, 0x1f: c}") == {"1": "a", "true": "b", "0x1f": "c"}


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"a: 1\nb: \xff\n", "job.yaml:2:4: expected UTF-8 text, found the byte 0xff"),
        ("a: 1\n".encode("utf-16"), "job.yaml:1:1: expected UTF-8 text, found UTF-16"),
        (b"x" * (documents.MAX_BYTES + 1), "job.yaml: expected at most 1000000 bytes, found more"),
    ],
)
def test_what_is_no_text_is_refused(content: bytes, said: str) -> None:
    """With line and column, before anything is parsed."""
    with pytest.raises(InvalidValue) as wrong:
        documents.decoded(content, source="job.yaml")

    assert str(wrong.value).startswith(said)


def test_a_byte_order_mark_is_no_content() -> None:
    """Editors write it, kubectl takes it."""
    assert one(documents.decoded(b"\xef\xbb\xbfa: 1\n", source="t")) == {"a": 1}


def test_fields_know_where_they_stand() -> None:
    """Of a path that is not written, the place is that of what lies nearest above it; keys may have dots in them."""
    text = "metadata:\n  labels:\n    a.b/c: x\nspec:\n  list:\n    - name: one\n"
    (found,), _ = parse(text, source="job.yaml")

    paths = ("metadata.labels.a.b/c", "spec.list[0].name", "spec.list[0].value", "spec.list[7]", "nothing")
    assert [found.place(path) for path in paths] == [
        "job.yaml:3:5",
        "job.yaml:6:7",
        "job.yaml:6:7",
        "job.yaml:5:3",
        "job.yaml:1:1",
    ]


def test_a_merged_mapping_may_be_used_before_it_is_finished() -> None:
    """What an anchor merges in, and lays over it, is no key that stands twice."""
    text = "a: &a {x: 1}\nd: {e: {f: &b {<<: *a, x: 2}}}\nc: {<<: *b}\n"

    assert one(text) == {"a": {"x": 1}, "d": {"e": {"f": {"x": 2}}}, "c": {"x": 2}}


def test_aliases_cannot_nest_deeper_than_brackets_may() -> None:
    """A chain of anchors, each in the next, is as deep as it is long."""
    chain = "\n".join(["a0: &a0 [x]", *(f"a{level}: &a{level} [*a{level - 1}]" for level in range(1, 200))])

    with pytest.raises(InvalidValue, match="at most 100 levels of nesting with aliases expanded"):
        parse(chain, source="t")

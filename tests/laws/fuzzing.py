"""What may be thrown at the readers, and what must hold whatever it is: no crash but the documented refusals.

The laws in ``test_fuzz_*.py`` try a few hundred cases each; ``make show AREA=local`` throws for minutes.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

from hypothesis import strategies as st

from scheduler_core.errors import InvalidValue
from tests.unit.submission.bad_inputs import BAD_INPUTS
from voda_flows.local.argo.conditions import should_run
from voda_flows.local.argo.expressions import names, parse
from voda_flows.local.argo.substitute import pieces, replace, substitute
from voda_flows.runtime import document
from voda_flows.runtime.errors import BadDocument
from voda_flows.submission import documents
from voda_flows.submission.checks import faults
from voda_flows.submission.prepare import Wishes, prepared
from voda_flows.submission.world import World, offline_world
from voda_flows.wire import read_document, read_gate_workers

T = TypeVar("T")
LONG = 4000
WISHES = Wishes(parameters={})

YAML_WORDS = (
    *("a", ": ", ":", " ", "\n", "\n  ", "- ", "? ", "[", "]", "{", "}", ", ", "&a ", "*a", "<<: ", "|", ">", "|2-\n"),
    *("'", '"', "# ", "\n---\n", "\n...\n", "%YAML 1.1\n", "!!str ", "!!binary ", "!x ", "\t", "no", "~", "1e9"),
    *(".inf", "0x", "0o7", "012", "\\", "\ufeff", "\0", "\x85", "\u2028", "\ud7ff", "=", "9" * 40, "[" * 120),
)
EXPRESSION_WORDS = (
    *("{{", "}}", "{", "}", "{{=", "{{x}}", "{{ x }}", "{{=x + 1}}", "x", "y.z", "['q']", "item"),
    *("inputs.parameters.n", "q", "n", "f"),
    *("1", "0", "9" * 19, "1.5", "'t'", '"t"', "true", "nil", "+", "-", "*", "/", "%", "**", "==", "!=", "<", ">="),
    *("&&", "||", "!", "?", ":", "(", ")", ",", " ", "asInt(", "asFloat(", "len(", "string(", "and", "not ", "\\", "$"),
)
VARIABLES: Mapping[str, Any] = {
    "x": "7", "y.z": "{{x}}", "item": "[1, 2]", "inputs.parameters.n": "=1+1", "q": True, "n": 10**18, "f": 1e308,
}  # fmt: skip
BODY: Mapping[str, Any] = {
    "version": 1, "job": "uid/train", "driver_uid": "d1", "segment": 0, "generation": 3, "min_workers": 1,
    "workers": [{"id": "w0", "role": "worker", "address": "127.1.0.5", "node": "n0", "slots": 2}], "stop": None,
}  # fmt: skip

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=20,
)


@cache
def world() -> World:
    """The shipped templates, read once."""
    return offline_world()


# Strategies made once: making them anew for each case costs more than the case.
_FEW, _PLACES, _LENGTHS = st.integers(1, 4), st.integers(0, LONG), st.integers(0, 40)


@cache
def _one_of(texts: tuple[str, ...]) -> st.SearchStrategy[str]:
    return st.sampled_from(texts)


@cache
def _pieces(words: tuple[str, ...]) -> st.SearchStrategy[str | None]:
    """What is put in the place of a piece of text; None for that piece twice."""
    return st.sampled_from(words) | st.none() | st.text(max_size=5)


@st.composite
def spoilt(draw: st.DrawFn, whole: tuple[str, ...], words: tuple[str, ...]) -> str:
    """A text that was right, or nearly, with some pieces cut, doubled, or replaced."""
    text = draw(_one_of(whole))
    for _ in range(draw(_FEW)):
        start = draw(_PLACES) % (len(text) + 1)
        end = start + draw(_LENGTHS)
        piece = draw(_pieces(words))
        text = (text[:start] + (text[start:end] * 2 if piece is None else piece) + text[end:])[:LONG]
    return text


def soup(words: tuple[str, ...], *, most: int = 60) -> st.SearchStrategy[str]:
    """Words of a language in any order, some of them many times."""
    repeated = st.tuples(st.sampled_from(words), st.integers(1, 300)).map(lambda pair: pair[0] * pair[1])
    return st.lists(st.sampled_from(words) | repeated, max_size=most).map("".join)


RIGHT_FILES = tuple(
    path.read_text(encoding="utf-8") for path in sorted((Path(__file__).parents[2] / "templates").rglob("*.yaml"))
)
FILES: tuple[str, ...] = (
    *(text for text in RIGHT_FILES if len(text) < LONG),
    *(bad.text for bad in BAD_INPUTS if isinstance(bad.text, str) and len(bad.text) < LONG),
)


def yaml_files() -> st.SearchStrategy[bytes]:
    """Files of documents, good, spoilt and senseless."""
    texts = spoilt(FILES, YAML_WORDS) | soup(YAML_WORDS) | st.text(max_size=200)
    return texts.map(lambda text: text.encode("utf-8", "replace")) | st.binary(max_size=200)


def expressions() -> st.SearchStrategy[str]:
    """Texts with tags and conditions, good, spoilt and senseless."""
    whole = ("a {{x}} b {{=asInt(x) + 1}}", "{{steps.a.status}} == Succeeded && !(1 > 2)", "x ? len('a') : -y.z ** 2")
    return spoilt(whole, EXPRESSION_WORDS) | soup(EXPRESSION_WORDS) | st.text(max_size=100)


@st.composite
def _spoilt_body(draw: st.DrawFn) -> str:
    """The JSON of a document with some values replaced by anything."""
    body: Any = json.loads(json.dumps(BODY))
    for _ in range(draw(st.integers(1, 3))):
        holder = draw(st.sampled_from([body, body["workers"][0]])) if _has_worker(body) else body
        holder[draw(st.sampled_from(sorted(holder)))] = draw(JSON)
    return json.dumps(body)


def _has_worker(body: Any) -> bool:
    workers = body.get("workers")
    return isinstance(workers, list) and bool(workers) and isinstance(workers[0], dict) and bool(workers[0])


def allocation_documents() -> st.SearchStrategy[str]:
    """Allocation documents, good, spoilt and senseless."""
    whole = json.dumps(BODY)
    words = ('"', "{", "}", "[", "]", ",", ":", "null", "1e999", "NaN", "\\ud800", '"id"', "-", "9" * 5000, "[" * 2000)
    deep = st.integers(1, 100_000).map(lambda depth: "[" * depth)
    return _spoilt_body() | spoilt((whole,), words) | JSON.map(json.dumps) | deep | st.text(max_size=50)


def outcome(reader: Callable[[], T], refusal: type[Exception]) -> tuple[T | None, str]:
    """What a reader made of it, or the words of its refusal, which has some; any other exception is a crash."""
    try:
        return reader(), ""
    except refusal as wrong:
        if not str(wrong):
            raise AssertionError("expected a refusal to say why, got no words") from wrong
        return None, str(wrong)


def yaml_is_read_or_refused(content: bytes) -> None:
    """A file is refused with its name, or read as JSON values whose places are known; a second time alike."""
    found, said = outcome(lambda: documents.parse(documents.decoded(content, source="f"), source="f")[0], InvalidValue)
    if found is None:
        assert said.startswith("f:")
        return
    for one in found:
        assert json.loads(json.dumps(one.body, allow_nan=False)) == one.body
        assert all(one.place(str(name)).startswith("f:") for name in one.body)
    again, _ = documents.parse(documents.decoded(content, source="f"), source="f")
    assert again == found
    ready, _ = outcome(lambda: prepared(found, WISHES, workdir=Path("/")), InvalidValue)
    assert all(isinstance(fault, InvalidValue) for fault in faults(ready or (), world()))


def text_is_substituted_or_refused(text: str) -> None:
    """What has no known variable stays as it is; conditions and expressions have a value or are refused."""
    parts = pieces(text)
    assert "".join(f"{plain}{{{{{tag}}}}}" for plain, tag in parts[:-1]) + parts[-1][0] == text
    outcome(lambda: replace(text, VARIABLES), InvalidValue)
    outcome(lambda: substitute({text: [text]}, VARIABLES), InvalidValue)
    outcome(lambda: names(parse(text)), InvalidValue)
    outcome(lambda: should_run(text), InvalidValue)


def document_is_read_or_refused(text: str) -> None:
    """The driver takes a document or says why not; the scheduler, which reads it back, takes it or does not."""
    found, said = outcome(lambda: document.parse(text), BadDocument)
    if found is None:
        assert said.startswith("allocation document")
        assert len(said) < LONG
    else:
        assert document.parse(text) == found
        assert document.why_ignored(found, document.Addressee(job="j", driver_uid="d", segment=0), -1)
    read_document(text)
    outcome(lambda: read_gate_workers(text), InvalidValue)


TARGETS: Mapping[str, tuple[Callable[[], st.SearchStrategy[Any]], Callable[[Any], None]]] = {
    "YAML reader": (yaml_files, yaml_is_read_or_refused),
    "template substitution": (expressions, text_is_substituted_or_refused),
    "allocation document": (allocation_documents, document_is_read_or_refused),
}
"""By name: what is thrown, and what must hold."""

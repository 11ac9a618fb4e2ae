"""YAML documents as users write them, read strictly: nothing is guessed, nothing is dropped, nothing explodes.

A word that kubectl and argo would read as a boolean (YAML 1.1: ``no``, ``on``, ``y``) is refused, not guessed at; a key
may stand once; aliases may not blow a small file up. A fault names the file, the line and the column.
"""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterator
from typing import Any, Final

import yaml

from scheduler_core.errors import InvalidValue
from voda_flows.submission import nodes
from voda_flows.submission.places import Document

MAX_BYTES: Final = 1_000_000  # of a file: neither etcd nor Argo keeps an object of more
MAX_INTEGER: Final = 2**63  # Kubernetes has no larger numbers

_TAG: Final = "tag:yaml.org,2002:"
_MERGE: Final = f"{_TAG}merge"
_Base: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_UTF_16: Final = (b"\xff\xfe", b"\xfe\xff")
_CONTROL: Final = re.compile("[^\t\n\r -~\x85\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


class _Strict(_Base):  # type: ignore[misc]  # the base is chosen at import: C where PyYAML has it
    """A safe loader with the core schema of YAML 1.2."""

    yaml_implicit_resolvers: dict[str, list[tuple[str, re.Pattern[str]]]] = {}  # noqa: RUF012 - PyYAML's own shape

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        """A mapping whose keys are text, as they are written."""
        self.flatten_mapping(node)
        return {key.value: self.construct_object(value, deep=deep) for key, value in node.value}

    def flatten_mapping(self, node: yaml.MappingNode) -> None:
        """Put what ``<<`` names in its place: own keys win, then earlier sources (PyYAML's lets an inner one win).

        Raises:
            Misplaced: Something else than a mapping is to be merged; says where.
        """
        sources = [value for key, value in node.value if key.tag == _MERGE]
        if not sources:
            return
        own = {key.value: (key, value) for key, value in node.value if key.tag != _MERGE}
        merged: dict[str, tuple[Any, Any]] = {}
        for source in sources:
            for one in source.value if isinstance(source, yaml.SequenceNode) else [source]:
                if not isinstance(one, yaml.MappingNode):
                    raise nodes.fault(one, f"expected a mapping for `<<` to merge, found a {one.id}")
                self.flatten_mapping(one)
                for key, value in one.value:
                    merged.setdefault(key.value, (key, value))
        node.value = [*(pair for name, pair in merged.items() if name not in own), *own.values()]


def _resolve(tag: str, pattern: str, first: str) -> None:
    """Let plain words of a pattern be read as a type."""
    _Strict.add_implicit_resolver(f"{_TAG}{tag}", re.compile(rf"^(?:{pattern})$"), list(first))


_resolve("merge", "<<", "<")
_resolve("bool", "true|True|TRUE|false|False|FALSE", "tTfF")
_resolve("null", "~|null|Null|NULL|", "~nN\0")
_Strict.yaml_implicit_resolvers[""] = [(f"{_TAG}null", re.compile(r"^$"))]
_resolve("int", r"[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+", "-+0123456789")
_resolve(
    "float",
    r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)",
    "-+.0123456789",
)


def _integer(loader: yaml.SafeLoader, node: yaml.ScalarNode) -> int:
    """An integer of YAML 1.2: a leading zero is decimal, octal is written ``0o``."""
    text = str(loader.construct_scalar(node))
    expected = "a whole number of at most 64 bits"
    if len(text) > len(str(MAX_INTEGER)) * 2:  # Python reads long ones slowly, or not at all
        raise nodes.fault(node, f"expected {expected}, found one of {len(text)} digits")
    number = int(text, 0) if text.startswith(("0o", "0x")) else int(text, 10)
    if not -MAX_INTEGER <= number < MAX_INTEGER:
        raise nodes.fault(node, f"expected {expected}, found {text}")
    return number


def _number(loader: yaml.SafeLoader, node: yaml.ScalarNode) -> float:
    """A number that JSON has too: finite."""
    text = str(loader.construct_scalar(node))
    number = float(text) if not text.lower().endswith(("inf", "nan")) else float("inf")
    if number in (float("inf"), float("-inf")):
        raise nodes.fault(node, f"expected a finite number, found {text[:40]}")
    return number


_Strict.add_constructor(f"{_TAG}int", _integer)
_Strict.add_constructor(f"{_TAG}float", _number)


def decoded(content: bytes, *, source: str) -> str:
    """The text of a file.

    Args:
        content: Its bytes.
        source: Its name, for messages.

    Returns:
        The text, without a byte order mark.

    Raises:
        InvalidValue: It is too large, or no UTF-8.
    """
    if len(content) > MAX_BYTES:
        raise InvalidValue(f"{source}: expected at most {MAX_BYTES} bytes, found more\ndivide it into several files")
    if content.startswith(_UTF_16):
        raise InvalidValue(f"{source}:1:1: expected UTF-8 text, found UTF-16\nsave the file as UTF-8")
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as wrong:
        before = content[: wrong.start]
        line, column = before.count(b"\n") + 1, len(before[before.rfind(b"\n") + 1 :].decode(errors="replace")) + 1
        raise InvalidValue(
            f"{source}:{line}:{column}: expected UTF-8 text, found the byte 0x{content[wrong.start]:02x}\n"
            "save the file as UTF-8"
        ) from wrong


def parse(text: str, *, source: str) -> tuple[list[Document], list[str]]:
    """The documents of a file.

    Args:
        text: YAML or JSON, several documents divided by ``---``.
        source: Where it is from, for messages.

    Returns:
        The documents that are not empty, and remarks on what other readers would take otherwise.

    Raises:
        InvalidValue: It is too large, no YAML, ambiguous, or a document is no mapping: nothing of the file is to be
            used then, whatever comes before.
    """
    _check_text(text, source)
    try:
        nodes.check_depth(yaml.parse(text, Loader=_Base))
        found = list(_documents(text))
    except yaml.YAMLError as wrong:
        raise InvalidValue(_story(wrong, text, source)) from wrong
    except nodes.Misplaced as wrong:
        raise InvalidValue(f"{source}:{wrong.line}:{wrong.column}: {wrong}", path=wrong.path) from wrong
    documents = [Document(body=body, source=source, places=places) for body, places, _ in found if body is not None]
    return documents, [f"{source}:{remark}" for *_, remarks in found for remark in remarks]


def _documents(text: str) -> Iterator[tuple[Any, nodes.Places, list[str]]]:
    """Each document, where its parts stand, and remarks on it."""
    loader = _Strict(text)
    try:
        while loader.check_node():
            root = loader.get_node()
            nodes.check_size(root)
            nodes.check_nodes(root, loader.resolve)
            remarks = [*nodes.remarks(root)]
            body = loader.construct_document(root)
            if body is not None and not isinstance(body, dict):
                raise nodes.fault(root, f"expected a document with fields, found a {_WORDS.get(type(body), 'number')}")
            yield body, nodes.places(root), remarks
    finally:
        loader.dispose()


_WORDS: Final = {list: "list", str: "piece of text", bool: "boolean"}


def _check_text(text: str, source: str) -> None:
    """Refuse what is too large, and characters that no YAML has."""
    if len(text) > MAX_BYTES or len(text.encode(errors="replace")) > MAX_BYTES:
        raise InvalidValue(f"{source}: expected at most {MAX_BYTES} bytes, found more\ndivide it into several files")
    if found := _CONTROL.search(text):
        before = text[: found.start()]
        line, column = before.count("\n") + 1, len(before) - before.rfind("\n")
        raise InvalidValue(f"{source}:{line}:{column}: expected text, found the character U+{ord(found[0]):04X}")


def _story(wrong: yaml.YAMLError, text: str, source: str) -> str:
    """One line on what a parser choked on, and where."""
    mark = getattr(wrong, "problem_mark", None)
    what = getattr(wrong, "problem", None) or " ".join(str(wrong).split())
    if mark is None:
        return f"{source}: expected YAML: {what}"
    lines = text.splitlines()
    line = lines[mark.line] if mark.line < len(lines) else ""
    if line[mark.column : mark.column + 1] == "\t":
        what = "found a tab\nindent with spaces"
    said = f"expected YAML: {what}"
    if "nesting depth" in what:  # libyaml reads ahead and gives up before we count
        said = nodes.TOO_DEEP
    return f"{source}:{mark.line + 1}:{mark.column + 1}: {said}"

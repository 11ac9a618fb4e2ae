"""YAML documents as users write them, read strictly: nothing is guessed, nothing is dropped, nothing explodes.

Plain words stay text (YAML 1.2: only ``true`` and ``false`` are booleans), a key may stand once, aliases may not blow a
small file up. Words that kubectl would read as booleans are noted, so that a document means the same everywhere.
"""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterator
from typing import Any, Final

import yaml

from scheduler_core.errors import InvalidValue
from voda_flows.objects import Object

MAX_BYTES: Final = 1_500_000  # etcd refuses larger requests, so no cluster would take the document either
MAX_NODES: Final = 200_000  # values after expanding aliases
MAX_DEPTH: Final = 100
MAX_DIGITS: Final = 1000  # longer numbers are mistakes, and Python reads them slowly or not at all

_BOOLEAN_TO_KUBECTL: Final = frozenset(["y", "n", "yes", "no", "on", "off"])
_TAG: Final = "tag:yaml.org,2002:"
_Base: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class _Strict(_Base):  # type: ignore[misc]  # the base is chosen at import: C where PyYAML has it
    """A safe loader with the core schema of YAML 1.2 that refuses what is ambiguous."""

    yaml_implicit_resolvers: dict[str, list[tuple[str, re.Pattern[str]]]] = {}  # noqa: RUF012 - PyYAML's own shape

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        """A mapping whose keys are text and stand once."""
        seen: dict[str, int] = {}
        for key, _ in node.value:
            line = key.start_mark.line + 1
            if not isinstance(key, yaml.ScalarNode):
                raise InvalidValue(f"line {line}: expected text as a key, found a {key.id}")
            if key.value in seen:
                first = seen[key.value]
                raise InvalidValue(
                    f"line {line}: expected each key once, found `{key.value}` again (first in line {first})\n"
                    "remove one of the two: which one counts differs between readers"
                )
            seen[key.value] = line
        made: dict[Hashable, Any] = super().construct_mapping(node, deep=deep)
        return {str(key): value for key, value in made.items()}


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
    if len(text) > MAX_DIGITS:
        line = node.start_mark.line + 1
        raise InvalidValue(f"line {line}: expected a number of at most {MAX_DIGITS} digits, found {len(text)}")
    return int(text, 0) if text.startswith(("0o", "0x")) else int(text, 10)


_Strict.add_constructor(f"{_TAG}int", _integer)


def parse(text: str, *, source: str) -> tuple[list[Object], list[str]]:
    """The documents of a file.

    Args:
        text: YAML or JSON, several documents divided by ``---``.
        source: Where it is from, for messages.

    Returns:
        The documents that are not empty, and remarks on what other readers would take otherwise.

    Raises:
        InvalidValue: It is too large, no YAML, ambiguous, or a document is no mapping.
    """
    if len(text.encode()) > MAX_BYTES:
        raise InvalidValue(f"{source}: expected at most {MAX_BYTES} bytes, found {len(text.encode())}")
    loader, documents, remarks = _Strict(text), list[Object](), list[str]()
    try:
        while loader.check_node():
            node = loader.get_node()
            _check_size(node)
            _check_tags(node, loader)
            remarks += [f"{source}: {remark}" for remark in _remarks(node)]
            document = loader.construct_document(node)
            if document is None:
                continue
            documents.append(_with_fields(document, node))
    except yaml.YAMLError as wrong:
        raise InvalidValue(f"{source}: expected YAML, found {_story(wrong)}") from wrong
    except InvalidValue as wrong:
        raise InvalidValue(f"{source}, {wrong}") from wrong
    finally:
        loader.dispose()
    return documents, remarks


def _with_fields(document: object, node: yaml.Node) -> Object:
    """The document, which must have fields."""
    if not isinstance(document, dict):
        raise InvalidValue(
            f"line {node.start_mark.line + 1}: expected a document with fields, found {type(document).__name__}"
        )
    return document


def _check_size(root: yaml.Node) -> None:
    """Refuse what is nested too deeply or grows too large once its aliases are expanded."""
    sizes: dict[int, int] = {}

    def size(node: yaml.Node, depth: int) -> int:
        if depth > MAX_DEPTH:
            raise InvalidValue(f"line {node.start_mark.line + 1}: expected at most {MAX_DEPTH} levels of nesting")
        if id(node) not in sizes:
            sizes[id(node)] = MAX_NODES + 1  # an alias inside its own anchor never ends
            sizes[id(node)] = 1 + sum(size(child, depth + 1) for child in _children(node))
        return sizes[id(node)]

    if size(root, 0) > MAX_NODES:
        raise InvalidValue(
            f"line {root.start_mark.line + 1}: expected at most {MAX_NODES} values with aliases expanded, found more"
        )


def _children(node: yaml.Node) -> Iterator[yaml.Node]:
    """The nodes directly inside one."""
    for child in node.value if not isinstance(node, yaml.ScalarNode) else ():
        if isinstance(child, tuple):
            yield from child
        else:
            yield child


def _nodes(root: yaml.Node) -> Iterator[yaml.Node]:
    """Every node of a document once, however many aliases lead to it."""
    todo, seen = [root], set[int]()
    while todo:
        node = todo.pop()
        if id(node) not in seen:
            seen.add(id(node))
            todo += _children(node)
            yield node


def _check_tags(root: yaml.Node, loader: _Strict) -> None:
    """Refuse written tags that say something else than the value itself: of JSON's types there is nothing to say."""
    for node in _nodes(root):
        right = [f"{_TAG}map" if isinstance(node, yaml.MappingNode) else f"{_TAG}seq"]
        if isinstance(node, yaml.ScalarNode):
            right = [f"{_TAG}str", loader.resolve(yaml.ScalarNode, node.value, (not node.style, False))]
        if node.tag not in right:
            line, shown = node.start_mark.line + 1, node.tag.replace(_TAG, "!!")
            raise InvalidValue(f"line {line}: expected a value of JSON, found the tag {shown}")


def _remarks(root: yaml.Node) -> Iterator[str]:
    """Plain words that kubectl reads as booleans (YAML 1.1)."""
    for node in _nodes(root):
        if isinstance(node, yaml.ScalarNode) and not node.style and node.value.lower() in _BOOLEAN_TO_KUBECTL:
            yield f"line {node.start_mark.line + 1}: `{node.value}` is text here but a boolean to kubectl; quote it"


def _story(wrong: yaml.YAMLError) -> str:
    """One line on what a parser choked on."""
    mark = getattr(wrong, "problem_mark", None)
    what = getattr(wrong, "problem", None) or str(wrong)
    return f"{what} (line {mark.line + 1}, column {mark.column + 1})" if mark is not None else " ".join(what.split())

"""What may stand in a YAML document, asked of its nodes before any value is made of them; and where each stands.

In: events and nodes of PyYAML; out: nothing, remarks, places, or ``Misplaced``: a fault with its line and column.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final

import yaml

from scheduler_core.errors import InvalidValue
from voda_flows.submission.places import Path, Place

MAX_NODES: Final = 200_000  # values after expanding aliases
MAX_DEPTH: Final = 100
TOO_DEEP: Final = f"expected at most {MAX_DEPTH} levels of nesting, found more"

Places = dict[Path, Place]
KEY: Final = -1
"""The step from a mapping to one of its keys."""
_TAG: Final = "tag:yaml.org,2002:"
_BOOLEANS: Final = {
    written: meant
    for word, meant in (("y", True), ("yes", True), ("on", True), ("n", False), ("no", False), ("off", False))
    for written in (word, word.capitalize(), word.upper())
}
"""Words that YAML 1.1 readers, kubectl and argo among them, take for booleans."""
_OTHER_NUMBER: Final = re.compile(r"[-+]?(?:0[0-7_]+|0b[01_]+|[0-9][0-9_]*_[0-9_]*)")
"""Words that are another number, or a number at all, to readers of YAML 1.1."""


class Misplaced(InvalidValue):
    """Something that must not stand where it stands; line and column count from 1."""

    def __init__(self, message: str, *, line: int, column: int, path: str = "") -> None:
        super().__init__(message, path=path)
        self.line = line
        self.column = column


def fault(node: yaml.Node, message: str, path: Path = ()) -> Misplaced:
    """A fault at a node."""
    where = written(path)
    said = f"{where}: {message}" if where else message
    return Misplaced(said, line=node.start_mark.line + 1, column=node.start_mark.column + 1, path=where)


def written(path: Path) -> str:
    """A path as it is written: ``spec.templates[1].name``."""
    return "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in path).removeprefix(".")


def check_depth(events: Iterable[yaml.Event]) -> None:
    """Refuse what is nested too deeply, before anything that nests its calls as deeply reads it.

    Raises:
        Misplaced: It is.
    """
    depth = 0
    for event in events:
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
            if depth > MAX_DEPTH:
                mark: Any = event.start_mark
                raise Misplaced(TOO_DEEP, line=mark.line + 1, column=mark.column + 1)
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1


def check_size(root: yaml.Node) -> None:
    """Refuse what grows too large, or too deep, once its aliases are expanded.

    Raises:
        Misplaced: It does.
    """
    sizes: dict[int, tuple[int, int]] = {}

    def size(node: yaml.Node) -> tuple[int, int]:
        """Values in a node, and how deep they are nested."""
        if id(node) not in sizes:
            sizes[id(node)] = (MAX_NODES + 1, MAX_DEPTH + 1)  # an alias inside its own anchor never ends
            inside = [size(child) for _, _, child in _children(node)]
            sizes[id(node)] = (1 + sum(many for many, _ in inside), 1 + max((deep for _, deep in inside), default=0))
        return sizes[id(node)]

    many, deep = size(root)
    if many > MAX_NODES:
        raise fault(root, f"expected at most {MAX_NODES} values with aliases expanded, found more")
    if deep > MAX_DEPTH:
        raise fault(root, f"expected at most {MAX_DEPTH} levels of nesting with aliases expanded, found more")


def check_nodes(root: yaml.Node, resolve: Callable[..., str]) -> None:
    """Refuse keys that are no text or stand twice, tags that say something else than their value, YAML 1.1 booleans.

    Args:
        root: A document.
        resolve: What the loader takes a plain scalar for: ``(kind of node, text, (plain, quoted))``.

    Raises:
        Misplaced: The first of them.
    """
    for path, node in _nodes(root):
        _check_tag(path, node, resolve)
        if isinstance(node, yaml.MappingNode):
            _check_keys(path, node)
        elif isinstance(node, yaml.ScalarNode):
            _check_word(path, node, "a name" if path[-1:] == (KEY,) else "a value")


def remarks(root: yaml.Node) -> Iterator[str]:
    """Plain numbers that kubectl reads as other ones (YAML 1.1), each with line and column."""
    for _, node in _nodes(root):
        if isinstance(node, yaml.ScalarNode) and not node.style and _OTHER_NUMBER.fullmatch(node.value):
            mark = node.start_mark
            where, shown = f"{mark.line + 1}:{mark.column + 1}", node.value[:40]
            yield f"{where}: `{shown}` is another number to kubectl than here; put it in quotes"


def places(root: yaml.Node) -> Places:
    """Line and column of every field's name and every list's entry, aliases expanded."""
    found: Places = {(): (root.start_mark.line + 1, root.start_mark.column + 1)}
    left: list[tuple[Path, yaml.Node]] = [((), root)]
    while left:
        path, node = left.pop()
        for step, place, child in _children(node):
            if step != KEY:
                found[(*path, step)] = (place.start_mark.line + 1, place.start_mark.column + 1)
                left.append(((*path, step), child))
    return found


def _check_tag(path: Path, node: yaml.Node, resolve: Callable[..., str]) -> None:
    right = [f"{_TAG}map" if isinstance(node, yaml.MappingNode) else f"{_TAG}seq"]
    if isinstance(node, yaml.ScalarNode):
        right = [f"{_TAG}str", resolve(yaml.ScalarNode, node.value, (not node.style, False))]
    if node.tag not in right:
        shown = node.tag.replace(_TAG, "!!")
        raise fault(node, f"expected a value of JSON, found the tag {shown}", _shown(path))


def _check_keys(path: Path, node: yaml.MappingNode) -> None:
    seen: dict[str, int] = {}
    for key, _ in node.value:
        if not isinstance(key, yaml.ScalarNode):
            raise fault(key, f"expected text as a key, found a {key.id}", _shown(path))
        if key.value in seen:
            raise fault(
                key,
                f"expected each key once, found `{key.value}` again (first in line {seen[key.value]})\n"
                "remove one of the two: which one counts differs between readers",
                _shown(path),
            )
        seen[key.value] = key.start_mark.line + 1


def _check_word(path: Path, node: yaml.ScalarNode, what: str) -> None:
    if not node.style and node.value in _BOOLEANS:
        meant = str(_BOOLEANS[node.value]).lower()
        raise fault(
            node,
            f"expected text, true or false as {what}, found the bare word `{node.value}`, which kubectl and argo read "
            f'as {meant}\nput it in quotes ("{node.value}"), or write {meant}',
            _shown(path),
        )


def _shown(path: Path) -> Path:
    """The path of a key is that of the mapping it stands in."""
    return path[:-1] if path[-1:] == (KEY,) else path


def _children(node: yaml.Node) -> Iterator[tuple[str | int, yaml.Node, yaml.Node]]:
    """What lies directly in a node: the step to it (``KEY`` to a key itself), the node that places it, and the node."""
    if isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            yield KEY, key, key
            yield str(key.value), key, value
    elif isinstance(node, yaml.SequenceNode):
        for index, child in enumerate(node.value):
            yield index, child, child


def _nodes(root: yaml.Node) -> Iterator[tuple[Path, yaml.Node]]:
    """Every node of a document once, in order, however many aliases lead to it."""
    left: list[tuple[Path, Any]] = [((), root)]
    seen: set[int] = set()
    while left:
        path, node = left.pop()
        if id(node) not in seen:
            seen.add(id(node))
            yield path, node
            left += [((*path, step), child) for step, _, child in reversed([*_children(node)])]

"""The only codec between the core's values and JSON: observations, targets, plans, decisions, allocation documents.

Any frozen dataclass of the core goes through the same two functions; its field types say how its JSON is read, and what
does not fit is refused with its path, as in ``$.jobs[1].spec.min_gpus: expected int, got 'two'``. Equal values give
equal bytes. An action carries its class's name under ``action``, as one list holds several kinds.
"""

from __future__ import annotations

import json
import types
import typing
from collections.abc import Mapping
from dataclasses import MISSING, dataclass, fields, is_dataclass
from enum import Enum
from functools import cache
from typing import Any, TypeVar, get_args, get_origin

from scheduler_core.errors import InvalidValue
from scheduler_core.model import plan
from scheduler_core.model.plan import NewWorker

T = TypeVar("T")

#: Version of everything written here; a reader refuses a higher one.
VERSION = 1
#: Characters of a display name in Argo; letters, digits, ``-`` and ``.``, the first and the last no mark.
_SHOWN = 63
_ACTIONS: Mapping[str, type] = {kind.__name__: kind for kind in get_args(plan.Action)}


@dataclass(frozen=True, slots=True, kw_only=True)
class DocumentWorker:
    """A worker as the driver sees it.

    Attributes:
        id: Worker id.
        role: What it does.
        address: IP address of its agent.
        node: Name of its node.
        slots: Ranks it runs.
    """

    id: str
    role: str
    address: str
    node: str
    slots: int


@dataclass(frozen=True, slots=True, kw_only=True)
class AllocationDocument:
    """What a driver trains by (docs/contracts.md, section 4).

    Attributes:
        job: Job id.
        driver_uid: Uid of the pod it is for; others ignore it.
        segment: Segment it is for.
        generation: One higher each time.
        min_workers: Fewest workers to train with.
        workers: Exactly these.
        stop: ``checkpoint`` to end at the next commit.
    """

    job: str
    driver_uid: str
    segment: int
    generation: int
    min_workers: int
    workers: tuple[DocumentWorker, ...]
    stop: str | None = None
    version: int = VERSION


def to_json(value: object) -> str:
    """A value of the core as JSON with a version, the same bytes for equal values.

    Args:
        value: A dataclass of the core.

    Returns:
        One line of JSON.
    """
    return _dump({"version": VERSION, "kind": type(value).__name__, "value": encode(value)})


def from_json(text: str, kind: type[T]) -> T:
    """The value that ``to_json`` wrote.

    Args:
        text: Its JSON.
        kind: The class expected.

    Returns:
        The value.

    Raises:
        InvalidValue: It is no JSON, of another kind or version, or does not fit; with the path of the fault.
    """
    envelope = _parse(text)
    found = (envelope.get("kind"), envelope.get("version")) if isinstance(envelope, dict) else (None, None)
    if found[0] != kind.__name__ or not isinstance(found[1], int) or found[1] > VERSION:
        raise InvalidValue(
            f"expected a {kind.__name__} of version {VERSION} or less, got kind {found[0]!r} version {found[1]!r}; "
            "it may come from a newer Voda"
        )
    return typing.cast(T, decode(kind, envelope.get("value")))


def document_text(document: AllocationDocument) -> str:
    """An allocation document as the annotation's text."""
    return _dump(encode(document))


def read_document(text: str) -> AllocationDocument | None:
    """The document in an annotation, or None where there is none that can be read (the driver ignores it too)."""
    try:
        return typing.cast(AllocationDocument, decode(AllocationDocument, _parse(text))) if text else None
    except InvalidValue:
        return None


def gate_workers_text(workers: tuple[NewWorker, ...]) -> str:
    """Granted workers as a gate's output: a JSON list of mappings of text."""
    return _dump(
        [{"id": one.id, "node": one.node, "gpus": str(one.gpus), "shown": worker_shown(one)} for one in workers]
    )


def worker_shown(worker: NewWorker) -> str:
    """What a worker is called where Argo shows it; it fails a node whose display name it does not like.

    >>> worker_shown(NewWorker(id="w0", node="n0", gpus=2))
    'w0-on-n0-2gpus'
    """
    size = f"-{worker.gpus}gpus" if worker.gpus > 1 else ""
    node = "".join(mark if mark.isascii() and (mark.isalnum() or mark in "-.") else "-" for mark in worker.node)
    return f"{worker.id}-on-{node}"[: _SHOWN - len(size)].rstrip("-.") + size


def read_gate_workers(text: str) -> tuple[NewWorker, ...]:
    """The workers in a gate's output.

    Raises:
        InvalidValue: It is no such list.
    """
    try:
        rows = json.loads(text)
        return tuple(NewWorker(id=row["id"], node=row["node"], gpus=int(row["gpus"])) for row in rows)
    except (ValueError, TypeError, KeyError, OverflowError, RecursionError) as fault:
        raise InvalidValue(f"gate output workers: expected a list of id, node and gpus, got {text[:80]!r}") from fault


def encode(value: Any) -> Any:  # noqa: ANN401 -- any value of the core, any JSON
    """A value as what ``json`` writes."""
    if is_dataclass(value) and not isinstance(value, type):
        body = {entry.name: encode(getattr(value, entry.name)) for entry in fields(value)}
        name = type(value).__name__
        return {"action": name, **body} if name in _ACTIONS else body
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, Mapping):
        return {str(key): encode(entry) for key, entry in value.items()}
    if isinstance(value, (tuple, list)):
        return [encode(entry) for entry in value]
    return value


def decode(kind: Any, value: Any, path: str = "$") -> Any:  # noqa: ANN401 -- any type, any JSON
    """A JSON value as a value of a type.

    Args:
        kind: The type: a dataclass, an enum, a mapping, a tuple, a union or a plain type.
        value: What ``json`` read.
        path: Where it stands, for messages.

    Returns:
        The value.

    Raises:
        InvalidValue: It does not fit; with the path of the fault.
    """
    origin = get_origin(kind)
    if origin in (typing.Union, types.UnionType):
        return _decode_union(get_args(kind), value, path)
    if origin is tuple:
        _expect(value, list, path)
        return tuple(decode(get_args(kind)[0], entry, f"{path}[{place}]") for place, entry in enumerate(value))
    if origin is not None:
        _expect(value, dict, path)
        return {key: decode(get_args(kind)[1], entry, f"{path}.{key}") for key, entry in value.items()}
    return _decode_plain(kind, value, path)


def _decode_plain(kind: type, value: Any, path: str) -> Any:  # noqa: ANN401 -- any JSON
    if is_dataclass(kind):
        return _decode_dataclass(kind, value, path)
    if issubclass(kind, Enum):
        return _decode_enum(kind, value, path)
    if kind is float and type(value) is int:
        return float(value)
    _expect(value, kind, path)
    return value


def _decode_union(kinds: tuple[Any, ...], value: Any, path: str) -> Any:  # noqa: ANN401 -- any JSON
    if value is None and type(None) in kinds:
        return None
    rest = [kind for kind in kinds if kind is not type(None)]
    if len(rest) == 1:
        return decode(rest[0], value, path)
    name = str(value.get("action")) if isinstance(value, dict) else ""
    if name not in _ACTIONS:
        raise InvalidValue(f"{path}: expected an action out of {', '.join(sorted(_ACTIONS))}, got {name!r}")
    return decode(_ACTIONS[name], {key: entry for key, entry in value.items() if key != "action"}, path)


def _decode_dataclass(kind: type, value: Any, path: str) -> Any:  # noqa: ANN401 -- any JSON
    _expect(value, dict, path)
    hints = _hints(kind)
    unknown = sorted(set(value) - set(hints))
    if unknown:
        raise InvalidValue(f"{path}: expected fields of {kind.__name__}, got {unknown[0]!r}")
    for entry in fields(kind):
        if entry.name not in value and entry.default is MISSING and entry.default_factory is MISSING:
            raise InvalidValue(f"{path}: expected the field {entry.name!r} of {kind.__name__}, it is missing")
    return kind(**{name: decode(hints[name], entry, f"{path}.{name}") for name, entry in value.items()})


def _decode_enum(kind: type[Enum], value: Any, path: str) -> Enum:  # noqa: ANN401 -- any JSON
    try:
        return kind(value)
    except ValueError as fault:
        known = ", ".join(str(entry.value) for entry in kind)
        raise InvalidValue(f"{path}: expected one of {known}, got {value!r}") from fault


@cache
def _hints(kind: type) -> dict[str, Any]:
    return typing.get_type_hints(kind)


def _expect(value: Any, kind: type, path: str) -> None:  # noqa: ANN401 -- any JSON
    if type(value) is not kind:
        raise InvalidValue(f"{path}: expected {kind.__name__}, got {value!r}")


def _dump(value: Any) -> str:  # noqa: ANN401 -- any JSON
    return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False)


def _parse(text: str) -> Any:  # noqa: ANN401 -- any JSON
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as fault:  # no JSON, a number of too many digits, nested too deeply
        raise InvalidValue(f"expected JSON, got {text[:80]!r}: {fault}") from fault

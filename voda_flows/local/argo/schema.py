"""Whether a document has only fields that exist, of the types that they have: what the API server checks.

In: a Workflow's document, or the spec of a pod; out: nothing, or the first fault with its path, in the API server's
words where it has any. A near miss is named: ``retrystrategy`` -> ``retryStrategy``.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping
from typing import Any

from scheduler_core.errors import InvalidValue
from voda_flows.local.argo.fields import (
    ANY,
    CLAIM,
    INSIDE,
    LABEL,
    NAMED,
    NO,
    NUMBER,
    POD_SPEC,
    QUANTITY,
    SCALAR,
    STAYING,
    TEXT,
    TRUTH,
    WORKFLOW,
)
from voda_flows.local.argo.unsupported import Unsupported
from voda_flows.objects import Object

NAME = re.compile(r"^[a-zA-Z0-9][-a-zA-Z0-9]*$")
QUANTITY_PATTERN = (
    r"^(\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))(([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))))?$"
)
#: Kinds of text with rules of their own: what is right, and how Kubernetes says it.
_PART = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?"
TEXTS: Mapping[str, tuple[re.Pattern[str], str]] = {
    LABEL: (re.compile(rf"(?=.{{1,63}}$){_PART}"), "a name of at most 63 lower-case letters, digits and '-'"),
    CLAIM: (
        re.compile(rf"(?=.{{1,253}}$){_PART}(\.{_PART})*"),
        "a claim's name of at most 253 lower-case letters, digits, '-' and '.'",
    ),
    INSIDE: (re.compile(r"(?!/)(?!(.*/)?\.\.(/.*)?$).*", re.DOTALL), "a relative path without '..'"),
    STAYING: (re.compile(r"(?!(.*/)?\.\.(/.*)?$).*", re.DOTALL), "a path without '..'"),
}
TEMPLATE_TYPES = ("container", "script", "steps", "dag", "suspend", "containerSet", "data", "http", "plugin",
                  "resource")  # fmt: skip
JSON_TYPES = {str: "string", bool: "boolean", int: "integer", float: "number", list: "array", dict: "object",
              type(None): "null"}  # fmt: skip
_QUOTED, _QUOTE = ("boolean", "integer", "number"), "put it in quotes"


def check_fields(workflow: Object, *, supported: bool = True) -> None:
    """Check every field of a Workflow.

    Args:
        workflow: The document, or a part of it below ``metadata`` or ``spec``.
        supported: Whether fields that only local mode has not are refused too.

    Raises:
        InvalidValue: With the path of the first fault: unknown, of another type, or not supported in local mode.
    """
    _check(workflow, WORKFLOW, "", _UNKNOWN)
    _check(workflow, WORKFLOW, "", _TYPES)
    for index, template in enumerate((workflow.get("spec") or {}).get("templates") or ()):
        check_template(template, f"spec.templates[{index}]")
    if supported:
        _check(workflow, WORKFLOW, "", _UNSUPPORTED)


def check_pod_spec(spec: Object, path: str, *, types: bool = True) -> None:
    """Check every field of a pod's spec, or of a patch for one.

    Args:
        spec: The spec, or the patch.
        path: Where it stands, for messages.
        types: Whether types are checked too; not where variables stand for values that are filled in later.

    Raises:
        InvalidValue: With the path of the first fault: unknown, of another type, or not supported in local mode.
    """
    for stage in (_UNKNOWN, _TYPES, _UNSUPPORTED) if types else (_UNKNOWN, _UNSUPPORTED):
        _check(spec, POD_SPEC, path, stage)
    others = [each.get("name") for each in spec.get("containers") or () if each.get("name") != "main"]
    if others:
        raise Unsupported(
            f"{path}.containers: expected only 'main', got {others[0]!r}: not supported in local mode",
            path=f"{path}.containers",
        )


# The API server decodes first (unknown fields), then holds the document against its schema; what local mode does not
# know is asked last, so that a document which Argo refuses is refused in Argo's words.
_UNKNOWN, _TYPES, _UNSUPPORTED = "unknown", "types", "unsupported"


def check_template(template: Object, path: str) -> None:
    """Check the API server's rules on one template: its name, at most one type, one spelling of dependencies.

    Raises:
        InvalidValue: One is broken.
    """
    name = template.get("name", "")
    if name and not NAME.match(name):
        raise InvalidValue(
            f"{path}.name: Invalid value: \"{name}\": {path}.name in body should match '{NAME.pattern}'",
            path=f"{path}.name",
        )
    if sum(kind in template for kind in TEMPLATE_TYPES) > 1:
        raise InvalidValue(
            'spec.templates: Invalid value: "array": template must have at most one template type', path=path
        )
    for index, task in enumerate((template.get("dag") or {}).get("tasks") or ()):
        if task.get("depends") and task.get("dependencies"):
            where = f"{path}.dag.tasks[{index}]"
            raise InvalidValue(
                f"{where}: Invalid value: \"object\": cannot use both 'depends' and 'dependencies'", path=where
            )


def _check(value: Any, kind: Any, path: str, stage: str) -> None:  # noqa: ANN401 - any value of a document
    if kind in (ANY, NO):
        return
    if isinstance(kind, str):
        _check_scalar(value, kind, path, stage)
    elif isinstance(kind, Mapping):
        if _is(value, dict, path, stage):
            _check_object(value, kind, path, stage)
    elif _is(value, list, path, stage):
        for index, each in enumerate(value):
            where = f"{path}[{index}]"
            if each is None and kind[0] != ANY and stage == _TYPES:
                raise _wrong_type(each, _word_of(kind[0]), where)
            if kind[0] in NAMED and stage == _TYPES and isinstance(each, Mapping) and each.get("name") in (None, ""):
                raise InvalidValue(f"{where}.name: Required value", path=where)
            _check(each, kind[0], where, stage)


def _word_of(kind: Any) -> str:  # noqa: ANN401 - any kind of the tables
    """What the API server calls a kind."""
    if isinstance(kind, str):
        return TEXT if kind == SCALAR or kind in TEXTS else kind
    return "object" if isinstance(kind, Mapping) else "array"


def _is(value: Any, expected: type, path: str, stage: str) -> bool:  # noqa: ANN401 - any value of a document
    """Whether the value is an object or a list where one is expected; an empty one may be left out."""
    if value is None:
        return False
    if not isinstance(value, expected):
        if stage == _TYPES:
            raise _wrong_type(value, JSON_TYPES[expected], path)
        return False
    return True


def _check_object(value: Object, fields: Mapping[str, Any], path: str, stage: str) -> None:
    for name, part in value.items():
        where = f"{path}.{name}" if path else str(name)
        kind = fields.get(name, fields.get("*"))
        if kind is None:
            if stage == _UNKNOWN:
                raise InvalidValue(
                    f'strict decoding error: unknown field "{where}"{_near(str(name), fields)}', path=where
                )
        elif kind == NO:
            if stage == _UNSUPPORTED:
                raise Unsupported(f"{where}: not supported in local mode", path=where)
        else:
            _check(part, kind, where, stage)


def _near(name: str, fields: Mapping[str, Any]) -> str:
    close = difflib.get_close_matches(name.lower(), [field.lower() for field in fields], n=1)
    meant = next((field for field in fields if close and field.lower() == close[0]), None)
    return f" (did you mean {meant}?)" if meant else ""


def _check_scalar(value: Any, kind: str, path: str, stage: str) -> None:  # noqa: ANN401 - any value of a document
    if stage == _UNKNOWN:
        if kind == SCALAR and isinstance(value, Mapping) and value:
            where = f"{path}.{next(iter(value))}"
            raise InvalidValue(f'strict decoding error: unknown field "{where}"', path=where)
        return
    if stage != _TYPES or value is None:
        return
    if kind == QUANTITY:
        _check_quantity(value, path)
    elif not _has_kind(value, kind):
        raise _wrong_type(value, _word_of(kind), path)
    elif kind in TEXTS and "{{" not in value and not TEXTS[kind][0].fullmatch(value):
        raise InvalidValue(f"{path}: Invalid value: {value!r}: expected {TEXTS[kind][1]}", path=path)


def _has_kind(value: Any, kind: str) -> bool:  # noqa: ANN401 - any value of a document
    if kind == TEXT or kind in TEXTS:
        return isinstance(value, str)
    if kind == TRUTH:
        return isinstance(value, bool)
    if kind == NUMBER:
        return isinstance(value, int) and not isinstance(value, bool)
    return isinstance(value, str | int | float | bool)


def _check_quantity(value: Any, path: str) -> None:  # noqa: ANN401 - any value of a document
    if not _has_kind(value, SCALAR):
        raise _wrong_type(value, TEXT, path)
    if not re.match(QUANTITY_PATTERN, str(value)):
        raise InvalidValue(
            f"{path}: Invalid value: \"{value}\": {path} in body should match '{QUANTITY_PATTERN}'", path=path
        )


def _wrong_type(value: Any, expected: str, path: str) -> InvalidValue:  # noqa: ANN401 - any value of a document
    found = JSON_TYPES.get(type(value), "object")
    said = f'{path}: Invalid value: "{found}": {path} in body must be of type {expected}: "{found}"'
    return InvalidValue(f"{said}; {_QUOTE}" if expected == TEXT and found in _QUOTED else said, path=path)

"""Arguments on their way into a template, and the lists over which steps and tasks are fanned out.

In: a template with its declared inputs, the arguments of a call, the items of a ``withItems``, ``withParam`` or
``withSequence``; out: input parameters with values, and one step per item with its ``{{item}}`` filled in.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from scheduler_core.errors import InvalidValue
from voda_flows.local.argo.names import go_json, item_name, text
from voda_flows.local.argo.substitute import substitute
from voda_flows.objects import Object

EXPANDING = ("withItems", "withParam", "withSequence")
JSON_LITERALS = {"n": "null", "t": "true", "f": "false"}


def input_parameters(template: Object, arguments: Mapping[str, Any] | None) -> list[Object]:
    """The template's input parameters, each with the value that the call gives it, else its own or its default.

    Raises:
        InvalidValue: One has no value at all.
    """
    given = {each["name"]: each["value"] for each in (arguments or {}).get("parameters") or () if "value" in each}
    found = []
    for declared in (template.get("inputs") or {}).get("parameters") or ():
        value = given.get(declared["name"], declared.get("value", declared.get("default")))
        if value is None:
            raise InvalidValue(f"inputs.parameters.{declared['name']} was not supplied")
        found.append({**declared, "value": text(value)})
    return found


def input_variables(parameters: Sequence[Object]) -> dict[str, str]:
    """``inputs.parameters.x`` of each parameter, and all of them as ``inputs.parameters``."""
    found = {f"inputs.parameters.{each['name']}": each["value"] for each in parameters}
    rows = [{"name": each["name"], "value": each["value"]} for each in parameters]
    return {**found, "inputs.parameters": go_json(rows)}


def expands(step: Mapping[str, Any]) -> bool:
    """Whether a step or task is run once per item of a list."""
    return any(name in step for name in EXPANDING)


def for_item(step: Object, index: int, item: Any) -> Object:  # noqa: ANN401 - an element of any JSON list
    """The step that runs for one item of its list: named ``step(0:item)``, with ``{{item}}`` filled in."""
    plain = {name: value for name, value in step.items() if name not in EXPANDING}
    return {**substitute(plain, item_variables(item)), "name": item_name(step["name"], index, item)}


def item_variables(item: Any) -> dict[str, str]:  # noqa: ANN401 - an element of any JSON list
    """``item``, and ``item.key`` where it is an object."""
    found = {"item": text(item)}
    if isinstance(item, Mapping):
        found |= {f"item.{key}": text(value) for key, value in item.items()}
    return found


def items(step: Object) -> list[Any]:
    """The items of a step's list.

    Raises:
        InvalidValue: What should be a list is none, in Argo's words.
    """
    if "withItems" in step:
        return list(step["withItems"])
    if "withSequence" in step:
        return _sequence(step["withSequence"])
    value = text(step["withParam"])
    try:
        parsed = json.loads(value)
    except ValueError as error:
        raise InvalidValue(
            f"withParam value could not be parsed as a JSON list: {value}: {go_json_fault(value)}"
        ) from error
    if not isinstance(parsed, list):
        kind = {dict: "object", str: "string", bool: "bool"}.get(type(parsed), "number")
        raise InvalidValue(
            f"withParam value could not be parsed as a JSON list: {value}: "
            f"json: cannot unmarshal {kind} into Go value of type []v1alpha1.Item"
        )
    return parsed


def go_json_fault(value: str) -> str:
    """What Go's JSON reader says of a text that is no JSON, for the faults that people make.

    >>> go_json_fault("not-json")
    "invalid character 'o' in literal null (expecting 'u')"
    """
    stripped = value.lstrip()
    if not stripped:
        return "unexpected end of JSON input"
    literal = JSON_LITERALS.get(stripped[0])
    if literal is None:
        return f"invalid character '{stripped[0]}' looking for beginning of value"
    for found, expected in zip(stripped[1:], literal[1:], strict=False):
        if found != expected:
            return f"invalid character '{found}' in literal {literal} (expecting '{expected}')"
    return "unexpected end of JSON input"


def _sequence(spec: Object) -> list[str]:
    """``count`` or ``start`` to ``end`` (downwards too), each printed with ``format``."""
    start = int(text(spec.get("start", "0")))
    if "count" in spec:
        numbers = range(start, start + int(text(spec["count"])))
    else:
        end = int(text(spec.get("end", "0")))
        numbers = range(start, end + 1) if end >= start else range(start, end - 1, -1)
    layout = text(spec.get("format", "%d"))
    if not re.fullmatch(r"(?:[^%]|%%)*%[-+ 0]*\d*[dxXo](?:[^%]|%%)*", layout):
        raise InvalidValue(f"withSequence.format: expected one number as in n%02d, got {layout!r}")
    return [layout % number for number in numbers]

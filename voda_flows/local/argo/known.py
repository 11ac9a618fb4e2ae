"""Which variables a template may use, before anything has run.

In: a Workflow, a template, the steps or tasks before one; out: names that will have a value. ``validate.py`` holds
the tags of documents against them.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from typing import Any

from scheduler_core.errors import InvalidValue
from voda_flows.local.argo.arguments import expands
from voda_flows.local.argo.expressions import names, parse
from voda_flows.local.argo.places import at, place_of_text
from voda_flows.local.argo.run import POD_KINDS, kind_of
from voda_flows.local.argo.scope import NODE_FIELDS, workflow_variables
from voda_flows.local.argo.substitute import tags_within
from voda_flows.objects import Object

LATE = frozenset({
    "workflow.status", "workflow.failures", "workflow.scheduledTime", "workflow.creationTimestamp.s",
    "workflow.creationTimestamp.RFC3339",
})  # fmt: skip
RETRY = frozenset({"retries", "lastRetry.exitCode", "lastRetry.status", "lastRetry.duration", "lastRetry.message"})


def workflow_names(workflow: Object, arguments: Iterable[Object]) -> frozenset[str]:
    """What every template of the Workflow may use; a label or an annotation counts where the Workflow has it."""
    placed = [{**each, "value": each.get("value", "")} for each in arguments]
    return frozenset(workflow_variables(workflow, placed)) | LATE


def own_names(template: Object) -> frozenset[str]:
    """What a template knows of itself: its inputs, its node and, where it is retried, its tries."""
    declared = (template.get("inputs") or {}).get("parameters") or ()
    found = {f"inputs.parameters.{each['name']}" for each in declared} | {"inputs.parameters", "node.name"}
    if kind_of(template) in POD_KINDS:
        found.add("pod.name")
    return frozenset(found) | (RETRY if "retryStrategy" in template else frozenset())


def step_names(prefix: str, step: Mapping[str, Any], template: Object) -> frozenset[str]:
    """What others may say about a step or task that calls the template."""
    found = {f"{prefix}.{name}" for name in NODE_FIELDS}
    found |= {f"{prefix}.outputs.parameters.{each['name']}" for each in outputs_of(template)}
    if kind_of(template) in POD_KINDS:
        found |= {f"{prefix}.outputs.result", f"{prefix}.exitCode"}
    if expands(step):
        found.add(f"{prefix}.outputs.parameters")
    return frozenset(found)


def outputs_of(template: Object) -> list[Object]:
    """The declared output parameters of a template."""
    declared: list[Object] = (template.get("outputs") or {}).get("parameters") or []
    return declared


def check_tags(value: Any, known: frozenset[str], where: str, *, items: bool = False) -> None:  # noqa: ANN401 - any part of a document
    """Check that every tag of a part of a document will have a value.

    Args:
        value: The part.
        known: The names that may be used.
        where: What the message begins with.
        items: Whether ``item`` may be used too.

    Raises:
        InvalidValue: One will not ("failed to resolve {{x}}"), or an expression is wrong.
    """
    for tag in tags_within(value):
        with at(place_of_text(value, tag)):
            used = _names_of(tag[1:], where) if tag.startswith("=") else (tag,)
        for name in used:
            is_item = items and (name == "item" or name.startswith("item."))
            if name not in known and not is_item:
                near = [one for one in difflib.get_close_matches(name, known, n=1) if not name.startswith(f"{one}.")]
                meant = f"; did you mean {{{{{near[0]}}}}}?" if near else ""
                place = place_of_text(value, tag)
                raise InvalidValue(f"{where} failed to resolve {{{{{name}}}}}{meant}", path=place)


def _names_of(expression: str, where: str) -> tuple[str, ...]:
    try:
        return names(parse(expression))
    except InvalidValue as error:
        raise InvalidValue(f"{where} expression '{expression.strip()}': {error}") from error

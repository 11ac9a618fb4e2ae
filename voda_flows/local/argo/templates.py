"""Where a template's text is found, and that a running Workflow keeps the text it began with.

In: the Workflow and a source of WorkflowTemplates; out: templates by (scope, name). What a ``workflowTemplateRef`` or
a ``templateRef`` names is copied into the Workflow's status the first time it is used
(``storedWorkflowTemplateSpec``, ``storedTemplates``), as the real controller does: a WorkflowTemplate that is changed
later changes no running Workflow.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from scheduler_core.errors import InvalidValue
from voda_flows.objects import Object

NAMESPACED = "namespaced/"
LOCAL = "local/"


class TemplateSource(Protocol):
    """Gives WorkflowTemplates by namespace and name."""

    def __call__(self, namespace: str, name: str, /) -> Object | None:
        """The WorkflowTemplate as a whole object, or None where there is none."""
        ...


def effective_spec(workflow: Object, source: TemplateSource) -> Object:
    """The Workflow's spec laid over the spec of the WorkflowTemplate that it refers to, arguments joined by name.

    Raises:
        InvalidValue: The WorkflowTemplate is not there.
    """
    spec: Object = workflow.get("spec") or {}
    reference = spec.get("workflowTemplateRef")
    if not reference:
        return spec
    namespace = workflow["metadata"].get("namespace") or "default"
    found = source(namespace, reference["name"])
    if found is None:
        raise InvalidValue(f'workflow templates.argoproj.io "{reference["name"]}" not found in namespace {namespace}')
    below: Object = found.get("spec") or {}
    own = {key: value for key, value in spec.items() if key != "workflowTemplateRef"}
    joined = {**below, **own}
    parameters = _joined(below.get("arguments"), own.get("arguments"))
    if parameters:
        joined["arguments"] = {"parameters": parameters}
    return joined


def _joined(below: Object | None, above: Object | None) -> list[Object]:
    rows = {each["name"]: each for each in (below or {}).get("parameters") or ()}
    for each in (above or {}).get("parameters") or ():
        rows[each["name"]] = {**rows.get(each["name"], {}), **each}
    return list(rows.values())


class Templates:
    """Templates of one Workflow by scope; ``stored`` is what its status keeps of others."""

    def __init__(self, workflow: Object, spec: Object, source: TemplateSource, stored: Mapping[str, Object]) -> None:
        self._namespace: str = workflow["metadata"].get("namespace") or "default"
        self._source = source
        self._own = {template.get("name", ""): template for template in spec.get("templates") or ()}
        is_referring = bool((workflow.get("spec") or {}).get("workflowTemplateRef"))
        self.scope = LOCAL if is_referring else LOCAL + workflow["metadata"]["name"]
        self.stored: dict[str, Object] = dict(stored)

    def resolve(self, call: Mapping[str, Any], scope: str) -> tuple[Object, str]:
        """The template that a step, a task or a hook calls from a scope, and the scope of what it calls in turn.

        Raises:
            InvalidValue: It is not there, in Argo's words.
        """
        if "inline" in call:
            return call["inline"], scope
        if "templateRef" in call:
            return self._referred(call["templateRef"])
        name = call.get("template", "")
        stored = scope.startswith(NAMESPACED)
        found = self.stored.get(f"{scope}/{name}") if stored else self._own.get(name)
        if found is None:
            raise InvalidValue(f"template name '{name}' undefined")
        return found, scope

    def _referred(self, reference: Object) -> tuple[Object, str]:
        for field in ("name", "template"):
            if not reference.get(field):
                raise InvalidValue(f"templateRef.{field} is required")
        scope = NAMESPACED + reference["name"]
        key = f"{scope}/{reference['template']}"
        if key not in self.stored:
            holder = self._source(self._namespace, reference["name"]) or {}
            for template in (holder.get("spec") or {}).get("templates") or ():
                self.stored.setdefault(f"{scope}/{template['name']}", template)
        if key not in self.stored:
            raise InvalidValue(f"template reference {reference['name']}.{reference['template']} not found")
        return self.stored[key], scope

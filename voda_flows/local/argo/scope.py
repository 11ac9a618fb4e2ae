"""What steps and tasks can say about one another, and about their Workflow, in template variables.

In: ended nodes, a template's declared outputs, the Workflow's own facts; out: variables by name
(``steps.a.outputs.parameters.x``) and a group node's own outputs. A fan-out's outputs are JSON lists in the order
of its items.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from scheduler_core.errors import InvalidValue
from voda_flows.local.argo.expressions import evaluate
from voda_flows.local.argo.names import go_json, text
from voda_flows.local.argo.nodes import is_failed
from voda_flows.local.argo.substitute import OPENING, replace
from voda_flows.objects import Object, parse_time

NODE_FIELDS = {"id": "id", "startedAt": "startedAt", "finishedAt": "finishedAt", "status": "phase", "ip": "podIP",
               "hostNodeName": "hostNodeName"}  # fmt: skip


def node_variables(prefix: str, node: Object) -> dict[str, str]:
    """Variables of one step or task: its status, and what it put out."""
    outputs = node.get("outputs") or {}
    found = {f"{prefix}.{name}": str(node[field]) for name, field in NODE_FIELDS.items() if node.get(field)}
    if outputs.get("exitCode") is not None:
        found[f"{prefix}.exitCode"] = outputs["exitCode"]
    if outputs.get("result") is not None:
        found[f"{prefix}.outputs.result"] = outputs["result"]
    for parameter in outputs.get("parameters") or ():
        if "value" in parameter:
            found[f"{prefix}.outputs.parameters.{parameter['name']}"] = text(parameter["value"])
    return found


def aggregate_variables(prefix: str, children: Sequence[Object]) -> dict[str, str]:
    """Variables of a step or task that was fanned out; children come in the order of their items."""
    found: dict[str, str] = {}
    results, rows, lists = [], [], dict[str, list[Any]]()
    for node in children:
        outputs = node.get("outputs") or {}
        if outputs.get("result") is not None:
            results.append(_as_json(outputs["result"]))
        row = {each["name"]: text(each["value"]) for each in outputs.get("parameters") or () if "value" in each}
        if row:
            rows.append(row)
        for name, value in row.items():
            lists.setdefault(name, []).append(_as_json(value))
    if results:
        found[f"{prefix}.outputs.result"] = go_json(results)
    if rows:
        found[f"{prefix}.outputs.parameters"] = go_json(rows)
    for name, values in lists.items():
        found[f"{prefix}.outputs.parameters.{name}"] = go_json(values)
    return found


def _as_json(value: str) -> Any:  # noqa: ANN401 - an element of a JSON list
    """A list or an object stays one inside an aggregate; everything else is text."""
    if value[:1] not in {"[", "{"}:
        return value
    try:
        return json.loads(value)
    except ValueError:
        return value


def template_outputs(template: Object, variables: Mapping[str, str]) -> Object | None:
    """The outputs of a group's template, taken from its steps or tasks.

    Raises:
        InvalidValue: One is taken from where nothing is, and has no default.
    """
    declared = (template.get("outputs") or {}).get("parameters") or []
    if not declared:
        return None
    return {"parameters": [{"name": each["name"], "value": _taken(each, variables)} for each in declared]}


def _taken(declared: Object, variables: Mapping[str, str]) -> str:
    source = declared.get("valueFrom") or {}
    value = _resolved(source, variables)
    if value is not None:
        return value
    if "default" in source:
        return text(source["default"])
    asked = text(source.get("expression") or source.get("parameter", "")).strip()
    raise InvalidValue(f'Unable to resolve: "{_inside(asked)}"')


def _resolved(source: Object, variables: Mapping[str, str]) -> str | None:
    """What an output is taken from: an expression, or one reference; None where that is not there."""
    if "expression" in source:
        try:
            return text(evaluate(source["expression"], variables))
        except InvalidValue:
            return None
    asked = text(source.get("parameter", "")).strip()
    value = asked if OPENING in _inside(asked) else replace(asked, variables)
    return value if "parameter" in source and OPENING not in value else None


def _inside(asked: str) -> str:
    return asked.removeprefix("{{").removesuffix("}}").strip()


def suspended_outputs(template: Object) -> Object | None:
    """The outputs that a suspended node waits for, as its template declares them."""
    declared = (template.get("outputs") or {}).get("parameters") or []
    supplied = [dict(each) for each in declared if "supplied" in (each.get("valueFrom") or {})]
    return {"parameters": supplied} if supplied else None


def with_defaults(outputs: Object | None) -> Object | None:
    """A suspended node's outputs with defaults where nobody supplied a value.

    Raises:
        InvalidValue: One has neither.
    """
    if not outputs or "parameters" not in outputs:
        return outputs
    return {**outputs, "parameters": [_default(each) for each in outputs["parameters"]]}


def _default(parameter: Object) -> Object:
    if "value" in parameter:
        return {key: part for key, part in parameter.items() if key != "valueFrom"}
    source = parameter.get("valueFrom") or {}
    if "default" not in source:
        raise InvalidValue(
            f"raw output parameter '{parameter['name']}' has not been set and does not have a default value"
        )
    return {"name": parameter["name"], "value": text(source["default"])}


def described(metadata: Object, spec: Object) -> Object:
    """A Workflow's metadata with what its spec adds to them (``workflowMetadata``); its own go before."""
    added = spec.get("workflowMetadata") or {}
    parts = {kind: {**(added.get(kind) or {}), **(metadata.get(kind) or {})} for kind in ("labels", "annotations")}
    return {**metadata, **{kind: part for kind, part in parts.items() if part}}


def workflow_variables(workflow: Object, arguments: Sequence[Object]) -> dict[str, str]:
    """What ``{{workflow...}}`` says: name, uid, parameters, labels, annotations, times."""
    metadata = workflow["metadata"]
    parameters = [each for each in arguments if "value" in each or "default" in each]
    values = {each["name"]: text(each.get("value", each.get("default"))) for each in parameters}
    created = metadata.get("creationTimestamp", "")
    found = {
        "workflow.name": metadata["name"],
        "workflow.namespace": metadata.get("namespace") or "default",
        "workflow.uid": metadata.get("uid", ""),
        "workflow.parameters": go_json([{"name": name, "value": value} for name, value in values.items()]),
        "workflow.creationTimestamp": created,
    }
    if created:
        moment = parse_time(created)
        found["workflow.creationTimestamp.s"] = str(int(moment.timestamp()))
        found["workflow.creationTimestamp.RFC3339"] = moment.strftime("%Y-%m-%dT%H:%M:%SZ")
    found |= {f"workflow.parameters.{name}": value for name, value in values.items()}
    for kind in ("labels", "annotations"):
        found |= {f"workflow.{kind}.{name}": text(value) for name, value in (metadata.get(kind) or {}).items()}
    scheduled = (metadata.get("annotations") or {}).get("workflows.argoproj.io/scheduled-time")
    return found | ({"workflow.scheduledTime": scheduled} if scheduled else {})


def failures(nodes: Mapping[str, Object]) -> str:
    """``{{workflow.failures}}``: the pods that failed, as a JSON list."""
    rows = [
        {
            "displayName": node["displayName"],
            "message": node.get("message", ""),
            "templateName": node.get("templateName", ""),
            "phase": node["phase"],
            "podName": node["id"],
            "finishedAt": node.get("finishedAt"),
        }
        for node in nodes.values()
        if node["type"] == "Pod" and is_failed(node)
    ]
    return go_json(rows)

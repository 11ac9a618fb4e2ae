"""What a node becomes, given what its pod did.

In: a node and its pod as an object, which carries the template's declared outputs; out: the node's phase, message,
outputs and progress, in Argo's words. A pod that ended well may still fail its node: where a declared output file is
missing and has no default.
"""

from __future__ import annotations

import json
from typing import Any

from voda_flows.local.argo import progress
from voda_flows.local.argo.names import text
from voda_flows.local.argo.nodes import is_fulfilled
from voda_flows.local.argo.pods import COLLECT
from voda_flows.objects import POD_ENDED, Object

OUTPUTS = "voda.dev/outputs"
PROGRESS = "voda.dev/progress"


def assessed(node: Object, pod: Object) -> dict[str, Any]:
    """The fields of the node that follow from its pod; those that stay as they are may be among them."""
    status = pod.get("status") or {}
    phase = status.get("phase") or "Pending"
    fields: dict[str, Any] = {}
    if status.get("podIP"):
        fields["podIP"] = status["podIP"]
    host = (pod.get("spec") or {}).get("nodeName")
    if host:
        fields["hostNodeName"] = host
    said = (pod["metadata"].get("annotations") or {}).get(PROGRESS)
    if said and progress.parse(said) and not is_fulfilled(node):
        fields["progress"] = said
    if phase in POD_ENDED:
        return {**fields, **_ended(node, pod)}
    if is_fulfilled(node):
        return fields
    if phase == "Running":
        return {**fields, "phase": "Running", "message": _kept(node)}
    return {**fields, "phase": "Pending", "message": status.get("message") or None}


def _ended(node: Object, pod: Object) -> dict[str, Any]:
    said = _said(pod)
    outputs, missing = _outputs(pod, said)
    fields: dict[str, Any] = {"outputs": outputs or None}
    if is_fulfilled(node):  # a stop has already said how it ended; what it put out is still worth knowing
        return fields
    phase, message = _verdict(pod, said)
    if phase == "Succeeded" and missing:
        phase = "Error"
        path = f"/var/run/argo/outputs/parameters{missing}"
        message = f"wait: Error (exit code 64): open {path}: no such file or directory"
    return {**fields, "phase": phase, "message": message or (_kept(node) if phase == "Succeeded" else None)}


def _kept(node: Object) -> str | None:
    """The message of a node that goes well: what somebody wrote on it stays, why its pod did not run is over."""
    return None if node.get("phase") == "Pending" else node.get("message")


def _said(pod: Object) -> Object:
    try:
        said = json.loads((pod["metadata"].get("annotations") or {}).get(OUTPUTS) or "{}")
    except ValueError:  # a torn write of a pod that died: it said nothing
        return {}
    return said if isinstance(said, dict) else {}


def _verdict(pod: Object, said: Object) -> tuple[str, str]:
    """Phase and message of a pod that has ended."""
    status = pod["status"]
    terminated = _terminated(pod)
    if status.get("reason") == "DeadlineExceeded":
        return "Failed", "Pod was active on the node longer than the specified deadline"
    code = said.get("exitCode", terminated.get("exitCode"))
    if status["phase"] == "Succeeded" or (code is not None and int(code) == 0):
        return "Succeeded", ""
    if code is None:
        return "Error", status.get("message") or "pod failed without an exit code"
    reason = terminated.get("reason") or "Error"
    shown = reason if reason in {"Error", "OOMKilled"} else "Error"
    detail = terminated.get("message")
    return "Failed", f"main: {shown} (exit code {code})" + (f": {detail}" if detail else "")


def _terminated(pod: Object) -> Object:
    for container in pod["status"].get("containerStatuses") or ():
        if container.get("name", "main") == "main":
            ended: Object = (container.get("state") or {}).get("terminated") or {}
            return ended
    return {}


def missing_output(pod: Object, said: Object) -> str:
    """The path of a file that a pod was to leave as an output and did not; empty where there is none."""
    return _outputs(pod, said)[1]


def _outputs(pod: Object, said: Object) -> tuple[Object, str]:
    """A pod's outputs as a node holds them, and the path of a declared file that is missing without a default."""
    found: Object = {}
    collect = _collect(pod)
    code = said.get("exitCode", _terminated(pod).get("exitCode"))
    if code is not None:
        found["exitCode"] = str(code)
    values = said.get("parameters") or {}
    parameters, missing = [], ""
    for declared in collect.get("outputs") or ():
        source = declared.get("valueFrom") or {}
        parameter = dict(declared)
        if declared["name"] in values:
            parameter["value"] = text(values[declared["name"]])
        elif "default" in source:
            parameter["value"] = text(source["default"])
        elif "path" in source:
            missing = missing or source["path"]
        parameters.append(parameter)
    if parameters:
        found["parameters"] = parameters
    if said.get("result") is not None and collect.get("result"):
        found["result"] = said["result"]
    return found, missing


def _collect(pod: Object) -> Object:
    collect: Object = json.loads((pod["metadata"].get("annotations") or {}).get(COLLECT) or "{}")
    return collect

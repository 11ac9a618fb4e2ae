"""The pod of a node: what its template asks for, as an object that can be run.

In: a template with all variables filled in and what the Workflow adds to every pod; out: a ``Pod`` object. What
is to be collected from it (output files, standard output) and a script's source stand in its annotation
``voda.dev/collect`` (docs/contracts.md, section 9).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from scheduler_core.errors import InvalidValue
from voda_flows.local.argo.names import node_id, text
from voda_flows.local.argo.podpatch import patched
from voda_flows.local.argo.schema import check_pod_spec
from voda_flows.objects import COMPLETED_LABEL, WORKFLOW_LABEL, Object

ON_EXIT_LABEL = "workflows.argoproj.io/on-exit"
NODE_ID = "workflows.argoproj.io/node-id"
NODE_NAME = "workflows.argoproj.io/node-name"
COLLECT = "voda.dev/collect"
SCRIPT_PATH = "/argo/staging/script"
PROGRESS_ENV = {"name": "ARGO_PROGRESS_FILE", "value": "/var/run/argo/progress"}

# Fields of a template or a Workflow's spec that go to the pod's spec under the same name; the template's come first.
POD_FIELDS = (
    "nodeSelector", "tolerations", "serviceAccountName", "automountServiceAccountToken",
)  # fmt: skip
WORKFLOW_POD_FIELDS = ("imagePullSecrets", "hostNetwork")


@dataclass(frozen=True, slots=True, kw_only=True)
class PodRequest:
    """One node's pod to be: its names and whether its standard output is read as ``outputs.result``."""

    pod_name: str
    node_name: str
    on_exit: bool
    wants_result: bool


def build_pod(request: PodRequest, template: Object, workflow: Object, spec: Object) -> Object:
    """The pod object of a node.

    Raises:
        InvalidValue: A mount names no volume, or the ``podSpecPatch`` is none or brings what local mode does not know.
    """
    return {"apiVersion": "v1", "kind": "Pod", "metadata": _metadata(request, template, workflow, spec),
            "spec": _pod_spec(template, spec)}  # fmt: skip


def _metadata(request: PodRequest, template: Object, workflow: Object, spec: Object) -> Object:
    name = workflow["metadata"]["name"]
    added: list[Mapping[str, Any]] = [template.get("metadata") or {}, spec.get("podMetadata") or {}]
    labels = {key: text(value) for each in added for key, value in (each.get("labels") or {}).items()}
    annotations = {key: text(value) for each in added for key, value in (each.get("annotations") or {}).items()}
    labels |= {WORKFLOW_LABEL: name, COMPLETED_LABEL: "false"}
    if request.on_exit:
        labels[ON_EXIT_LABEL] = "true"
    annotations |= {
        NODE_ID: node_id(name, request.node_name),
        NODE_NAME: request.node_name,
        COLLECT: json.dumps(_collected(template, request.wants_result), sort_keys=True),
    }
    owner = {"apiVersion": "argoproj.io/v1alpha1", "kind": "Workflow", "name": name,
             "uid": workflow["metadata"].get("uid", ""), "controller": True, "blockOwnerDeletion": True}  # fmt: skip
    return {
        "name": request.pod_name,
        "namespace": workflow["metadata"].get("namespace") or "default",
        "labels": labels,
        "annotations": annotations,
        "ownerReferences": [owner],
    }


def _collected(template: Object, wants_result: bool) -> Object:
    declared = (template.get("outputs") or {}).get("parameters") or ()
    paths = {each["name"]: each["valueFrom"]["path"] for each in declared if "path" in (each.get("valueFrom") or {})}
    found: Object = {"parameters": paths, "result": wants_result, "outputs": list(declared)}
    if "script" in template:
        found |= {"source": template["script"].get("source", ""), "sourcePath": SCRIPT_PATH}
    return found


def _pod_spec(template: Object, spec: Object) -> Object:
    container = _container(template)
    pod: Object = {"containers": [container], "restartPolicy": "Never"}
    volumes = _volumes(container, template, spec)
    if volumes:
        pod["volumes"] = volumes
    for field in POD_FIELDS + WORKFLOW_POD_FIELDS:
        value = template.get(field, spec.get(field))
        if value is not None:
            pod[field] = value
    if "activeDeadlineSeconds" in template:
        pod["activeDeadlineSeconds"] = int(text(template["activeDeadlineSeconds"]))
    patches = [patch for patch in (spec.get("podSpecPatch"), template.get("podSpecPatch")) if patch]
    for patch in patches:
        try:
            pod = patched(pod, patch)
        except InvalidValue as error:  # Argo says so much, and not why
            why = str(error).removeprefix("podSpecPatch: ")
            raise InvalidValue(f"Error applying PodSpecPatch: {why}") from error
    # Without a patch too: a variable may have brought a path that leaves its volume.
    check_pod_spec(pod, "podSpecPatch" if patches else "pod")
    return pod


def _container(template: Object) -> Object:
    declared: Object = template["script"] if "script" in template else template["container"]
    container = {**declared, "name": "main"}
    if "script" in template:
        container.pop("source", None)
        container["args"] = [*(declared.get("args") or ()), SCRIPT_PATH]
    env = list(declared.get("env") or ())
    if all(each["name"] != PROGRESS_ENV["name"] for each in env):
        env.append(PROGRESS_ENV)
    container["env"] = env
    return container


def _volumes(container: Object, template: Object, spec: Object) -> list[Object]:
    """The template's volumes, and those of the Workflow that the container mounts."""
    own: list[Object] = list(template.get("volumes") or ())
    named = {each["name"] for each in own}
    shared = {each["name"]: each for each in spec.get("volumes") or () if each["name"] not in named}
    used = []
    for mount in container.get("volumeMounts") or ():
        if mount["name"] in named:
            continue
        if mount["name"] not in shared:
            raise InvalidValue(f"volume '{mount['name']}' not found in workflow spec")
        used.append(shared[mount["name"]])
        named.add(mount["name"])
    return own + used

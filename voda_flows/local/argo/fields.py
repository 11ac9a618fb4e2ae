"""The fields that a Workflow may have: which Argo knows, which of them local mode does, and of what type they are.

Tables only; ``schema.py`` checks documents against them. A field that Argo knows and local mode does not is NO: it
is refused by name, so nobody believes that it is obeyed.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

TEXT = "string"
NUMBER = "integer"
TRUTH = "boolean"
SCALAR = "scalar"  # text, number or truth: Argo's AnyString and Kubernetes' IntOrString
ANY = "any"  # taken over as it is
NO = "no"  # known to Argo, not supported in local mode
QUANTITY = "quantity"
MAP = {"*": SCALAR}

Fields = Mapping[str, Any]


def _many(kind: str, *names: str) -> dict[str, str]:
    return dict.fromkeys(names, kind)


KEY_REF: Fields = {"name": TEXT, "key": TEXT, "optional": TRUTH}
FIELD_REF: Fields = {"apiVersion": TEXT, "fieldPath": TEXT}

ENV: Fields = {
    "name": TEXT,
    "value": TEXT,
    "valueFrom": {"fieldRef": FIELD_REF, "secretKeyRef": KEY_REF, "configMapKeyRef": KEY_REF,
                  **_many(NO, "resourceFieldRef", "fileKeyRef")},
}  # fmt: skip

CONTAINER: Fields = {
    **_many(TEXT, "name", "image", "workingDir", "imagePullPolicy", "terminationMessagePath",
            "terminationMessagePolicy"),
    "command": [TEXT],
    "args": [TEXT],
    "env": [ENV],
    "ports": [ANY],
    "resources": {"limits": {"*": QUANTITY}, "requests": {"*": QUANTITY}, "claims": NO},
    "volumeMounts": [{**_many(TEXT, "name", "mountPath", "subPath"), "readOnly": TRUTH,
                      **_many(NO, "subPathExpr", "mountPropagation", "recursiveReadOnly")}],
    **_many(ANY, "readinessProbe", "securityContext"),
    **_many(TRUTH, "stdin", "stdinOnce", "tty"),
    **_many(NO, "envFrom", "lifecycle", "livenessProbe", "startupProbe", "volumeDevices", "resizePolicy",
            "restartPolicy", "restartPolicyRules"),
}  # fmt: skip

VALUE_FROM: Fields = {
    **_many(TEXT, "path", "parameter"),
    "default": SCALAR,
    "supplied": {},
    **_many(NO, "configMapKeyRef", "event", "expression", "jqFilter", "jsonPath"),
}
PARAMETER: Fields = {"name": TEXT, "value": SCALAR, "default": SCALAR, "description": SCALAR, "enum": [SCALAR],
                     "valueFrom": VALUE_FROM, "globalName": NO}  # fmt: skip
ARGUMENTS: Fields = {"parameters": [PARAMETER], "artifacts": NO}
INPUTS: Fields = ARGUMENTS
OUTPUTS: Fields = {"parameters": [PARAMETER], **_many(NO, "artifacts", "exitCode", "result")}

METADATA: Fields = {"labels": MAP, "annotations": MAP}
TEMPLATE_REF: Fields = {"name": TEXT, "template": TEXT, "clusterScope": NO}
SEQUENCE: Fields = _many(SCALAR, "count", "start", "end", "format")

RETRY: Fields = {
    "limit": SCALAR,
    "retryPolicy": TEXT,
    "expression": TEXT,
    "backoff": _many(SCALAR, "duration", "factor", "maxDuration", "cap"),
    "affinity": NO,
}

POD_LEVEL: Fields = {
    "nodeSelector": MAP,
    "tolerations": [ANY],
    **_many(ANY, "affinity", "securityContext", "hostAliases"),
    **_many(TEXT, "serviceAccountName", "schedulerName", "priorityClassName", "podSpecPatch"),
    "automountServiceAccountToken": TRUTH,
    "volumes": [ANY],
}

STEP: dict[str, Any] = {
    **_many(TEXT, "name", "template"),
    "templateRef": TEMPLATE_REF,
    "arguments": ARGUMENTS,
    "continueOn": _many(TRUTH, "failed", "error"),
    "when": SCALAR,
    "withItems": [ANY],
    "withParam": SCALAR,
    "withSequence": SEQUENCE,
    **_many(NO, "hooks", "onExit"),
}
TASK: dict[str, Any] = {**STEP, "depends": TEXT, "dependencies": [TEXT]}

TEMPLATE: Fields = {
    "name": TEXT,
    "annotations": MAP,
    "metadata": METADATA,
    "inputs": INPUTS,
    "outputs": OUTPUTS,
    "steps": [[STEP]],
    "dag": {"tasks": [TASK], "failFast": TRUTH, "target": NO},
    "container": CONTAINER,
    "script": {**CONTAINER, "source": TEXT},
    "suspend": {"duration": SCALAR},
    "retryStrategy": RETRY,
    "activeDeadlineSeconds": SCALAR,
    "parallelism": NUMBER,
    "failFast": NO,
    **POD_LEVEL,
    **_many(NO, "archiveLocation", "containerSet", "daemon", "data", "executor", "http", "initContainers", "memoize",
            "metrics", "plugin", "resource", "sidecars", "synchronization", "timeout"),
}  # fmt: skip
STEP["inline"] = TASK["inline"] = TEMPLATE

SPEC: Fields = {
    **_many(TEXT, "entrypoint", "onExit", "shutdown", "podPriorityClassName", "dnsPolicy"),
    "arguments": ARGUMENTS,
    "templates": [TEMPLATE],
    "workflowTemplateRef": {"name": TEXT, "clusterScope": NO},
    "hooks": {"exit": {"template": TEXT, "templateRef": TEMPLATE_REF, "arguments": ARGUMENTS, "expression": NO},
              "*": NO},
    "suspend": TRUTH,
    "activeDeadlineSeconds": NUMBER,
    "podMetadata": METADATA,
    "workflowMetadata": {**METADATA, "labelsFrom": NO},
    **POD_LEVEL,
    "hostNetwork": TRUTH,
    "priority": NUMBER,
    # What becomes of a Workflow that has ended, and what has no meaning on one machine: taken note of, not obeyed.
    **_many(ANY, "ttlStrategy", "podGC", "imagePullSecrets", "dnsConfig", "volumeClaimGC", "archiveLogs"),
    **_many(NO, "artifactGC", "artifactRepositoryRef", "executor", "metrics", "parallelism", "podDisruptionBudget",
            "retryStrategy", "synchronization", "templateDefaults", "volumeClaimTemplates"),
}  # fmt: skip

WORKFLOW: Fields = {**_many(TEXT, "apiVersion", "kind"), **_many(ANY, "metadata", "status"), "spec": SPEC}

"""The fields that a Workflow may have: which Argo knows, which of them local mode does, and of what type they are.

Tables only; ``schema.py`` checks documents against them. A field that Argo or Kubernetes knows and local mode does not
is NO: it is refused by name, so nobody believes that it is obeyed. ANY is either obeyed or asks for nothing that one
machine could withhold (an image's pull secrets, tolerations where no node has a taint).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from voda_flows.objects import GPU

TEXT = "string"
NUMBER = "integer"
TRUTH = "boolean"
SCALAR = "scalar"  # text, number or truth: Argo's AnyString and Kubernetes' IntOrString
ANY = "any"  # taken over as it is
NO = "no"  # known to Argo, not supported in local mode
QUANTITY = "quantity"
LABEL = "label"  # text that names a folder: lower-case letters, digits and dashes
CLAIM = "claim"  # the same, of several parts with dots between
INSIDE = "inside"  # a path that stays in the folder it begins in
STAYING = "staying"  # a path without `..`
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

# Slots of a virtual node are counted; CPU and memory are the machine's, and nothing holds a process back from them.
AMOUNTS: Fields = {**_many(QUANTITY, GPU, "cpu", "memory", "ephemeral-storage"), "*": NO}

# How soon and how often a probe asks is not taken literally: local mode asks at every look.
PROBE: Fields = {
    "tcpSocket": {"port": NUMBER, "host": NO},
    **_many(NUMBER, "periodSeconds", "timeoutSeconds", "failureThreshold"),
    **_many(NO, "exec", "grpc", "httpGet", "initialDelaySeconds", "successThreshold", "terminationGracePeriodSeconds"),
}

CONTAINER: Fields = {
    **_many(TEXT, "name", "image", "workingDir", "imagePullPolicy"),
    "command": [TEXT],
    "args": [TEXT],
    "env": [ENV],
    "ports": [ANY],
    "resources": {"limits": AMOUNTS, "requests": AMOUNTS, "claims": NO},
    "volumeMounts": [{**_many(TEXT, "name", "mountPath"), "subPath": INSIDE, "readOnly": TRUTH,
                      **_many(NO, "subPathExpr", "mountPropagation", "recursiveReadOnly")}],
    "readinessProbe": PROBE,
    **_many(NO, "envFrom", "lifecycle", "livenessProbe", "resizePolicy", "restartPolicy", "restartPolicyRules",
            "securityContext", "startupProbe", "stdin", "stdinOnce", "terminationMessagePath",
            "terminationMessagePolicy", "tty", "volumeDevices"),
}  # fmt: skip

VOLUME: Fields = {
    "name": LABEL,
    "persistentVolumeClaim": {"claimName": CLAIM, "readOnly": TRUTH},
    "emptyDir": _many(NO, "medium", "sizeLimit"),
    "hostPath": {"path": TEXT, "type": NO},
    "secret": {"secretName": TEXT, "optional": TRUTH, "items": [{"key": TEXT, "path": INSIDE, "mode": NO}],
               "defaultMode": NO},
    "configMap": {"name": TEXT, "optional": TRUTH, "items": [{"key": TEXT, "path": INSIDE, "mode": NO}],
                  "defaultMode": NO},
    "downwardAPI": {"items": [{"path": INSIDE, "fieldRef": FIELD_REF, **_many(NO, "mode", "resourceFieldRef")}],
                    "defaultMode": NO},
    **_many(NO, "awsElasticBlockStore", "azureDisk", "azureFile", "cephfs", "cinder", "csi", "ephemeral", "fc",
            "flexVolume", "flocker", "gcePersistentDisk", "gitRepo", "glusterfs", "image", "iscsi", "nfs",
            "photonPersistentDisk", "portworxVolume", "projected", "quobyte", "rbd", "scaleIO", "storageos",
            "vsphereVolume"),
}  # fmt: skip

VALUE_FROM: Fields = {
    "path": STAYING,
    "parameter": TEXT,
    "default": TEXT,
    "supplied": {},
    **_many(NO, "configMapKeyRef", "event", "expression", "jqFilter", "jsonPath"),
}
PARAMETER: Fields = {"name": TEXT, "value": TEXT, "default": TEXT, "description": SCALAR, "enum": [TEXT],
                     "valueFrom": VALUE_FROM, "globalName": NO}  # fmt: skip
OUTPUT: Fields = {**PARAMETER, "valueFrom": {**VALUE_FROM, "expression": TEXT}}
#: What a list holds only under a name.
NAMED = (ENV, VOLUME, PARAMETER, OUTPUT)
ARGUMENTS: Fields = {"parameters": [PARAMETER], "artifacts": NO}
INPUTS: Fields = ARGUMENTS
OUTPUTS: Fields = {"parameters": [OUTPUT], **_many(NO, "artifacts", "exitCode", "result")}

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

# What a template, a Workflow and a pod's spec have in common.
SCHEDULING: Fields = {
    "nodeSelector": MAP,
    "tolerations": [ANY],
    "serviceAccountName": TEXT,
    "automountServiceAccountToken": TRUTH,
    "volumes": [VOLUME],
    **_many(NO, "affinity", "hostAliases", "priorityClassName", "schedulerName", "securityContext"),
}
POD_LEVEL: Fields = {**SCHEDULING, "podSpecPatch": TEXT}

# A pod's spec as a ``podSpecPatch`` may leave it.
POD_SPEC: Fields = {
    **SCHEDULING,
    "containers": [CONTAINER],
    **_many(TEXT, "nodeName", "restartPolicy"),
    **_many(NUMBER, "activeDeadlineSeconds", "terminationGracePeriodSeconds"),
    "hostNetwork": TRUTH,
    "imagePullSecrets": ANY,
    **_many(NO, "dnsConfig", "dnsPolicy", "enableServiceLinks", "ephemeralContainers", "hostIPC", "hostPID",
            "hostUsers", "hostname", "initContainers", "os", "overhead", "preemptionPolicy", "priority",
            "readinessGates", "resourceClaims", "resources", "runtimeClassName", "schedulingGates", "serviceAccount",
            "setHostnameAsFQDN", "shareProcessNamespace", "subdomain", "topologySpreadConstraints"),
}  # fmt: skip

STEP: dict[str, Any] = {
    **_many(TEXT, "name", "template"),
    "templateRef": TEMPLATE_REF,
    "arguments": ARGUMENTS,
    "continueOn": _many(TRUTH, "failed", "error"),
    "when": TEXT,
    "withItems": [ANY],
    "withParam": TEXT,
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
    "suspend": {"duration": TEXT},
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
    **_many(TEXT, "entrypoint", "onExit", "shutdown"),
    "arguments": ARGUMENTS,
    "templates": [TEMPLATE],
    "workflowTemplateRef": {"name": TEXT, "clusterScope": NO},
    "hooks": {"exit": {"template": TEXT, "templateRef": TEMPLATE_REF, "arguments": ARGUMENTS, "expression": NO},
              "*": NO},
    "suspend": TRUTH,
    "activeDeadlineSeconds": NUMBER,
    "ttlStrategy": _many(NUMBER, "secondsAfterCompletion", "secondsAfterSuccess", "secondsAfterFailure"),
    "podMetadata": METADATA,
    "workflowMetadata": {**METADATA, "labelsFrom": NO},
    **POD_LEVEL,
    "hostNetwork": TRUTH,
    "priority": NUMBER,
    "imagePullSecrets": ANY,
    **_many(NO, "archiveLogs", "artifactGC", "artifactRepositoryRef", "dnsConfig", "dnsPolicy", "executor", "metrics",
            "parallelism", "podDisruptionBudget", "podGC", "podPriorityClassName", "retryStrategy", "synchronization",
            "templateDefaults", "volumeClaimGC", "volumeClaimTemplates"),
}  # fmt: skip

OBJECT_META: Fields = {
    **_many(TEXT, "name", "generateName", "namespace"),
    "labels": {"*": TEXT},
    "annotations": {"*": TEXT},
    "*": ANY,
}
WORKFLOW: Fields = {**_many(TEXT, "apiVersion", "kind"), "metadata": OBJECT_META, "status": ANY, "spec": SPEC}

"""What the cluster's tests do in a cluster: pods and Workflows that run what this computer has, and their ends."""

from __future__ import annotations

import itertools
import sys
from typing import Any

from tests.cluster.cluster import Cluster
from tests.cluster.images import HOST_IMAGE, host_mount, host_volume
from voda_flows.objects import GPU, HOSTNAME_LABEL, Object

PODS = "/api/v1/namespaces/default/pods"
WORKFLOWS = "/apis/argoproj.io/v1alpha1/namespaces/default/workflows"
ENDED = {"Succeeded", "Failed"}
LIMIT_S = 180.0
SERVER_PORT = 8000
_numbers = itertools.count()


def run_pod(cluster: Cluster, *command: str, node: str, gpus: int = 0) -> str:
    """Start a pod on a node, which must have room for it; returns its name.

    Args:
        cluster: Where.
        command: What runs in it; the files of this computer are there.
        node: Where it has to run.
        gpus: How many GPUs it asks for.
    """
    name = f"pod-{next(_numbers)}"
    cluster.api.post(PODS, pod(name, *command, node=node, gpus=gpus))
    return name


def pod(name: str, *command: str, node: str, gpus: int = 0) -> Object:
    """The document of such a pod."""
    container: dict[str, Any] = {
        "name": "main",
        "image": HOST_IMAGE,
        "imagePullPolicy": "Never",
        "command": list(command),
        "volumeMounts": [host_mount()],
        "resources": {"limits": {GPU: str(gpus)}} if gpus else {},
    }
    spec = {
        "nodeSelector": {HOSTNAME_LABEL: node},
        "restartPolicy": "Never",
        "terminationGracePeriodSeconds": 1,
        "containers": [container],
        "volumes": [host_volume()],
    }
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec}


def run_server(cluster: Cluster, *, node: str) -> str:
    """Start a pod that serves an empty folder on ``SERVER_PORT``; returns its address when it does."""
    name = f"pod-{next(_numbers)}"
    document = pod(name, sys.executable, "-m", "http.server", "--directory", "/tmp", str(SERVER_PORT), node=node)
    document["spec"]["containers"][0]["readinessProbe"] = {"tcpSocket": {"port": SERVER_PORT}, "periodSeconds": 1}
    cluster.api.post(PODS, document)
    found = cluster.api.wait(PODS, name, _is_ready, LIMIT_S)
    return str(found["status"]["podIP"])


def _is_ready(found: Object) -> bool:
    conditions = found["status"].get("conditions") or ()
    return any(each["type"] == "Ready" and each["status"] == "True" for each in conditions)


def wait_for_phase(cluster: Cluster, name: str, *phases: str) -> Object:
    """Wait until a pod is in one of these phases; returns it."""
    return cluster.api.wait(PODS, name, lambda found: found["status"].get("phase") in phases, LIMIT_S)


def logs_of_ended(cluster: Cluster, name: str) -> tuple[str, str]:
    """Wait until a pod has ended; returns its phase and what it said."""
    found = wait_for_phase(cluster, name, *ENDED)
    return found["status"]["phase"], cluster.api.text(f"{PODS}/{name}/log")


def delete_pods(cluster: Cluster) -> None:
    """Delete all pods of the tests and wait until they are gone."""
    for found in cluster.api.get(PODS)["items"]:
        name = found["metadata"]["name"]
        cluster.api.delete(f"{PODS}/{name}?gracePeriodSeconds=1")
        cluster.api.wait_until_gone(PODS, name, LIMIT_S)


def allow_jobs(cluster: Cluster) -> None:
    """Give the default account what Argo's executor needs."""
    rule = {"apiGroups": ["argoproj.io"], "resources": ["workflowtaskresults"], "verbs": ["create", "patch"]}
    metadata = {"name": "executor", "namespace": "default"}
    version = "rbac.authorization.k8s.io/v1"
    cluster.api.apply({"apiVersion": version, "kind": "Role", "metadata": metadata, "rules": [rule]})
    cluster.api.apply(
        {
            "apiVersion": version,
            "kind": "RoleBinding",
            "metadata": metadata,
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "executor"},
            "subjects": [{"kind": "ServiceAccount", "name": "default", "namespace": "default"}],
        }
    )


def run_workflow(cluster: Cluster, *command: str, node: str) -> Object:
    """Run a Workflow of one pod whose output is the file ``/tmp/out``; returns the Workflow when it has ended."""
    name = f"workflow-{next(_numbers)}"
    template = {
        "name": "main",
        "nodeSelector": {HOSTNAME_LABEL: node},
        "container": {
            "image": HOST_IMAGE,
            "imagePullPolicy": "Never",
            "command": list(command),
            "volumeMounts": [host_mount()],
        },
        "volumes": [host_volume()],
        "outputs": {"parameters": [{"name": "out", "valueFrom": {"path": "/tmp/out", "default": "none"}}]},
    }
    document = {
        "apiVersion": "argoproj.io/v1alpha1",
        "kind": "Workflow",
        "metadata": {"name": name},
        "spec": {"entrypoint": "main", "templates": [template]},
    }
    cluster.api.post(WORKFLOWS, document)
    return cluster.api.wait(
        WORKFLOWS, name, lambda found: found.get("status", {}).get("phase") in {*ENDED, "Error"}, LIMIT_S
    )

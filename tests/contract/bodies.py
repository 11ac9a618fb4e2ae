"""Small objects that every world takes."""

from __future__ import annotations

import json
from typing import Any

from voda_flows.objects import Object


def to_text(body: Object) -> str:
    """A document as JSON."""
    return json.dumps(body)


def secret(name: str, namespace: str, **metadata: Any) -> Object:
    """A small object; clusters make no Secrets of their own."""
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "type": "Opaque",
        "metadata": {"name": name, "namespace": namespace, **metadata},
        "data": {"a": "MQ=="},
    }


def workflow(namespace: str, **metadata: Any) -> Object:
    """A Workflow that waits."""
    return {
        "apiVersion": "argoproj.io/v1alpha1",
        "kind": "Workflow",
        "metadata": {"namespace": namespace, **metadata},
        "spec": {"entrypoint": "gate", "templates": [{"name": "gate", "suspend": {}}]},
    }


def pod(name: str, namespace: str, **metadata: Any) -> Object:
    """A pod on a node that nobody has: nothing but its deletion ends it, and that takes its kubelet."""
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": namespace, **metadata},
        "spec": {"nodeName": "nowhere", "containers": [{"name": "main", "image": "none"}]},
    }


def owned_by(owner: Object) -> list[Object]:
    """The ownerReferences of what an object owns."""
    return [
        {
            "apiVersion": owner["apiVersion"],
            "kind": owner["kind"],
            "name": owner["metadata"]["name"],
            "uid": owner["metadata"]["uid"],
        }
    ]

"""Small Workflows and pods that did something, for tests of the engine's decisions."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from copy import deepcopy
from datetime import UTC, datetime, timedelta
from typing import Any

from voda_flows.local.argo import Advance, advance
from voda_flows.objects import Object, format_time

START = datetime(2026, 1, 31, 10, 0, tzinfo=UTC)


def workflow(*templates: Object, **spec: Any) -> Object:
    """A Workflow ``w`` of these templates; the first is its entrypoint."""
    return {
        "apiVersion": "argoproj.io/v1alpha1",
        "kind": "Workflow",
        "metadata": {"name": "w", "namespace": "default", "uid": "uid-w", "creationTimestamp": format_time(START)},
        "spec": {"entrypoint": templates[0]["name"] if templates else None, "templates": list(templates), **spec},
    }


def shell(name: str = "sh", command: str = "true", **fields: Any) -> Object:
    """A template that runs a shell command."""
    return {"name": name, "container": {"image": "i", "command": ["sh", "-c", command]}, **fields}


def steps(*groups: Sequence[Object], name: str = "main", **fields: Any) -> Object:
    """A Steps template."""
    return {"name": name, "steps": [list(group) for group in groups], **fields}


def dag(*tasks: Object, name: str = "main", **fields: Any) -> Object:
    """A DAG template."""
    return {"name": name, "dag": {"tasks": list(tasks)}, **fields}


def call(name: str, template: str = "sh", **fields: Any) -> Object:
    """A step or task; ``arguments`` may be given as a plain mapping."""
    arguments = fields.pop("arguments", None)
    if arguments:
        fields["arguments"] = {"parameters": [{"name": key, "value": value} for key, value in arguments.items()]}
    return {"name": name, "template": template, **fields}


class Bench:
    """A Workflow, its pods and the time, advanced by hand."""

    def __init__(self, document: Object, templates: Mapping[str, Object] | None = None) -> None:
        self.workflow = deepcopy(document)
        self.pods: dict[str, Object] = {}
        self.templates = dict(templates or {})
        self.now = START
        self.ended: list[str] = []

    def look(self, after_s: float = 0.0) -> Advance:
        """One advance, a time after the last; its pods are made and its Workflow is kept."""
        self.now += timedelta(seconds=after_s)
        found = advance(self.workflow, self.pods, lambda _namespace, name: self.templates.get(name), self.now)
        for pod in found.create:
            made = deepcopy(pod)
            made["metadata"]["creationTimestamp"] = format_time(self.now)
            assert made["metadata"]["name"] not in self.pods, "a pod was made twice"
            self.pods[made["metadata"]["name"]] = made
        self.ended.extend((*found.end, *found.delete))
        self.workflow = found.workflow
        return found

    def pod(self, node: str) -> Object:
        """The pod of a node, by the node's display name or its whole name."""
        named = {each["name"] for each in self.nodes.values() if node in (each["name"], each["displayName"])}
        key = "workflows.argoproj.io/node-name"
        (found,) = [pod for pod in self.pods.values() if pod["metadata"]["annotations"][key] in named]
        return found

    def run(self, node: str) -> None:
        """The pod of a node starts to run."""
        self.pod(node)["status"] = {"phase": "Running", "startTime": format_time(self.now)}

    def end(self, node: str, code: int = 0, *, result: str | None = None, **outputs: str) -> None:
        """The pod of a node ends with an exit code and outputs."""
        said: dict[str, Any] = {"parameters": outputs, "exitCode": str(code)}
        if result is not None:
            said["result"] = result
        pod = self.pod(node)
        pod["metadata"]["annotations"]["voda.dev/outputs"] = json.dumps(said)
        terminated = {"exitCode": code, "reason": "Error" if code else "Completed", "finishedAt": format_time(self.now)}
        pod["status"] = {
            "phase": "Failed" if code else "Succeeded",
            "containerStatuses": [{"name": "main", "state": {"terminated": terminated}}],
        }

    @property
    def status(self) -> Object:
        """The Workflow's status."""
        status: Object = self.workflow.get("status", {})
        return status

    @property
    def nodes(self) -> dict[str, Object]:
        """Nodes by whole name."""
        return {node["name"]: node for node in self.status.get("nodes", {}).values()}

    @property
    def phases(self) -> dict[str, str]:
        """Phases of nodes by whole name."""
        return {name: node["phase"] for name, node in self.nodes.items()}

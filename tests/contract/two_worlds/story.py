"""What became of a Workflow, in a form that is the same in both worlds where they agree.

In: a ``Flow``; out: a ``Story``: every fact by its place, as text. Names of nodes stand for their ids; the uid, times,
addresses and the node of the cluster that a pod was given are no part of it, since they are chance.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from tests.contract.two_worlds.world import Flow
from voda_flows.objects import Object

Story = dict[str, str]
"""Facts by their places: ``node [0].a.phase`` -> ``Succeeded``."""

NODE_FIELDS = (
    "displayName", "type", "phase", "message", "templateName", "templateRef", "templateScope", "inputs", "outputs",
    "progress", "nodeFlag",
)  # fmt: skip
LEAVES = ("Pod", "Suspend")
#: Labels and annotations that only one of the worlds has on its pods, for purposes of its own.
OF_THE_ENGINE = ("voda.dev/collect", "voda.dev/outputs", "voda.dev/progress", "voda.dev/slots", "voda.dev/end")
OF_THE_CONTROLLER = ("workflows.argoproj.io/pod-name-format", "workflows.argoproj.io/last-seen-version")
OF_THE_EXECUTOR = ("kubectl.kubernetes.io/default-container", "workflows.argoproj.io/pod-name-format")
CHANCE = "<...>"


def story(flow: Flow) -> Story:
    """The Workflow, its nodes and its pods as they are now."""
    workflow = flow.workflow
    facts = {f"workflow.{name}": value for name, value in _workflow(workflow).items()}
    nodes: Mapping[str, Object] = flow.status.get("nodes") or {}
    for node in nodes.values():
        facts |= {f"node {_short(node['name'], flow)}.{name}": value for name, value in _node(node, nodes).items()}
    for name, pod in flow.pods.items():
        facts |= {f"pod {_short(name, flow)}.{field}": value for field, value in _pod(pod).items()}
    facts["order"] = [f"{one} ends after {other} begins" for one, other in _out_of_order(nodes)]
    return {place: _text(value, workflow) for place, value in facts.items() if value not in (None, "", [], {})}


def life(flow: Flow) -> Story:
    """Only how the Workflow and its nodes stand: what is looked at in the middle of a life."""
    found = {"workflow.phase": flow.status.get("phase", ""), "workflow.progress": flow.status.get("progress", "")}
    for name, node in flow.nodes.items():
        found[f"node {_short(name, flow)}"] = f"{node['type']} {node['phase']} {node.get('message', '')}".strip()
    return found


def refusal(words: str) -> Story:
    """The story of a document that was not taken, without what the API server puts before the reason."""
    for before in (" is invalid: ", "cannot be handled as a Workflow: ", "invalid spec: "):
        words = words.rsplit(before, maxsplit=1)[-1]
    return {"refused": words}


def differences(local: Story, cluster: Story) -> list[str]:
    """One line for each fact that differs, empty where the worlds agree.

    A refusal agrees when it begins with Argo's words: local mode says more, such as what was meant.
    """
    if "refused" in local and "refused" in cluster and local["refused"].startswith(cluster["refused"]):
        return []
    places = sorted(local.keys() | cluster.keys())
    return [
        f"{place}: local {local.get(place, 'has none')}, cluster {cluster.get(place, 'has none')}"
        for place in places
        if local.get(place) != cluster.get(place)
    ]


def _short(name: str, flow: Flow) -> str:
    return name.removeprefix(flow.name) or "."


def _workflow(workflow: Object) -> dict[str, Any]:
    status, metadata = workflow.get("status") or {}, workflow.get("metadata") or {}
    message = status.get("message")
    if str(message).startswith("invalid spec: "):  # of the controller: it is refused at submission where it can be
        return {"refused": message}
    return {
        "phase": status.get("phase"),
        "message": message,
        "progress": status.get("progress"),
        "conditions": sorted(_condition(each) for each in status.get("conditions") or ()),
        "labels": metadata.get("labels"),
        "annotations": {key: value for key, value in (metadata.get("annotations") or {}).items()
                        if key not in OF_THE_CONTROLLER},
        "outputs": status.get("outputs"),
        "stored": sorted(status.get("storedTemplates") or {}),
        "shutdown": workflow.get("spec", {}).get("shutdown"),
        "suspend": workflow.get("spec", {}).get("suspend"),
    }  # fmt: skip


def _condition(condition: Object) -> str:
    """A condition; whether a pod runs is only what the controller found when it last looked."""
    return str(condition["type"]) + ("" if condition["type"] == "PodRunning" else f"={condition['status']}")


def _node(node: Object, nodes: Mapping[str, Object]) -> dict[str, Any]:
    found = {field: node.get(field) for field in NODE_FIELDS}
    found["boundary"] = _name(node.get("boundaryID", ""), nodes)
    found["outbound"] = sorted(_name(key, nodes) for key in node.get("outboundNodes") or ())
    found["children"] = [_name(key, nodes) for key in node.get("children") or ()]
    found["ended"] = "yes" if node.get("finishedAt") else ""
    return found


def _name(key: str, nodes: Mapping[str, Object]) -> str:
    return str(nodes[key]["name"]) if key in nodes else key


def _pod(pod: Object) -> dict[str, Any]:
    metadata, status = pod["metadata"], pod.get("status") or {}
    states = [each.get("state", {}) for each in status.get("containerStatuses") or () if each["name"] == "main"]
    own = (*OF_THE_ENGINE, *OF_THE_EXECUTOR)
    return {
        "name": metadata["name"],
        "phase": status.get("phase"),
        "exitCode": next((state["terminated"]["exitCode"] for state in states if "terminated" in state), None),
        "labels": metadata.get("labels"),
        "annotations": {key: value for key, value in (metadata.get("annotations") or {}).items() if key not in own},
    }


def _out_of_order(nodes: Mapping[str, Object]) -> Iterator[tuple[str, str]]:
    """(leaf, what follows it) where the second began before the first had ended."""
    for node in nodes.values():
        if node["type"] not in LEAVES:
            continue
        for key in node.get("children") or ():
            if key in nodes and nodes[key]["startedAt"] < (node.get("finishedAt") or ""):
                yield node["name"], nodes[key]["name"]


def _text(value: Any, workflow: Object) -> str:
    said = value if isinstance(value, str) else json.dumps(value, sort_keys=True)
    return said.replace(str((workflow.get("metadata") or {}).get("uid") or CHANCE), "<uid>")


def walk(story: Story) -> Iterator[str]:
    """The story in lines, for reading."""
    return (f"{place}: {value}" for place, value in story.items())

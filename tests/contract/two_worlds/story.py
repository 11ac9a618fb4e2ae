"""What became of a Workflow, in a form that is the same in both worlds where they agree.

In: a ``Flow``; out: a ``Story``: every fact by its place, as text. Names of nodes stand for their ids; the uid, times,
addresses and the node of the cluster that a pod was given are no part of it, since they are chance.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from collections.abc import Set as AbstractSet
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
#: Who did something is no part of a story: local mode has no accounts.
OF_PEOPLE = ("workflows.argoproj.io/action", "workflows.argoproj.io/actor", "workflows.argoproj.io/creator")
RESUMED = "Resumed by: "
STOPPED = "workflow shutdown with strategy: "
#: After a stop Argo leaves it to chance whether a pod that was told to end is shown as failed, or as it then ended:
#: by whether its last words came before the Workflow's end.
LEFT_TO_CHANCE = ("phase", "outputs", "progress")


def story(flow: Flow) -> Story:
    """The Workflow, its nodes and its pods as they are now."""
    workflow = flow.workflow
    facts = {f"workflow.{name}": value for name, value in _workflow(workflow).items()}
    nodes: Mapping[str, Object] = flow.status.get("nodes") or {}
    stopped = {node["name"] for node in nodes.values() if _was_told_to_end(node, workflow)}
    for node in nodes.values():
        found = _node(node, nodes) | _of_the_stopped(node, stopped)
        facts |= {f"node {_short(node['name'], flow)}.{name}": value for name, value in found.items()}
    for name, pod in flow.pods.items():
        found = _pod(pod) | ({"phase": "", "exitCode": ""} if name in stopped else {})
        facts |= {f"pod {_short(name, flow)}.{field}": value for field, value in found.items()}
    if stopped:
        facts["workflow.progress"] = ""
    facts["order"] = [f"{one} ends after {other} begins" for one, other in _out_of_order(nodes)]
    return {place: _text(value, workflow) for place, value in facts.items() if value not in (None, "", [], {})}


def _was_told_to_end(node: Object, workflow: Object) -> bool:
    """Whether a stop ended the node's pod; once its end is seen, its message may say how it ended instead."""
    is_failed = node["type"] == "Pod" and node["phase"] == "Failed" and bool(workflow["spec"].get("shutdown"))
    return is_failed or str(node.get("message") or "").startswith(STOPPED)


def _of_the_stopped(node: Object, stopped: AbstractSet[str]) -> dict[str, str]:
    """What is not told where pods were told to end: of their nodes how they ended, of those around what follows."""
    if not stopped:
        return {}
    if node["name"] in stopped:
        return {**dict.fromkeys(LEFT_TO_CHANCE, ""), "message": "told to end"}
    message = node.get("message", "")
    child = {"message": "a child failed"} if message.startswith("child '") else {}
    around = {"outputs": ""} if node["type"] == "Retry" else {}
    return {} if node["type"] in LEAVES else {"progress": "", **child, **around}


def life(flow: Flow) -> Story:
    """Only how the Workflow and its nodes stand: what is looked at in the middle of a life."""
    found = {"workflow.phase": flow.status.get("phase", ""), "workflow.progress": flow.status.get("progress", "")}
    for name, node in flow.nodes.items():
        found[f"node {_short(name, flow)}"] = f"{node['type']} {node['phase']} {_message(node)}".strip()
    return found


def refusal(words: str) -> Story:
    """The story of a document that was not taken, without what the API server puts around the reason."""
    words = words.split(", <nil>: ", maxsplit=1)[0]
    for before in (" is invalid: ", "cannot be handled as a Workflow: ", "invalid spec: "):
        words = words.rsplit(before, maxsplit=1)[-1]
    return {"refused": words.removeprefix("[")}


def differences(local: Story, cluster: Story) -> list[str]:
    """One line for each fact that differs, empty where the worlds agree."""
    places = sorted(local.keys() | cluster.keys())
    return [
        f"{place}: local {local.get(place, 'has none')}, cluster {cluster.get(place, 'has none')}"
        for place in places
        if not _agrees(place, local.get(place, ""), cluster.get(place, ""))
    ]


def _agrees(place: str, local: str, cluster: str) -> bool:
    """Whether two facts are one: words agree where local mode's begin with Argo's, since it says more."""
    said = bool(cluster) and place.endswith(("refused", "message"))
    return local == cluster or (said and local.startswith(cluster))


def _short(name: str, flow: Flow) -> str:
    return name.removeprefix(flow.name) or "."


def _workflow(workflow: Object) -> dict[str, Any]:
    status, metadata = workflow.get("status") or {}, workflow.get("metadata") or {}
    message = status.get("message")
    if str(message).startswith("invalid spec: "):  # of the controller: it is refused at submission where it can be
        return {"refused": message}
    return {
        "phase": status.get("phase"),
        "message": _with_names(str(message or ""), status.get("nodes") or {}),
        "progress": status.get("progress"),
        "conditions": sorted(_condition(each) for each in status.get("conditions") or ()),
        "labels": {key: value for key, value in (metadata.get("labels") or {}).items() if key not in OF_PEOPLE},
        "annotations": {key: value for key, value in (metadata.get("annotations") or {}).items()
                        if key not in OF_THE_CONTROLLER},
        "outputs": status.get("outputs"),
        "stored": _stored(workflow),
        "shutdown": workflow.get("spec", {}).get("shutdown"),
        "suspend": workflow.get("spec", {}).get("suspend"),
    }  # fmt: skip


def _stored(workflow: Object) -> list[str]:
    """The templates of others that the Workflow keeps; those of its own WorkflowTemplate local mode keeps once."""
    whole = ((workflow.get("spec") or {}).get("workflowTemplateRef") or {}).get("name", "")
    kept = (workflow.get("status") or {}).get("storedTemplates") or {}
    return sorted(key for key in kept if not key.startswith(f"namespaced/{whole}/"))


def _condition(condition: Object) -> str:
    """A condition; whether a pod runs is only what the controller found when it last looked."""
    return str(condition["type"]) + ("" if condition["type"] == "PodRunning" else f"={condition['status']}")


def _node(node: Object, nodes: Mapping[str, Object]) -> dict[str, Any]:
    found = {field: node.get(field) for field in NODE_FIELDS}
    found["message"] = _with_names(_message(node), nodes)
    found["boundary"] = _name(node.get("boundaryID", ""), nodes)
    found["outbound"] = sorted(_name(key, nodes) for key in node.get("outboundNodes") or ())
    found["children"] = [_name(key, nodes) for key in node.get("children") or ()]
    found["ended"] = "yes" if node.get("finishedAt") else ""
    return found


def _with_names(message: str, nodes: Mapping[str, Object]) -> str:
    """A message that names nodes rather than their ids."""
    for key, node in nodes.items():
        message = message.replace(f"'{key}'", f"'{node['name']}'")
    return message


def _message(node: Object) -> str:
    message = str(node.get("message") or "")
    return "" if message.startswith(RESUMED) else message


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
    return said.replace(str(workflow["metadata"]["uid"]), "<uid>")

"""Virtual nodes: their documents, which pod goes to which, and which slots it holds. Pure.

A node has as many slots as its ``status.allocatable`` says of ``nvidia.com/gpu``. A pod holds its slots, alone, from
the moment it is bound until its processes have ended.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from scheduler_core.errors import InvalidValue
from voda_flows.local.launch import SLOTS
from voda_flows.objects import GPU, HOSTNAME_LABEL, POD_ENDED, Key, Object, num_gpus, phase_of

SHAPE = re.compile(r"([1-9]\d{0,3})x(\d{1,3})")


@dataclass(frozen=True, slots=True, kw_only=True)
class Binding:
    """A pod and the node it goes to.

    Attributes:
        pod: The pod.
        node: Name of the node, or none where the pod has to wait.
        slots: Indexes of the node's slots that it holds.
        message: Why it waits.
        is_fault: Whether it makes no sense, so that it waits in vain.
    """

    pod: Key
    node: str | None
    slots: tuple[int, ...] = ()
    message: str = ""
    is_fault: bool = False


def make_node(name: str, gpus: int, labels: Mapping[str, str] | None = None) -> Object:
    """The document of a virtual node."""
    amounts = {GPU: str(gpus)}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {"kubernetes.io/os": "linux", HOSTNAME_LABEL: name, **(labels or {})}},
        "spec": {},
        "status": {
            "capacity": dict(amounts),
            "allocatable": dict(amounts),
            "conditions": [{"type": "Ready", "status": "True"}],
            "addresses": [{"type": "Hostname", "address": name}],
        },
    }


def nodes_of_shape(shape: str) -> list[Object]:
    """The nodes of ``COUNTxGPUS``: ``2x4`` is n0 and n1 with 4 slots each.

    Raises:
        InvalidValue: It is no such text.
    """
    found = SHAPE.fullmatch(shape)
    if found is None:
        raise InvalidValue(f"--nodes: expected COUNTxGPUS such as 2x4, or a YAML file of nodes, got {shape!r}")
    return [make_node(f"n{index}", int(found[2])) for index in range(int(found[1]))]


def nodes_of_documents(documents: Iterable[Object], where: str) -> list[Object]:
    """Nodes from documents: ``Node`` objects, or the short form ``{name, gpus, labels}``.

    ``status.allocatable`` (or ``capacity``) of a Node tells its slots; its labels and ``spec.unschedulable`` are kept.

    Raises:
        InvalidValue: A document is neither, or two have one name; says where.
    """
    nodes = [_node_of(document, f"{where}, document {number}") for number, document in enumerate(documents, 1)]
    names = Counter(node["metadata"]["name"] for node in nodes)
    if not nodes or names.most_common(1)[0][1] > 1:
        found = names.most_common(1)[0][0] if nodes else "none"
        raise InvalidValue(f"{where}: expected one node or more, each with a name of its own, got {found}")
    return nodes


def _node_of(document: Object, where: str) -> Object:
    if not isinstance(document, dict):
        raise InvalidValue(f"{where}: expected a node, got {document!r}")
    if document.get("kind") == "Node":
        metadata, status = document.get("metadata") or {}, document.get("status") or {}
        gpus = (status.get("allocatable") or status.get("capacity") or {}).get(GPU, "0")
        name, labels = metadata.get("name"), metadata.get("labels")
    elif unknown := set(document) - {"name", "gpus", "labels"}:
        raise InvalidValue(f"{where}: expected kind: Node, or name, gpus and labels, got {', '.join(sorted(unknown))}")
    else:
        name, gpus, labels = document.get("name"), document.get("gpus", 0), document.get("labels")
    if not isinstance(name, str) or not re.fullmatch(r"[a-z0-9]([-a-z0-9.]*[a-z0-9])?", name):
        raise InvalidValue(f"{where}: expected a name of lower-case letters, digits, '-' and '.', got {name!r}")
    if not str(gpus).isdigit() or int(gpus) > 999:
        raise InvalidValue(f"{where}: node {name!r}: expected 0 to 999 GPUs, got {gpus!r}")
    node = make_node(name, int(gpus), {str(key): str(value) for key, value in (labels or {}).items()})
    if (document.get("spec") or {}).get("unschedulable"):
        node["spec"]["unschedulable"] = True
    return node


def wanted_gpus(pod: Object) -> int:
    """How many GPUs a pod asks for."""
    containers: Sequence[Object] = pod["spec"].get("containers") or ()
    return sum(num_gpus((container.get("resources") or {}).get("limits")) for container in containers)


def node_of(pod: Object) -> str | None:
    """The node that a pod was bound to; one is bound once it has an address."""
    bound = (pod.get("status") or {}).get("podIP")
    return str(pod["spec"]["nodeName"]) if bound else None


def fault_of(pod: Object) -> str:
    """What keeps a document from being a pod that can be bound at all, or nothing; nothing else reads it unchecked."""
    spec = pod.get("spec")
    if not isinstance(spec, dict) or not isinstance(spec.get("nodeSelector") or {}, dict):
        return f"expected a pod's spec, got {spec!r} (at $.spec)"
    containers = spec.get("containers")
    if not isinstance(containers, list) or not all(isinstance(container, dict) for container in containers):
        return f"expected a list of containers, got {containers!r} (at $.spec.containers)"
    for number, container in enumerate(containers):
        limits = (container.get("resources") or {}).get("limits") or {}
        if not str(limits.get(GPU, 0)).isdigit():
            return f"expected a whole number, got {limits[GPU]!r} (at $.spec.containers[{number}].resources.limits)"
    return ""


def held_slots(pod: Object) -> tuple[int, ...]:
    """The slots of its node that a bound pod was given."""
    text = (pod["metadata"].get("annotations") or {}).get(SLOTS) or ""
    return tuple(int(index) for index in text.split(",") if index)


def bind(pods: Mapping[Key, Object], nodes: Mapping[Key, Object]) -> list[Binding]:
    """Where the pods that wait for a node go, oldest first; what does not fit waits without keeping others back."""
    live = {key: pod for key, pod in pods.items() if phase_of(pod) not in POD_ENDED}
    bound = [(node, pod) for pod in live.values() if (node := node_of(pod)) is not None]
    load = Counter(node for node, _ in bound)
    taken = {(node, index) for node, pod in bound for index in held_slots(pod)}
    waiting = [
        (pod["metadata"]["creationTimestamp"], key)
        for key, pod in live.items()
        if node_of(pod) is None and "deletionTimestamp" not in pod["metadata"]
    ]
    made = []
    for _, key in sorted(waiting):
        binding = _bind_one(key, pods[key], nodes, load, taken)
        made.append(binding)
        if binding.node is not None:
            load[binding.node] += 1
            taken |= {(binding.node, index) for index in binding.slots}
    return made


def _bind_one(
    key: Key, pod: Object, nodes: Mapping[Key, Object], load: Mapping[str, int], taken: set[tuple[str, int]]
) -> Binding:
    if fault := fault_of(pod):
        return Binding(pod=key, node=None, message=fault, is_fault=True)
    wanted, refusals = wanted_gpus(pod), Counter[str]()
    fitting: list[tuple[int, str, tuple[int, ...]]] = []
    for node in nodes.values():
        name = node["metadata"]["name"]
        free = [index for index in range(num_gpus(node["status"].get("allocatable"))) if (name, index) not in taken]
        refusal = _refusal(pod, node, wanted - len(free))
        if refusal:
            refusals[refusal] += 1
        else:
            fitting.append((load.get(name, 0), name, tuple(free[:wanted])))
    if fitting:
        _, name, slots = min(fitting)
        return Binding(pod=key, node=name, slots=slots)
    reasons = ", ".join(sorted(f"{count} {reason}" for reason, count in refusals.items()))
    return Binding(pod=key, node=None, message=f"0/{len(nodes)} nodes are available: {reasons or 'there is none'}.")


def _refusal(pod: Object, node: Object, missing: int) -> str:
    """Why a pod cannot go to a node, in the words of kube-scheduler, or nothing."""
    labels = node["metadata"].get("labels") or {}
    asked = pod["spec"].get("nodeSelector") or {}
    named = pod["spec"].get("nodeName") or node["metadata"]["name"]
    if named != node["metadata"]["name"] or any(labels.get(name) != value for name, value in asked.items()):
        return "node(s) didn't match Pod's node affinity/selector"
    if (node.get("spec") or {}).get("unschedulable"):
        return "node(s) were unschedulable"
    return f"Insufficient {GPU}" if missing > 0 else ""


def devices_of(node: str, slots: Sequence[int], nodes: Mapping[Key, Object], num_devices: int) -> tuple[int, ...]:
    """The real GPUs behind slots; several slots share one where there are fewer GPUs than slots.

    Args:
        node: The node's name.
        slots: Indexes of its slots.
        nodes: All nodes; slots are numbered through in order of their names.
        num_devices: Real GPUs of this machine.
    """
    if not num_devices:
        return ()
    before = sum(
        num_gpus(other["status"].get("allocatable")) for other in nodes.values() if other["metadata"]["name"] < node
    )
    return tuple(dict.fromkeys((before + index) % num_devices for index in slots))

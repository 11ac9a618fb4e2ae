"""Virtual nodes: how they are named, and which pod goes where with which slots."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from scheduler_core.errors import InvalidValue
from voda_flows.local.nodes import Binding, bind, devices_of, fault_of, make_node, nodes_of_shape
from voda_flows.local.up import read_nodes
from voda_flows.objects import Key, Object


def cluster(*nodes: Object) -> dict[Key, Object]:
    """Nodes by key."""
    return {Key("Node", "", node["metadata"]["name"]): node for node in nodes}


def pod(gpus: int = 0, **more: Any) -> Object:
    """A pod that asks for GPUs; ``node`` and ``slots`` bind it, ``on`` selects a node by hostname."""
    found: Object = {"metadata": {"creationTimestamp": more.get("made", "1")}, "spec": {}, "status": {}}
    found["spec"]["containers"] = [{"name": "main", "resources": {"limits": {"nvidia.com/gpu": str(gpus)}}}]
    if "node" in more:
        found["spec"]["nodeName"] = more["node"]
        found["status"]["podIP"] = "127.0.1.1"
        found["metadata"]["annotations"] = {"voda.dev/slots": more.get("slots", "")}
    if "on" in more:
        found["spec"]["nodeSelector"] = {"kubernetes.io/hostname": more["on"]}
    if "phase" in more:
        found["status"]["phase"] = more["phase"]
    if "deleted" in more:
        found["metadata"]["deletionTimestamp"] = "2"
    return found


def bound(pods: dict[str, Object], *nodes: Object) -> dict[str, tuple[str | None, tuple[int, ...]]]:
    """Node and slots of each pod that waited, by name."""
    made = bind({Key("Pod", "default", name): body for name, body in pods.items()}, cluster(*nodes))
    return {binding.pod.name: (binding.node, binding.slots) for binding in made}


N0, N1 = make_node("n0", 2), make_node("n1", 2)


def test_shape_names_nodes() -> None:
    """COUNTxGPUS is n0, n1, ... with that many slots, labelled with their names."""
    assert nodes_of_shape("2x3") == [make_node("n0", 3), make_node("n1", 3)]
    assert N0["metadata"] == {
        "name": "n0",
        "labels": {"kubernetes.io/os": "linux", "kubernetes.io/hostname": "n0"},
    }
    assert N0["status"]["allocatable"] == {"nvidia.com/gpu": "2"}


@pytest.mark.parametrize("text", ["2", "0x2", "2x", "x2", "-1x2", "nodes.yaml", "2x2x2", "2x9999"])
def test_what_is_no_shape_is_refused(text: str) -> None:
    """Anything else, and a file that is not there, is refused with what was expected."""
    with pytest.raises(InvalidValue, match="--nodes: expected COUNTxGPUS such as 2x4, or a YAML file"):
        read_nodes(text)


def test_nodes_come_from_a_file(tmp_path: Path) -> None:
    """A file may hold Node objects and the short form, in documents or as a list."""
    file = tmp_path / "nodes.yaml"
    file.write_text(
        "name: a\ngpus: 4\nlabels: {topology.kubernetes.io/zone: z1}\n---\n"
        "kind: Node\nmetadata: {name: b, labels: {x: y}}\nspec: {unschedulable: true}\n"
        "status: {capacity: {nvidia.com/gpu: '1'}}\n"
    )
    second = make_node("b", 1, {"x": "y"})
    second["spec"] = {"unschedulable": True}
    assert read_nodes(str(file)) == [make_node("a", 4, {"topology.kubernetes.io/zone": "z1"}), second]

    file.write_text("[{name: a, gpus: 1}, {name: b}]")
    assert read_nodes(str(file)) == [make_node("a", 1), make_node("b", 0)]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[{name: a}, {name: a}]", "each with a name of its own, got a"),
        ("[]", "one node or more"),
        ("{name: A}", "document 1: expected a name"),
        ("{name: a, gpus: many}", "node 'a': expected 0 to 999 GPUs, got 'many'"),
        ("{name: a, gpu: 2}", "got gpu"),
        ("[a]", "expected a node, got 'a'"),
        ("{name: [", "it cannot be read"),
    ],
)
def test_faults_of_a_file_are_told(tmp_path: Path, text: str, said: str) -> None:
    """Each fault is told with the file and the document."""
    file = tmp_path / "nodes.yaml"
    file.write_text(text)

    with pytest.raises(InvalidValue, match=f"nodes.yaml.*{said}"):
        read_nodes(str(file))


def test_slots_are_exclusive() -> None:
    """Pods get slots that nobody holds, until there are none; then they wait with the reason."""
    pods = {
        "old": pod(1, node="n0", slots="0"),
        "a": pod(1, on="n0", made="2"),
        "b": pod(1, on="n0", made="3"),
        "c": pod(2, on="n1", made="4"),
    }

    assert bound(pods, N0, N1) == {"a": ("n0", (1,)), "b": (None, ()), "c": ("n1", (0, 1))}


def test_waiting_pod_says_why() -> None:
    """The message counts the nodes by reason, in kube-scheduler's words."""
    cordoned = {**make_node("n2", 8), "spec": {"unschedulable": True}}
    made = bind({Key("Pod", "d", "p"): pod(3)}, cluster(N0, N1, cordoned))

    assert made == [
        Binding(
            pod=Key("Pod", "d", "p"),
            node=None,
            message="0/3 nodes are available: 1 node(s) were unschedulable, 2 Insufficient nvidia.com/gpu.",
        )
    ]


def test_ended_pods_hold_nothing_but_terminating_ones_do() -> None:
    """Slots are free when the pod has ended, not when its deletion was asked for."""
    ended = {"old": pod(2, node="n0", slots="0,1", phase="Failed"), "new": pod(2, on="n0")}
    leaving = {"old": pod(2, node="n0", slots="0,1", phase="Running", deleted=True), "new": pod(2, on="n0")}

    assert bound(ended, N0) == {"new": ("n0", (0, 1))}
    assert bound(leaving, N0) == {"new": (None, ())}


def test_pod_that_names_its_node_goes_there() -> None:
    """A nodeName in the document is where the pod goes, with slots of its own, or it waits."""
    named = pod(1)
    named["spec"]["nodeName"] = "n1"

    assert bound({"a": named}, N0, N1) == {"a": ("n1", (0,))}
    assert bound({"a": named}, N0) == {"a": (None, ())}


@pytest.mark.parametrize("spec", [None, [], {}, {"containers": {}}, {"containers": ["x"]}, {"nodeSelector": []}])
def test_document_that_is_no_pod_keeps_nobody_back(spec: Any) -> None:
    """What makes no sense is told as a fault; the others are bound all the same."""
    bad: Object = {"metadata": {"creationTimestamp": "0"}, "spec": spec}
    made = bind({Key("Pod", "d", "bad"): bad, Key("Pod", "d", "good"): pod(1)}, cluster(N0))

    assert [(binding.pod.name, binding.node, binding.is_fault) for binding in made] == [
        ("bad", None, True),
        ("good", "n0", False),
    ]


def test_gpus_must_be_a_number() -> None:
    """A count of GPUs that is none is a fault that says where."""
    assert fault_of(pod()) == ""
    body = pod()
    body["spec"]["containers"][0]["resources"]["limits"]["nvidia.com/gpu"] = "two"

    assert fault_of(body) == "expected a whole number, got 'two' (at $.spec.containers[0].resources.limits)"


def test_pods_without_gpus_spread() -> None:
    """A pod goes to the node with the fewest pods, then by name; one to be deleted goes nowhere."""
    pods = {
        "old": pod(node="n0"),
        "a": pod(made="2"),
        "b": pod(made="3"),
        "gone": pod(made="1", deleted=True),
    }

    assert bound(pods, N0, N1) == {"a": ("n1", ()), "b": ("n0", ())}


def test_oldest_pod_comes_first() -> None:
    """Of two that want the last slots the older gets them; a smaller one that fits is not kept back."""
    pods = {"a": pod(2, made="3"), "b": pod(2, made="2"), "c": pod(1, made="4"), "wide": pod(5, made="1")}

    assert bound(pods, N0, make_node("n1", 1)) == {
        "wide": (None, ()),
        "b": ("n0", (0, 1)),
        "a": (None, ()),
        "c": ("n1", (0,)),
    }


def test_slots_stand_for_real_devices() -> None:
    """Slots are numbered through over the nodes; fewer devices are shared, none gives none."""
    nodes = cluster(N0, N1)

    assert devices_of("n1", (0, 1), nodes, 8) == (2, 3)
    assert devices_of("n1", (0, 1), nodes, 1) == (0,)
    assert devices_of("n1", (0, 1), nodes, 0) == ()
    assert devices_of("n0", (), nodes, 8) == ()

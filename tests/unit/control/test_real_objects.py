"""Pods and nodes as a real cluster writes them: what of them the scheduler must see, and what must not mislead it."""

from __future__ import annotations

from typing import Any

import pytest

from scheduler_core.model.cluster import Node
from scheduler_core.model.job import WorkerPhase
from voda_flows.control import pods
from voda_flows.control.cluster import OtherGpus, cluster_of
from voda_flows.control.observe import other_gpus
from voda_flows.objects import Object

STARTED = "2026-11-29T10:00:03Z"


def container_status(name: str, *, ready: bool = True, state: Object | None = None) -> Object:
    """A row of containerStatuses."""
    return {
        "name": name,
        "ready": ready,
        "restartCount": 0,
        "image": f"docker.io/library/{name}:latest",
        "started": ready,
        "state": state or {"running": {"startedAt": STARTED}},
        "lastState": {},
    }


def conditions(*, ready: bool) -> list[Object]:
    """The conditions of a pod that runs."""
    after = {"lastProbeTime": None, "lastTransitionTime": STARTED}
    unready = {"reason": "ContainersNotReady", "message": "containers with unready status: [main]"}
    return [
        {"type": "PodReadyToStartContainers", "status": "True", **after},
        {"type": "Initialized", "status": "True", **after},
        {"type": "Ready", "status": str(ready), **after, **({} if ready else unready)},
        {"type": "ContainersReady", "status": str(ready), **after, **({} if ready else unready)},
        {"type": "PodScheduled", "status": "True", **after},
    ]


def worker_pod(status: Object, **metadata: Any) -> Object:
    """A worker's pod as Argo makes it and a kubelet reports it: init, wait and main."""
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": "digits-worker-123456789",
            "namespace": "default",
            "uid": "0f6d1b6e-7b58-4c0e-8f3a-6a5f2b7f5a10",
            "resourceVersion": "4711",
            "creationTimestamp": "2026-11-29T10:00:00Z",
            "labels": {"voda.dev/role": "worker", "workflows.argoproj.io/workflow": "digits"},
            **metadata,
        },
        "spec": {
            "nodeName": "n0",
            "nodeSelector": {"kubernetes.io/hostname": "n0"},
            "initContainers": [{"name": "init", "resources": {}}],
            "containers": [
                {"name": "wait", "resources": {}},
                {
                    "name": "main",
                    "resources": {
                        "limits": {"cpu": "2", "memory": "4Gi", "nvidia.com/gpu": "2"},
                        "requests": {"cpu": "500m", "memory": "4Gi", "nvidia.com/gpu": "2"},
                    },
                },
            ],
        },
        "status": {"hostIP": "10.0.0.4", "startTime": "2026-11-29T10:00:00Z", "qosClass": "Burstable", **status},
    }


STARTING = {"waiting": {"reason": "PodInitializing"}}
WARMING = {
    "phase": "Running",
    "podIP": "10.244.1.7",
    "podIPs": [{"ip": "10.244.1.7"}],
    "conditions": conditions(ready=False),
    "containerStatuses": [container_status("main", ready=False), container_status("wait")],
}
WARM = {
    **WARMING,
    "conditions": conditions(ready=True),
    "containerStatuses": [container_status("main"), container_status("wait")],
}
DONE = {
    "phase": "Succeeded",
    "podIP": "10.244.1.7",
    "containerStatuses": [
        container_status(name, ready=False, state={"terminated": {"exitCode": 0, "finishedAt": at}})
        for name, at in (("main", "2026-11-29T10:05:00Z"), ("wait", "2026-11-29T10:05:02Z"))
    ],
}


@pytest.mark.parametrize(
    ("status", "metadata", "phase", "address"),
    [
        ({"phase": "Pending"}, {}, WorkerPhase.PENDING, ""),
        (
            {"phase": "Pending", "containerStatuses": [container_status("main", ready=False, state=STARTING)]},
            {},
            WorkerPhase.PENDING,
            "",
        ),
        (WARMING, {}, WorkerPhase.RUNNING, "10.244.1.7"),
        (WARM, {}, WorkerPhase.READY, "10.244.1.7"),
        (WARM, {"deletionTimestamp": STARTED, "deletionGracePeriodSeconds": 30}, WorkerPhase.LEAVING, "10.244.1.7"),
        (DONE, {}, WorkerPhase.ENDED, "10.244.1.7"),
        ({"phase": "Failed", "reason": "Evicted", "message": "The node was low on memory"}, {}, WorkerPhase.ENDED, ""),
        ({**DONE, "phase": "Failed"}, {"deletionTimestamp": STARTED}, WorkerPhase.ENDED, "10.244.1.7"),
    ],
)
def test_a_worker_is_as_far_as_its_pod(status: Object, metadata: Object, phase: WorkerPhase, address: str) -> None:
    """An agent is warm when the whole pod is Ready; a pod told to go leaves until its processes have ended."""
    pod = worker_pod(status, **metadata)

    assert (pods.worker_phase(pod), pods.address(pod)) == (phase, address)


def test_a_pods_end_is_that_of_its_last_container() -> None:
    """The executor's own container ends after the worker's."""
    assert pods.done_s(worker_pod(DONE)) == 1795946702.0


def gpu(amount: str, *, where: str = "limits", **more: str) -> Object:
    """A container with so many GPUs."""
    return {"name": "c", "resources": {where: {"nvidia.com/gpu": amount, "cpu": "100m"}}, **more}


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ({"containers": [gpu("2"), gpu("1"), {"name": "x"}]}, 3),
        ({"containers": [gpu("2", where="requests")]}, 2),
        ({"containers": [{"name": "x"}], "initContainers": [gpu("4"), gpu("3")]}, 4),
        ({"containers": [gpu("2"), gpu("3")], "initContainers": [gpu("4")]}, 5),
        ({"containers": [gpu("2")], "initContainers": [gpu("1", restartPolicy="Always")]}, 3),
        ({"containers": [gpu("1")], "initContainers": [gpu("1", restartPolicy="Always"), gpu("3")]}, 4),
        ({"containers": [gpu("1")], "initContainers": [gpu("3"), gpu("1", restartPolicy="Always")]}, 3),
        ({"containers": [{"name": "x", "resources": {"limits": {"cpu": "500m"}}}]}, 0),
        ({}, 0),
    ],
)
def test_gpus_are_counted_as_kube_scheduler_counts_them(spec: Object, expected: int) -> None:
    """Containers at once, init containers one after the other, sidecars from their start to the end."""
    assert pods.gpus({"metadata": {}, "spec": spec}) == expected


def test_gpus_of_pods_that_nobody_planned_are_foreign_until_they_end() -> None:
    """An init container's GPUs count too; pods that wait for a node hold none."""
    holder = {"metadata": {"uid": "a", "namespace": "x"}, "status": {"phase": "Pending"}}
    init = {**holder, "spec": {"nodeName": "n0", "initContainers": [gpu("2")], "containers": [{"name": "x"}]}}
    waiting = {**holder, "spec": {"containers": [gpu("1")]}}
    over = {**init, "status": {"phase": "Succeeded"}}

    assert other_gpus([init, waiting, over], []) == OtherGpus(foreign={"n0": 2})


def node(*, ready: str = "True", allocatable: str = "4", labels: dict[str, str] | None = None, **spec: Any) -> Object:
    """A node as its kubelet registers it."""
    heartbeat = {"lastHeartbeatTime": STARTED, "lastTransitionTime": STARTED}
    pressures = ("MemoryPressure", "DiskPressure", "PIDPressure")
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": "n0",
            "uid": "u",
            "labels": {"kubernetes.io/hostname": "n0"} if labels is None else labels,
        },
        "spec": {"podCIDR": "10.244.1.0/24", "providerID": "x://n0", **spec},
        "status": {
            "capacity": {"cpu": "64", "memory": "527890Ki", "nvidia.com/gpu": "8", "pods": "110"},
            "allocatable": {"cpu": "63500m", "memory": "5e8Ki", "nvidia.com/gpu": allocatable, "pods": "110"},
            "conditions": [
                *({"type": name, "status": "False", "reason": "Fine", **heartbeat} for name in pressures),
                {"type": "Ready", "status": ready, "reason": "KubeletReady", **heartbeat},
            ],
        },
    }


def seen(body: Object) -> list[Node]:
    """What the core is shown of it."""
    return list(cluster_of([body], OtherGpus(), ()).nodes)


def test_a_nodes_gpus_are_what_may_be_allocated() -> None:
    """Not its capacity: a GPU that is broken or kept back is no GPU; the type is the label of NVIDIA's discovery."""
    labels = {"nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3", "kubernetes.io/hostname": "n0"}
    (found,) = seen(node(labels=labels))

    assert (found.gpus, found.gpu_type, found.schedulable) == (4, "NVIDIA-H100-80GB-HBM3", True)
    assert seen(node(allocatable="0")) == []


def named(name: str, hostname: str | None) -> Object:
    """A node whose label need not be its name: so it is where nodes are named by their domain."""
    body = node(labels={} if hostname is None else {"kubernetes.io/hostname": hostname})
    return {**body, "metadata": {**body["metadata"], "name": name}}


def test_a_node_is_called_by_what_selects_it() -> None:
    """Workers go by the label's value; pods that are bound say the node's name: what they hold counts there."""
    others = OtherGpus(foreign={"a.example": 1, "b": 1}, leaving={"a": 2, "a.example": 1})
    found = cluster_of([named("a.example", "a"), named("b", "b")], others, ())

    assert [(one.name, one.schedulable, one.foreign_gpus, one.leaving_gpus) for one in found.nodes] == [
        ("a", True, 1, 3),
        ("b", True, 1, 0),
    ]


def test_a_node_that_no_worker_can_be_sent_to_is_not_planned_with() -> None:
    """One without the label, and those that share one: a selector finds none, or any of them."""
    found = cluster_of([named("a", None), named("b", "x"), named("c", "x"), named("d", "d")], OtherGpus(), ())

    assert [(one.name, one.schedulable) for one in found.nodes] == [
        ("a", False),
        ("b", False),
        ("c", False),
        ("d", True),
    ]


def taint(key: str, effect: str) -> list[Object]:
    """A node's taints."""
    return [{"key": key, "effect": effect, "timeAdded": STARTED}]


@pytest.mark.parametrize(
    ("body", "schedulable"),
    [
        (node(ready="False"), False),
        (node(ready="Unknown"), False),
        (node(unschedulable=True, taints=taint("node.kubernetes.io/unschedulable", "NoSchedule")), False),
        (node(taints=taint("node.kubernetes.io/unreachable", "NoExecute")), False),
        (node(taints=taint("team", "NoSchedule")), False),
        (node(taints=taint("team", "PreferNoSchedule")), True),
        (node(taints=taint("nvidia.com/gpu", "NoSchedule")), True),
    ],
)
def test_pods_go_only_to_nodes_that_take_them(body: Object, schedulable: bool) -> None:
    """Ready, not cordoned, without a taint that workers do not tolerate."""
    (found,) = seen(body)

    assert found.schedulable is schedulable

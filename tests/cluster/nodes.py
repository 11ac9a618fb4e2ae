"""The parts of a node and their settings: containerd and a kubelet, in a machine of their own.

In: what nodes are asked for; out: their documents, parts and files of settings. A node is declared to the API server
before its kubelet starts, with labels and GPUs; the kubelet adds the rest.
"""

from __future__ import annotations

import json
import socket
from dataclasses import dataclass, field
from typing import Any

from tests.cluster import cgroups
from tests.cluster.api import RefusedError
from tests.cluster.certificates import write_kubeconfig
from tests.cluster.control_plane import NODE_GRACE_S, Setting, answers
from tests.cluster.faults import ClusterError
from tests.cluster.images import PAUSE_IMAGE
from tests.cluster.machines import Machine, holder_pid
from tests.cluster.places import CONTROL, MAX_NODES, NODE_FOLDER, Home, Network
from tests.cluster.processes import Part, Processes
from voda_flows.local.up import read_nodes
from voda_flows.objects import GPU, HOSTNAME_LABEL, Object, num_gpus

ZONE_LABEL = "topology.kubernetes.io/zone"
RACK_LABEL = "topology.kubernetes.io/rack"
NODES_IN_RACK = 2
CONTAINERD_SOCKET = "/run/containerd/containerd.sock"
KUBELET_HEALTH_PORT = 10248
LONGEST_NAME = 8
NODES = "/api/v1/nodes"
#: A kubelet that finds no file here takes its node for a new one and sets its GPUs to 0.
DEVICE_STATE = "device-plugins/declared"

# restrict_oom_score_adj: without CAP_SYS_RESOURCE runc ends with "can't get final child's PID from pipe".
CONTAINERD_SETTINGS = f"""\
version = 2
root = "{NODE_FOLDER}/containerd"
state = "/run/containerd"
[grpc]
  address = "{CONTAINERD_SOCKET}"
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "{PAUSE_IMAGE}"
  disable_apparmor = true
  restrict_oom_score_adj = true
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "/usr/lib/cni"
    conf_dir = "{NODE_FOLDER}/cni"
  [plugins."io.containerd.grpc.v1.cri".containerd]
    snapshotter = "overlayfs"
    [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
      runtime_type = "io.containerd.runc.v2"
      [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
        SystemdCgroup = false
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """A node that is asked for.

    Attributes:
        name: Its name and its machine's.
        index: Its place in the network.
        gpus: How many GPUs it says it has.
        labels: Topology among them.
    """

    name: str
    index: int
    gpus: int
    labels: dict[str, str] = field(default_factory=dict)

    def machine(self, network: Network, home: Home) -> Machine:
        """The machine that it runs on."""
        address, pods = network.node(self.index), network.pods(self.index)
        return Machine(name=self.name, address=address, folder=home.machine(self.name), pods=pods)


def parse(text: str) -> tuple[Node, ...]:
    """Nodes from ``3x2`` (three with two GPUs each), ``0`` (none) or a YAML file, as ``voda up --nodes`` reads it.

    Nodes without labels of their own stand in racks of two, all in one zone.

    Raises:
        ClusterError: A name cannot be a machine's here, or there are too many.
        InvalidValue: It is none of these.
    """
    documents: list[Object] = [] if text == "0" else read_nodes(text)
    if len(documents) > MAX_NODES:
        raise ClusterError(f"--nodes: expected at most {MAX_NODES} nodes, got {len(documents)}")
    return tuple(_node(document, index) for index, document in enumerate(documents))


def _node(document: Object, index: int) -> Node:
    name = document["metadata"]["name"]
    if len(name) > LONGEST_NAME or "." in name or name == CONTROL:
        expected = f"expected a name of at most {LONGEST_NAME} letters, digits and '-', other than {CONTROL!r}"
        raise ClusterError(f"--nodes: {expected}, got {name!r}")
    labels = {ZONE_LABEL: "z0", RACK_LABEL: f"r{index // NODES_IN_RACK}", **document["metadata"]["labels"]}
    return Node(name=name, index=index, gpus=num_gpus(document["status"]["allocatable"]), labels=labels)


def declare(setting: Setting, node: Node) -> None:
    """Tell the API server of a node: labels and GPUs. What the kubelet knows better stays as it is."""
    amounts = {GPU: str(node.gpus)}
    status = {"capacity": amounts, "allocatable": amounts}
    labels = {HOSTNAME_LABEL: node.name, **node.labels}
    document = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": node.name, "labels": labels}, "status": status}
    try:
        known = setting.api.get(f"{NODES}/{node.name}")
    except RefusedError as refused:
        if refused.status != 404:
            raise
        setting.api.post(NODES, document)
        return
    if labels.items() - known["metadata"]["labels"].items():
        setting.api.patch(f"{NODES}/{node.name}", {"metadata": {"labels": labels}})
    if any(known["status"].get(kind, {}).get(GPU) != str(node.gpus) for kind in status):
        setting.api.patch(f"{NODES}/{node.name}/status", {"status": status})


def is_ready(node: Object) -> bool:
    """Whether a node's document says that it is ready."""
    conditions = node["status"].get("conditions") or ()
    return any(each["type"] == "Ready" and each["status"] == "True" for each in conditions)


def gpus_of(node: Object) -> int:
    """How many GPUs a node's document offers to pods."""
    return num_gpus(node["status"].get("allocatable"))


def containerd(setting: Setting, node: Node, processes: Processes) -> Part:
    """The container runtime of a node."""

    def listens() -> bool:
        pid = holder_pid(node.name, processes)
        try:
            with socket.socket(socket.AF_UNIX) as connection:
                connection.connect(f"/proc/{pid}/root{CONTAINERD_SOCKET}")
        except OSError:
            return False
        return True

    command = ("containerd", "--config", f"{NODE_FOLDER}/containerd.toml")
    return Part(name=f"{node.name}-containerd", machine=node.name, command=command, is_ready=listens)


def kubelet(setting: Setting, node: Node) -> Part:
    """The kubelet of a node."""
    address = setting.network.node(node.index)
    return Part(
        name=f"{node.name}-kubelet",
        machine=node.name,
        command=(
            setting.programs.path("kubelet"),
            f"--config={NODE_FOLDER}/kubelet.yaml",
            f"--kubeconfig={NODE_FOLDER}/kubeconfig",
            f"--root-dir={NODE_FOLDER}/kubelet",
            f"--cert-dir={NODE_FOLDER}/kubelet/pki",
            f"--hostname-override={node.name}",
            f"--node-ip={address}",
        ),
        is_ready=lambda: answers(address, KUBELET_HEALTH_PORT, "/healthz"),
    )


def cgroup(setting: Setting, node: Node) -> str:
    """The control group in which all pods of a node are."""
    return f"{cgroups.name(setting.network)}/{node.name}"


def write_settings(setting: Setting, node: Node) -> None:
    """Write the files that a node's parts read, and make the control group of its pods."""
    cgroups.make(cgroup(setting, node))
    folder = setting.home.machine(node.name)
    for name in ("cni", "containerd", "kubelet/device-plugins", "pod-logs"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    (folder / "kubelet" / DEVICE_STATE).touch()
    network = _pod_network(node, setting.network)
    (folder / "cni" / "10-pods.conflist").write_text(json.dumps(network, indent=1))
    (folder / "containerd.toml").write_text(CONTAINERD_SETTINGS)
    (folder / "kubelet.yaml").write_text(json.dumps(_kubelet_settings(setting, node), indent=1))
    write_kubeconfig(folder / "kubeconfig", setting.home.certificates, node.name, setting.network.api_url)


def _pod_network(node: Node, network: Network) -> dict[str, Any]:
    addresses = {
        "type": "host-local",
        "ranges": [[{"subnet": network.pods(node.index)}]],
        "routes": [{"dst": "0.0.0.0/0"}],
        "dataDir": f"{NODE_FOLDER}/addresses",
    }
    bridge = {"type": "bridge", "bridge": "pods", "isGateway": True, "ipMasq": False, "hairpinMode": True}
    return {"cniVersion": "0.4.0", "name": "pods", "plugins": [{**bridge, "ipam": addresses}]}


def _kubelet_settings(setting: Setting, node: Node) -> dict[str, Any]:
    address = setting.network.node(node.index)
    authentication = {
        "anonymous": {"enabled": False},
        "webhook": {"enabled": True},
        "x509": {"clientCAFile": setting.file("ca.crt")},
    }
    return {
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "containerRuntimeEndpoint": f"unix://{CONTAINERD_SOCKET}",
        "address": address,
        "healthzBindAddress": address,
        "healthzPort": KUBELET_HEALTH_PORT,
        "tlsCertFile": setting.file(f"{node.name}.crt"),
        "tlsPrivateKeyFile": setting.file(f"{node.name}.key"),
        "authentication": authentication,
        "authorization": {"mode": "Webhook"},
        "cgroupDriver": "cgroupfs",
        "cgroupsPerQOS": True,
        "cgroupRoot": cgroup(setting, node),
        # All nodes are one computer: none of them may take its memory and processors for its own.
        "enforceNodeAllocatable": [],
        "failSwapOn": False,
        "failCgroupV1": False,
        "localStorageCapacityIsolation": False,
        "evictionHard": {"memory.available": "100Mi", "nodefs.available": "1%", "imagefs.available": "1%"},
        "imageGCHighThresholdPercent": 100,
        "nodeLeaseDurationSeconds": NODE_GRACE_S,
        "nodeStatusUpdateFrequency": "10s",
        "syncFrequency": "10s",
        "podLogsDir": f"{NODE_FOLDER}/pod-logs",
        "volumePluginDir": f"{NODE_FOLDER}/kubelet/volume-plugins",
        "resolvConf": "",
    }

"""The cluster as the core sees it, from Node objects and the pods on them.

A node is called by its label ``kubernetes.io/hostname``, which is what sends a worker there; its name may be another
(some clouds name nodes by their domain), and that is what pods that are bound to it say.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from scheduler_core.model.cluster import Cluster, Node
from voda_flows.objects import GPU, HOSTNAME_LABEL, Object, num_gpus

GPU_TYPE = "nvidia.com/gpu.product"


@dataclass(frozen=True, slots=True, kw_only=True)
class OtherGpus:
    """GPUs by node that pods hold which are no worker of a live job's current segment.

    Attributes:
        foreign: Held by pods that may stay.
        leaving: Held by pods on their way out: told to go, or of a segment or Workflow that has ended.
    """

    foreign: Mapping[str, int] = field(default_factory=dict)
    leaving: Mapping[str, int] = field(default_factory=dict)


def cluster_of(nodes: Iterable[Object], others: OtherGpus, levels: tuple[str, ...]) -> Cluster:
    """The nodes with their GPUs and topology.

    Args:
        nodes: Node objects.
        others: GPUs held by pods that are no worker of a live job's segment.
        levels: Labels of the topology, outermost first.

    Returns:
        The cluster; a node without GPUs is left out, and one that its label does not tell from others takes nothing.
    """
    shown = list(nodes)
    uses = Counter(_hostname(node) for node in shown)
    found = [_node(node, others, is_alone=uses[_hostname(node)] == 1) for node in shown]
    return Cluster(nodes=tuple(node for node in found if node.gpus), levels=levels)


def gpus_by_type(cluster: Cluster) -> dict[str, int]:
    """All GPUs by type; those of nodes without a label under the empty name."""
    count: Counter[str] = Counter()
    for node in cluster.nodes:
        count[node.gpu_type] += node.gpus
    return dict(count)


def _hostname(node: Object) -> str:
    return str((node["metadata"].get("labels") or {}).get(HOSTNAME_LABEL) or "")


def _node(node: Object, others: OtherGpus, *, is_alone: bool) -> Node:
    name, hostname, labels = node["metadata"]["name"], _hostname(node), node["metadata"].get("labels") or {}
    can_be_selected = bool(hostname) and is_alone
    names = {name, hostname} if can_be_selected else {name}
    allocatable = (node.get("status") or {}).get("allocatable") or {}
    return Node(
        name=hostname if can_be_selected else name,
        gpus=num_gpus(allocatable),
        gpu_type=labels.get(GPU_TYPE, ""),
        labels=labels,
        schedulable=can_be_selected and _takes_pods(node),
        foreign_gpus=sum(others.foreign.get(one, 0) for one in names),
        leaving_gpus=sum(others.leaving.get(one, 0) for one in names),
    )


def _takes_pods(node: Object) -> bool:
    """Whether new worker pods may go there: ready, not cordoned, no taint but the one that GPU pods tolerate."""
    spec = node.get("spec") or {}
    conditions = (node.get("status") or {}).get("conditions") or ()
    ready = all(row.get("status") == "True" for row in conditions if row.get("type") == "Ready")
    barred = any(
        taint.get("effect") in ("NoSchedule", "NoExecute") and taint.get("key") != GPU
        for taint in spec.get("taints") or ()
    )
    return ready and not barred and not spec.get("unschedulable") and "deletionTimestamp" not in node["metadata"]

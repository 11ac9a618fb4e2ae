"""The cluster as the core sees it, from Node objects and the pods on them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from scheduler_core.model.cluster import Cluster, Node
from voda_flows.objects import GPU, Object, num_gpus

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
        The cluster; a node without GPUs is left out.
    """
    found = [_node(node, others) for node in nodes]
    return Cluster(nodes=tuple(node for node in found if node.gpus), levels=levels)


def gpus_by_type(cluster: Cluster) -> dict[str, int]:
    """All GPUs by type; those of nodes without a label under the empty name."""
    count: Counter[str] = Counter()
    for node in cluster.nodes:
        count[node.gpu_type] += node.gpus
    return dict(count)


def _node(node: Object, others: OtherGpus) -> Node:
    name, labels = node["metadata"]["name"], node["metadata"].get("labels") or {}
    allocatable = (node.get("status") or {}).get("allocatable") or {}
    return Node(
        name=name,
        gpus=num_gpus(allocatable),
        gpu_type=labels.get(GPU_TYPE, ""),
        labels=labels,
        schedulable=_takes_pods(node),
        foreign_gpus=others.foreign.get(name, 0),
        leaving_gpus=others.leaving.get(name, 0),
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

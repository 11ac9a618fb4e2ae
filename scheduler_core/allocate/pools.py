"""Pools of GPUs by type: each is allocated and placed by itself, because a job never mixes GPU types.

In: the jobs and the cluster with the GPUs that may be used. Out: pools, each with its nodes, jobs and GPUs.
A job that names a type belongs to that type's pool (of no node at all where nobody has such GPUs: it waits, and is told
so). A job that names none belongs where its workers already are, else to the pool with most GPUs left after the minima
of the jobs before it, so that it never waits for one type while another lies idle.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from scheduler_core.allocate.order import by_arrival
from scheduler_core.model.cluster import Cluster
from scheduler_core.model.job import JobSpec
from scheduler_core.model.placement import Placement


@dataclass(frozen=True, slots=True, kw_only=True)
class Pool:
    """All GPUs of one type and the jobs they are for.

    Attributes:
        gpu_type: The type, empty for nodes without a label.
        cluster: The nodes of that type.
        gpus_by_node: GPUs that may be used on each of them.
        specs: The jobs, sorted by id.
    """

    gpu_type: str
    cluster: Cluster
    gpus_by_node: Mapping[str, int]
    specs: tuple[JobSpec, ...]

    @property
    def capacity_gpus(self) -> int:
        """GPUs in all."""
        return sum(self.gpus_by_node.values())


def pools(
    specs: Iterable[JobSpec], cluster: Cluster, gpus_by_node: Mapping[str, int], current: Placement
) -> tuple[Pool, ...]:
    """Split nodes and jobs by GPU type.

    Args:
        specs: The jobs.
        cluster: All nodes.
        gpus_by_node: GPUs that may be used on each node.
        current: Where workers stand now.

    Returns:
        Pools sorted by type; every job is in exactly one.
    """
    type_by_node = {node.name: node.gpu_type for node in cluster.nodes}
    left_by_type: dict[str, int] = dict.fromkeys(sorted(type_by_node.values()), 0)
    for name, gpu_type in type_by_node.items():
        left_by_type[gpu_type] += gpus_by_node.get(name, 0)
    members: dict[str, list[JobSpec]] = {gpu_type: [] for gpu_type in left_by_type}
    waiting = []
    for spec in by_arrival(specs):
        home = spec.gpu_type or _home(current.workers(spec.id), type_by_node)
        if home is None:
            waiting.append(spec)
            continue
        members.setdefault(home, []).append(spec)
        left_by_type[home] = left_by_type.get(home, 0) - spec.min_gpus
    for spec in waiting:
        home = min(left_by_type, key=lambda gpu_type: (-left_by_type[gpu_type], gpu_type), default="")
        members.setdefault(home, []).append(spec)
        left_by_type[home] = left_by_type.get(home, 0) - spec.min_gpus
    return tuple(_pool(gpu_type, members[gpu_type], cluster, gpus_by_node) for gpu_type in sorted(members))


def _home(workers_by_node: Mapping[str, int], type_by_node: Mapping[str, str]) -> str | None:
    """The type of the nodes a job stands on, None when it stands nowhere."""
    for node in workers_by_node:
        if node in type_by_node:
            return type_by_node[node]
    return None


def _pool(gpu_type: str, specs: list[JobSpec], cluster: Cluster, gpus_by_node: Mapping[str, int]) -> Pool:
    nodes = tuple(node for node in cluster.nodes if node.gpu_type == gpu_type)
    return Pool(
        gpu_type=gpu_type,
        cluster=Cluster(nodes=nodes, levels=cluster.levels),
        gpus_by_node={node.name: gpus_by_node.get(node.name, 0) for node in nodes},
        specs=tuple(sorted(specs, key=lambda spec: spec.id)),
    )

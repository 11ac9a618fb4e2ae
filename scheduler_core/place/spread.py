"""Which nodes one job's workers go on, given what is free: fewest nodes, near each other, tightest fit.

A piece of the first placer (``pack``); pure arithmetic on free worker slots by node.
"""

from __future__ import annotations

from collections.abc import Mapping

from scheduler_core.model.cluster import Cluster


def spread(
    num_workers: int, slots_by_node: Mapping[str, int], standing: Mapping[str, int], cluster: Cluster
) -> dict[str, int]:
    """Choose nodes for a job's new workers.

    Nodes where the job already stands are filled first. The rest goes on as few further nodes as possible, inside the
    smallest topology domain that has room on so few (around the standing workers, if any), of these the tightest.

    Args:
        num_workers: New workers.
        slots_by_node: Workers of this job that each node has room for.
        standing: Workers it already has, by node.
        cluster: The nodes, for the topology.

    Returns:
        New workers by node; empty when there is no room for all of them.
    """
    room = {node: slots for node, slots in sorted(slots_by_node.items()) if slots > 0}
    if sum(room.values()) < num_workers:
        return {}
    own = {node: slots for node, slots in room.items() if standing.get(node)}
    chosen = _largest_first(min(num_workers, sum(own.values())), own)
    rest = num_workers - sum(chosen.values())
    if rest:
        further = {node: slots for node, slots in room.items() if node not in own}
        chosen |= _largest_first(rest, _nearest_domain(rest, further, standing, cluster))
    return chosen


def _largest_first(num_workers: int, room: Mapping[str, int]) -> dict[str, int]:
    """Fill the roomiest nodes, and put what is left at the end where it fits tightest."""
    chosen: dict[str, int] = {}
    left = dict(room)
    while num_workers:
        fitting = [node for node, slots in left.items() if slots >= num_workers]
        if fitting:
            chosen[min(fitting, key=lambda node: (left[node], node))] = num_workers
            return chosen
        roomiest = min(left, key=lambda node: (-left[node], node))
        chosen[roomiest] = left.pop(roomiest)
        num_workers -= chosen[roomiest]
    return chosen


def _nearest_domain(
    num_workers: int, room: Mapping[str, int], standing: Mapping[str, int], cluster: Cluster
) -> Mapping[str, int]:
    """Room inside the smallest domain that holds the workers on the fewest nodes."""
    fewest = len(_largest_first(num_workers, room))
    path_by_node = {node.name: cluster.path(node) for node in cluster.nodes}
    anchor = min(standing, key=lambda node: (-standing[node], node), default=None)
    for depth in range(len(cluster.levels) + 1, 0, -1):
        domains: dict[tuple[str, ...], dict[str, int]] = {}
        for node, slots in room.items():
            domains.setdefault(path_by_node[node][:depth], {})[node] = slots
        if anchor in path_by_node:
            around = path_by_node[anchor][:depth]
            domains = {around: domains[around]} if around in domains else {}
        fitting = [
            (sum(domain.values()), path)
            for path, domain in domains.items()
            if sum(domain.values()) >= num_workers and len(_largest_first(num_workers, domain)) <= fewest
        ]
        if fitting:
            return domains[min(fitting)[1]]
    return room

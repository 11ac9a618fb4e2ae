"""What it costs a job to communicate over the links of the topology tree.

In: bytes, how a job's GPUs hang in the tree, the links of its levels. Out: seconds of one all-reduce, and by how much a
training step is longer for it. The placer makes these seconds small; estimates of speed use the same ones.

Heights count from the inside: height 0 is inside a node (its members are GPUs), height 1 inside the innermost domain
(its members are nodes), and so on; the last height is the cluster itself.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass

from scheduler_core.errors import InvalidValue


@dataclass(frozen=True, slots=True, kw_only=True)
class Link:
    """How fast one level of the topology tree is for one job.

    Attributes:
        bytes_per_s: Bandwidth of each participant's link on that level, bytes/s.
        latency_s: Time of one message whatever its size, seconds.
    """

    bytes_per_s: float
    latency_s: float = 0.0

    def __post_init__(self) -> None:
        """Check the ranges once, here at the edge."""
        if not (0 < self.bytes_per_s < float("inf") and 0 <= self.latency_s < float("inf")):
            raise InvalidValue(
                f"link: expected bytes/s > 0 and a latency >= 0 s, got {self.bytes_per_s} and {self.latency_s}"
            )


INSIDE_NODE = "node"
"""Key of the links between the GPUs of a node."""
WHOLE_CLUSTER = "cluster"
"""Key of the links between the outermost domains; between all nodes where the tree has no levels."""

#: GPUs of a node on NVLink 2.0: 150 GB/s each way. On PCIe 3.0 x16 it is about 12 GB/s: a setting.
NODE_LINK = Link(bytes_per_s=150e9, latency_s=10e-6)
#: Nodes that share a switch: 25 Gbit/s Ethernet.
SWITCH_LINK = Link(bytes_per_s=3.125e9, latency_s=30e-6)
#: Each level further out has half the bandwidth for each participant, a usual oversubscription, and as much latency
#: again.
OVERSUBSCRIPTION = 2.0

#: Where a job's own are not known: a step without communication, and the gradient of ResNet-50 (25.6 million floats).
STEP_S = 0.25
GRADIENT_BYTES = 102e6


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """How a job's GPUs hang in the tree, as far as its all-reduce feels it.

    Attributes:
        ranks: GPUs in all, >= 1.
        fanouts: For each height from 0, the most members with GPUs of this job that one domain of that height has: GPUs
            on one node, nodes in one rack, ..., outermost domains in the cluster; each >= 1.
    """

    ranks: int
    fanouts: tuple[int, ...]


def shape_of(gpus_by_path: Mapping[tuple[Hashable, ...], int]) -> Shape:
    """The shape of a placement.

    Args:
        gpus_by_path: GPUs (> 0) by node, each named by its path in the tree (``Cluster.path``), all equally long.
    """
    fanouts = [max(gpus_by_path.values())]
    domains = set(gpus_by_path)
    for _ in next(iter(gpus_by_path)):
        members = Counter(domain[:-1] for domain in domains)
        fanouts.append(max(members.values()))
        domains = set(members)
    return Shape(ranks=sum(gpus_by_path.values()), fanouts=tuple(fanouts))


def links_of(levels: Sequence[str], links: Mapping[str, Link]) -> tuple[Link, ...]:
    """The link of each height of a tree.

    Args:
        levels: Label keys from the outermost level inwards (``Cluster.levels``).
        links: Settings by key: ``node`` for inside a node, a level's label key for inside a domain of that level,
            ``cluster`` for between the outermost domains.

    Returns:
        ``len(levels) + 2`` links, by height; those without a setting have the defaults of this module.
    """
    found = [links.get(INSIDE_NODE, NODE_LINK)]
    for height, key in enumerate((*reversed(levels), WHOLE_CLUSTER)):
        default = Link(
            bytes_per_s=SWITCH_LINK.bytes_per_s / OVERSUBSCRIPTION**height,
            latency_s=SWITCH_LINK.latency_s * (height + 1),
        )
        found.append(links.get(key, default))
    return tuple(found)


def ring_s(num_bytes: float, shape: Shape, links: Sequence[Link]) -> float:
    """One ring through all GPUs: ``2 (n - 1) / n * bytes / slowest bandwidth + 2 (n - 1) * longest latency``.

    Source: Patarasuk and Yuan, Bandwidth optimal all-reduce algorithms for clusters of workstations (2009), section 3.
    The ring visits domain after domain, so each link carries it once each way, and the slowest that it crosses
    holds up every one of its 2 (n - 1) steps.

    Args:
        num_bytes: Bytes that each rank reduces with the others.
        shape: Where the ranks are.
        links: By height, as many as the shape has.

    Returns:
        Seconds; 0 for a single rank.
    """
    crossed = [link for fanout, link in zip(shape.fanouts, links, strict=True) if fanout > 1]
    if not crossed:
        return 0.0
    slowest = min(link.bytes_per_s for link in crossed)
    latency_s = max(link.latency_s for link in crossed)
    return _stage_s(num_bytes, shape.ranks, Link(bytes_per_s=slowest, latency_s=latency_s))


def hierarchical_s(num_bytes: float, shape: Shape, links: Sequence[Link]) -> float:
    """A ring inside each node, then one between the nodes of each domain, and so on outwards, and back.

    ``sum over heights of 2 (f - 1) / f * bytes / bandwidth + 2 (f - 1) * latency`` with f members in the domain that
    has most. Source: Jia et al., Highly scalable deep learning training system with mixed-precision (2018), section
    4.3; there with two heights, here with as many as the tree has.

    Args:
        num_bytes: Bytes that each rank reduces with the others.
        shape: Where the ranks are.
        links: By height, as many as the shape has.

    Returns:
        Seconds; 0 for a single rank.
    """
    return sum(_stage_s(num_bytes, fanout, link) for fanout, link in zip(shape.fanouts, links, strict=True))


def all_reduce_s(num_bytes: float, shape: Shape, links: Sequence[Link]) -> float:
    """The cheaper of ring and hierarchical all-reduce, seconds; 0 for a single rank."""
    return min(ring_s(num_bytes, shape, links), hierarchical_s(num_bytes, shape, links))


def slow_down(step_s: float, communication_s: float) -> float:
    """How many times as long a step is with its communication: ``(compute + communication) / compute``, >= 1.

    Communication that hides behind the computation is not known here; what is fitted from steps as they were measured
    (bytes or bandwidth) has that in it.

    Args:
        step_s: Seconds of the step without communication, > 0.
        communication_s: Seconds of its all-reduce, >= 0.
    """
    return (step_s + communication_s) / step_s


def _stage_s(num_bytes: float, members: int, link: Link) -> float:
    return 2 * (members - 1) * (num_bytes / (members * link.bytes_per_s) + link.latency_s)

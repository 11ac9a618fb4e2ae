"""Large clusters for the figures of the policies and the placer, and the packing that they are held against."""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import numpy as np

from scheduler_core.model.allocation import Allocation
from scheduler_core.model.cluster import Cluster, Node
from scheduler_core.model.job import JobSpec
from scheduler_core.model.placement import Placement
from scheduler_core.model.ports import PlacerInput

GPUS_OF_A_NODE = 8
NODES_OF_A_RACK = 16
RACKS_OF_A_ZONE = 8
#: Seconds left at one GPU: 10 to the power of these, uniform.
REMAINING_EXPONENTS = (2.5, 5.0)


def racked(num_nodes: int) -> Cluster:
    """Nodes with eight GPUs, sixteen in a rack, eight racks in a zone."""
    return Cluster(
        nodes=tuple(
            Node(
                name=f"n{index:04d}",
                gpus=GPUS_OF_A_NODE,
                labels={
                    "zone": f"z{index // (NODES_OF_A_RACK * RACKS_OF_A_ZONE):02d}",
                    "rack": f"r{index // NODES_OF_A_RACK:03d}",
                },
            )
            for index in range(num_nodes)
        ),
        levels=("zone", "rack"),
    )


@dataclass(slots=True, kw_only=True)
class Crowd:
    """Elastic jobs that fill a cluster to the last GPU and change their sizes.

    Attributes:
        num_jobs: How many.
        cluster: Where.
        rng: Draws everything.
        gpus: Of each job now.
        remaining_s: Of each job, seconds left at one GPU.
    """

    num_jobs: int
    cluster: Cluster
    rng: np.random.Generator
    gpus: list[int] = field(default_factory=list)
    remaining_s: list[float] = field(default_factory=list)

    def __post_init__(self) -> None:
        """Draw the first sizes."""
        self.gpus = self._drawn(self.num_jobs)
        self.remaining_s = (10 ** self.rng.uniform(*REMAINING_EXPONENTS, self.num_jobs)).tolist()
        self._fitted(range(self.num_jobs))

    def change(self, share: float = 0.2) -> None:
        """That share of the jobs gets other sizes."""
        changed = sorted(self.rng.choice(self.num_jobs, round(share * self.num_jobs), replace=False).tolist())
        for job, gpus in zip(changed, self._drawn(len(changed)), strict=True):
            self.gpus[job] = gpus
        self._fitted(changed)

    def asked(self, current: Placement) -> PlacerInput:
        """What the placer is asked."""
        ids = [f"j{job:05d}" for job in range(self.num_jobs)]
        return PlacerInput(
            allocation=Allocation(gpus_by_job=dict(zip(ids, self.gpus, strict=True))),
            specs=tuple(
                JobSpec(
                    id=job_id,
                    namespace="d",
                    workflow=job_id,
                    name="t",
                    submitted_s=float(index),
                    min_gpus=1,
                    max_gpus=64,
                )
                for index, job_id in enumerate(ids)
            ),
            cluster=self.cluster,
            capacity_gpus={node.name: node.gpus for node in self.cluster.nodes},
            current=current,
            remaining_s_by_job=dict(zip(ids, self.remaining_s, strict=True)),
        )

    def _drawn(self, number: int) -> list[int]:
        """Sizes: nine of ten jobs fit on a node, any size; the others have up to four nodes."""
        small = self.rng.integers(1, GPUS_OF_A_NODE + 1, number)
        large = self.rng.integers(GPUS_OF_A_NODE + 1, 4 * GPUS_OF_A_NODE + 1, number)
        return [int(gpus) for gpus in np.where(self.rng.random(number) < 0.9, small, large)]

    def _fitted(self, changed: Iterable[int]) -> None:
        """Change some jobs by single GPUs until the cluster is full."""
        chosen = list(changed)
        excess = sum(self.gpus) - GPUS_OF_A_NODE * len(self.cluster.nodes)
        while excess:
            job = chosen[int(self.rng.integers(len(chosen)))]
            if excess < 0 or self.gpus[job] > 1:
                self.gpus[job] -= 1 if excess > 0 else -1
                excess += -1 if excess > 0 else 1


def best_fit_decreasing(gpus_by_job: Mapping[str, int], gpus_by_node: Mapping[str, int]) -> int:
    """Spans (nodes of each job, summed) of a corrected best-fit-decreasing from scratch.

    Larger jobs first, each on the node with the fewest free GPUs that are enough; where there is none, on the node
    with most, and what is left of it likewise.
    """
    most = max(gpus_by_node.values())
    heaps: list[list[str]] = [[] for _ in range(most + 1)]
    for node, gpus in sorted(gpus_by_node.items()):
        heapq.heappush(heaps[gpus], node)
    spans = 0
    for _, gpus in sorted(gpus_by_job.items(), key=lambda one: (-one[1], one[0])):
        left = gpus
        while left:
            fitting = [free for free in range(left, most + 1) if heaps[free]]
            free = fitting[0] if fitting else max(free for free in range(1, most + 1) if heaps[free])
            node, taken = heapq.heappop(heaps[free]), min(left, free)
            heapq.heappush(heaps[free - taken], node)
            left -= taken
            spans += 1
    return spans

"""What is simulated: jobs with their work, nodes, when nodes are lost and come back, and what changes cost."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

from scheduler_core.errors import InvalidValue
from scheduler_core.model.cluster import Cluster
from scheduler_core.model.job import JobSpec
from scheduler_core.model.resizes import ResizeCosts
from scheduler_core.simulate.physics import Physics


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulatedJob:
    """A job to come.

    Attributes:
        spec: What its user asks for; it arrives at ``submitted_s``.
        samples: Samples to train in all; 0 ends with its first step.
    """

    spec: JobSpec
    samples: float

    def __post_init__(self) -> None:
        """Check the ranges once, here at the edge."""
        if not (0 <= self.samples < float("inf") and 0 <= self.spec.submitted_s < float("inf")):
            raise InvalidValue(
                f"job {self.spec.id!r}: expected finite samples and time of submission >= 0, "
                f"got {self.samples} and {self.spec.submitted_s} s"
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeLoss:
    """A node that is lost with all that runs on it, and comes back.

    Attributes:
        node: Its name.
        lost_s: When it is lost.
        back_s: When it is back, None if never.
    """

    node: str
    lost_s: float
    back_s: float | None = None

    def __post_init__(self) -> None:
        """Check the order once, here at the edge."""
        if self.lost_s < 0 or (self.back_s is not None and self.back_s < self.lost_s):
            raise InvalidValue(f"node {self.node!r}: expected 0 <= lost_s <= back_s, got {self.lost_s}, {self.back_s}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """Everything that a run depends on besides the scheduler's settings; the order of jobs and losses does not matter.

    Attributes:
        cluster: All nodes.
        jobs: All jobs; brought into order of id.
        physics: How fast they go.
        costs: Seconds in which a job stands still when it is changed.
        losses: Losses of nodes; brought into order of name and time, those of one node must not overlap.
    """

    cluster: Cluster
    jobs: tuple[SimulatedJob, ...]
    physics: Physics
    costs: ResizeCosts = ResizeCosts()
    losses: tuple[NodeLoss, ...] = ()

    def __post_init__(self) -> None:
        """Bring jobs and losses into their one order."""
        jobs = tuple(sorted(self.jobs, key=lambda job: job.spec.id))
        if len({job.spec.id for job in jobs}) != len(jobs):
            raise InvalidValue(f"scenario: expected unique job ids, got {[job.spec.id for job in jobs]}")
        losses = tuple(sorted(self.losses, key=lambda loss: (loss.node, loss.lost_s)))
        names = {node.name for node in self.cluster.nodes}
        for loss in losses:
            if loss.node not in names:
                raise InvalidValue(f"loss of node {loss.node!r}: expected one of {sorted(names)}")
        for before, after in pairwise(losses):
            if before.node == after.node and (before.back_s is None or before.back_s >= after.lost_s):
                raise InvalidValue(f"node {after.node!r}: expected it back before it is lost again at {after.lost_s} s")
        object.__setattr__(self, "jobs", jobs)
        object.__setattr__(self, "losses", losses)

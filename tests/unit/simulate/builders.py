"""Small scenarios for the tests of the simulator."""

from __future__ import annotations

from scheduler_core.model.cluster import Cluster, Node
from scheduler_core.model.job import JobSpec
from scheduler_core.model.params import Params
from scheduler_core.model.resizes import ResizeCost, ResizeCosts
from scheduler_core.simulate.physics import Curves
from scheduler_core.simulate.scenario import NodeLoss, Scenario, SimulatedJob

FREE = ResizeCosts(
    start=ResizeCost(base_s=0.0),
    grow=ResizeCost(base_s=0.0),
    shrink=ResizeCost(base_s=0.0),
    move=ResizeCost(base_s=0.0),
    restart=ResizeCost(base_s=0.0),
)
COSTLY = ResizeCosts(
    start=ResizeCost(base_s=4.0),
    grow=ResizeCost(base_s=2.0),
    shrink=ResizeCost(base_s=1.0),
    restart=ResizeCost(base_s=10.0),
)
LINEAR = Curves(points_by_category={"": {1: 1.0, 64: 64.0}})
FIFO = Params(policy="fifo", decide_interval_s=0.0)
ELASTIC = Params(policy="elastic_fifo", decide_interval_s=0.0)


def job(
    name: str, at_s: float, samples: float, min_gpus: int = 1, max_gpus: int = 0, *, category: str = ""
) -> SimulatedJob:
    """A job; rigid unless a maximum is given."""
    spec = JobSpec(
        id=name,
        namespace="n",
        workflow=name,
        name=name,
        submitted_s=at_s,
        category=category,
        min_gpus=min_gpus,
        max_gpus=max_gpus or min_gpus,
    )
    return SimulatedJob(spec=spec, samples=samples)


def scenario(
    *jobs: SimulatedJob, gpus: tuple[int, ...] = (4,), costs: ResizeCosts = FREE, losses: tuple[NodeLoss, ...] = ()
) -> Scenario:
    """These jobs on nodes ``a``, ``b``, ... at 1 sample/s for each GPU."""
    nodes = tuple(Node(name=chr(ord("a") + place), gpus=count) for place, count in enumerate(gpus))
    return Scenario(cluster=Cluster(nodes=nodes), jobs=jobs, physics=LINEAR, costs=costs, losses=losses)

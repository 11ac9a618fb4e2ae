"""What the core asks of the world around it; each world (simulator, this machine, Kubernetes) implements these."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

from scheduler_core.model.allocation import Allocation
from scheduler_core.model.cluster import Cluster
from scheduler_core.model.decision import Decision
from scheduler_core.model.job import JobSpec
from scheduler_core.model.observation import Observation
from scheduler_core.model.params import Params
from scheduler_core.model.placement import Placement
from scheduler_core.model.plan import Action
from scheduler_core.model.resizes import ResizeCosts
from scheduler_core.model.service import Service
from scheduler_core.model.target import Target


class Observer(Protocol):
    """Looks at the world."""

    def observe(self) -> Observation:
        """The world now, never older than our own last write."""
        ...


class Enforcer(Protocol):
    """Changes the world."""

    def enforce(self, action: Action) -> None:
        """Apply one action.

        Raises:
            Conflict: The world moved since the action was decided; the next round looks again.
        """
        ...


class TargetStore(Protocol):
    """Keeps the one target by compare-and-swap."""

    def load(self) -> Target:
        """The stored target; an empty one before the first decision."""
        ...

    def save(self, target: Target) -> None:
        """Replace the target that ``load`` last gave.

        Raises:
            Conflict: Somebody else replaced it meanwhile.
        """
        ...


class Decider(Protocol):
    """Makes single decisions; where that runs and how long it may take is the world's business."""

    def attempt(self, observation: Observation, target: Target, params: Params) -> Decision:
        """Steps two to four, once.

        Raises:
            Exception: Whatever a policy or placer raised.
            StageFailed: It was ended, or did not answer in time.
        """
        ...

    def has_time(self) -> bool:
        """Whether this round can bear another attempt."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyInput:
    """What a policy sees: only values, no world.

    Attributes:
        specs: Jobs to be served, sorted by id.
        capacity_gpus: GPUs to give in all.
        current: What each job has now.
        speed_by_job: Samples/s at 0, 1, 2, ... GPUs, where known.
        attained_gpu_s_by_job: GPU seconds held so far.
        now_s: The moment of the observation.
        remaining_s_by_job: Seconds still needed at one GPU, where known.
        service_by_job: What each job has had.
        started_s_by_job: When each job first started, seconds since the epoch; not named while it never did.
        costs: What a change of a running job costs.
        params: The settings.
    """

    specs: tuple[JobSpec, ...]
    capacity_gpus: int
    current: Allocation
    speed_by_job: Mapping[str, tuple[float, ...]]
    attained_gpu_s_by_job: Mapping[str, float]
    now_s: float
    remaining_s_by_job: Mapping[str, float] = field(default_factory=dict)
    service_by_job: Mapping[str, Service] = field(default_factory=dict)
    started_s_by_job: Mapping[str, float] = field(default_factory=dict)
    costs: ResizeCosts = ResizeCosts()
    params: Params = Params()


class Policy(Protocol):
    """Allocates GPUs to jobs: a pure function."""

    def __call__(self, asked: PolicyInput) -> Allocation:
        """GPUs for each job."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class PlacerInput:
    """What a placer sees.

    Attributes:
        allocation: What is to be placed.
        specs: The jobs named in it, sorted by id.
        cluster: The nodes.
        capacity_gpus: GPUs by node that may be used in all, the jobs' current ones included.
        current: Where their workers stand now.
        avoid_by_job: Nodes on which a job's workers failed a moment ago: to be used for it only when no others do.
        remaining_s_by_job: Seconds still needed at one GPU, where known.
        step_s_by_job: Seconds of one optimizer step without communication, where known.
        gradient_bytes_by_job: Bytes reduced by each rank in one step, where known.
        speed_by_job: Samples/s at 0, 1, 2, ... GPUs, where known.
        costs: What a change of a running job costs.
        params: The settings.
    """

    allocation: Allocation
    specs: tuple[JobSpec, ...]
    cluster: Cluster
    capacity_gpus: Mapping[str, int]
    current: Placement
    avoid_by_job: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    remaining_s_by_job: Mapping[str, float] = field(default_factory=dict)
    step_s_by_job: Mapping[str, float] = field(default_factory=dict)
    gradient_bytes_by_job: Mapping[str, float] = field(default_factory=dict)
    speed_by_job: Mapping[str, tuple[float, ...]] = field(default_factory=dict)
    costs: ResizeCosts = ResizeCosts()
    params: Params = Params()


class Placer(Protocol):
    """Finds nodes for allocated workers: a pure function."""

    def __call__(self, asked: PlacerInput) -> Placement:
        """Nodes for each job."""
        ...

"""A training job as the scheduler sees it: what its user asked for, and where its current segment stands.

The states of a job and the moves between them (one *segment* is one life between two checkpoints)::

    QUEUED --Grant--> STARTING --Publish--> RUNNING --Stop--> STOPPING --> BETWEEN --> QUEUED (next segment) or ENDED
                         |                     |
                         +-- below min --------+-- driver ended or lost --> BETWEEN
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum

from scheduler_core.errors import InvalidValue
from scheduler_core.model.service import Service
from scheduler_core.model.units import Resources


class Role(StrEnum):
    """What a granted pod does in its job."""

    WORKER = "worker"


class JobPhase(StrEnum):
    """Where a job's current segment stands; the module docstring draws the moves."""

    QUEUED = "Queued"
    STARTING = "Starting"
    RUNNING = "Running"
    STOPPING = "Stopping"
    BETWEEN = "Between"
    ENDED = "Ended"


class WorkerPhase(StrEnum):
    """How far a granted worker has come.

    GRANTED: in a gate's answer, its pod not seen yet. PENDING: pod there, not running. RUNNING: agent warming up.
    READY: agent warm, may enter the allocation document. LEAVING: terminating, or draining or gone by its driver's
    word (so a dropped worker is never taken for a fresh one). ENDED: holds no GPU any more.
    """

    GRANTED = "Granted"
    PENDING = "Pending"
    RUNNING = "Running"
    READY = "Ready"
    LEAVING = "Leaving"
    ENDED = "Ended"


@dataclass(frozen=True, slots=True, kw_only=True)
class Worker:
    """One granted pod of a job's current segment.

    Attributes:
        id: Name within the segment, ``w0``, ``w1``, ...; never used twice in a segment.
        role: What the pod does.
        node: Name of the node it was granted on.
        gpus: GPUs it holds, one rank each.
        phase: How far it has come.
        address: IP address of its pod, empty until known.
        since_s: When it was granted, seconds since the epoch; 0 when only the segment's grant is known.
        done_s: When it ended well (its driver said goodbye, or it was drained), 0 where it did not.
        left_s: Since when its driver has done with it (gone or given up) though its pod is there and was not told to
            go; 0 where that is not so.
        unplaced_s: Since when its pod is there, no machine has taken it and its node takes none; 0 where that is not
            so.
    """

    id: str
    node: str
    gpus: int
    phase: WorkerPhase
    role: Role = Role.WORKER
    address: str = ""
    since_s: float = 0.0
    done_s: float = 0.0
    left_s: float = 0.0
    unplaced_s: float = 0.0

    @property
    def number(self) -> int:
        """The number in the id; the order in which workers were granted."""
        return int(self.id.removeprefix("w"))

    @property
    def holds_gpus(self) -> bool:
        """Whether its GPUs are in use (or promised)."""
        return self.phase is not WorkerPhase.ENDED


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerFailure:
    """A worker that ended before its driver did, and not well; of any segment.

    Attributes:
        worker: Its id.
        node: The node it was on.
        started_s: When its pod was made, seconds since the epoch.
        ended_s: When it ended.
        why: What is written down of it, empty where nothing is.
    """

    worker: str
    node: str
    started_s: float
    ended_s: float
    why: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class JobSpec:
    """What the user asked for; fixed for the job's life.

    Attributes:
        id: ``<workflow uid>/<job name>``, the job's identity and the last tie-break of every order.
        namespace: Namespace of its Workflow.
        workflow: Name of its Workflow.
        name: Name within the Workflow.
        queue: Queue it was submitted to.
        priority: Value of its priority class; higher goes first.
        submitted_s: When it reached the queue, seconds since the epoch.
        min_gpus: Fewest GPUs it can train on.
        max_gpus: Most GPUs it can use.
        gpus_per_worker: GPUs of each worker; the allocation is a multiple of it.
        gpu_type: GPU type it must run on, empty for any.
        category: Jobs of one category learn speed tables from each other.
        epochs: Epochs to train.
        num_gpus: GPUs that it asks for under the policies of Tiresias, 0 where its user named none; else its minimum.
        gpu_sizes: Sizes that it may have, GPUs in ascending order; empty for every multiple of ``gpus_per_worker``.

    Raises:
        InvalidValue: A bound is out of order or not a multiple of ``gpus_per_worker``.
    """

    id: str
    namespace: str
    workflow: str
    name: str
    submitted_s: float
    min_gpus: int
    max_gpus: int
    gpus_per_worker: int = 1
    queue: str = "default"
    priority: int = 0
    gpu_type: str = ""
    category: str = ""
    epochs: int = 1
    num_gpus: int = 0
    gpu_sizes: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        """Check the bounds once, here at the edge."""
        step = self.gpus_per_worker
        if step < 1:
            raise InvalidValue(f"job {self.id!r}: expected gpus-per-worker >= 1, got {step}")
        if not 1 <= self.min_gpus <= self.max_gpus:
            raise InvalidValue(
                f"job {self.id!r}: expected 1 <= min-gpus <= max-gpus, got {self.min_gpus} and {self.max_gpus}"
            )
        if self.min_gpus % step or self.max_gpus % step:
            raise InvalidValue(
                f"job {self.id!r}: expected min-gpus and max-gpus in multiples of gpus-per-worker {step}, "
                f"got {self.min_gpus} and {self.max_gpus}"
            )

    @property
    def per_worker(self) -> Resources:
        """What each worker asks of a node."""
        return Resources(gpus=self.gpus_per_worker)

    @property
    def is_elastic(self) -> bool:
        """Whether it can run at more than one size."""
        return self.min_gpus < self.max_gpus


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """What the driver last reported of the training itself.

    Attributes:
        epoch: Epochs completed.
        step: Optimizer steps completed.
        world_size: Ranks training now.
        samples_per_s: Speed of the last reported interval, 0 when unknown.
    """

    epoch: int = 0
    step: int = 0
    world_size: int = 0
    samples_per_s: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """A live job: its request and the state of its current segment.

    Attributes:
        spec: What the user asked for.
        phase: Where the segment stands.
        segment: Number of the segment, from 0.
        workers: Every worker granted in this segment, ended ones too, by number; while queued, workers of the segment
            before whose pods still hold GPUs (LEAVING).
        published: Ids of the workers in the newest allocation document, empty before the first.
        generation: Generation of that document, 0 before the first.
        acknowledged: Generation the driver says it trains by, 0 before the first.
        driver_ready: Whether a driver pod that has no document yet, or acknowledges one, is there to write to.
        stop_written: Whether the document says ``stop``.
        grow_gate_open: Whether a grow gate waits for an answer.
        started_s: First grant of any segment, None while it never ran.
        granted_s: Grant of this segment, None while queued.
        driver_ended_s: When this segment's driver ended, None before.
        driver_waits: Whether its driver was asked for and its pod does not run yet.
        checkpoint_s: Since when a try of its checkpoint step waits to run, 0 where none does.
        stalled: Its segment ended long ago and no new gate has come: nothing is kept for it meanwhile.
        attained_gpu_s: GPU seconds held so far, all segments.
        service: The same by start, with how long it ran and waited.
        retries: Segments in a row that ended without a new checkpoint.
        failures: Workers that failed lately, in order of their end.
        pinned: No preemption or growth by choice (budget of segments or status size used up).
        held: Its Workflow was suspended or told to stop: it takes no GPUs, and keeps those with which it runs.
        progress: What the driver last reported.
        message: What the queue says of it now (shown on its gate), to be rewritten only on real change.
    """

    spec: JobSpec
    phase: JobPhase
    segment: int = 0
    workers: tuple[Worker, ...] = ()
    published: tuple[str, ...] = ()
    generation: int = 0
    acknowledged: int = 0
    driver_ready: bool = False
    stop_written: bool = False
    grow_gate_open: bool = False
    started_s: float | None = None
    granted_s: float | None = None
    driver_ended_s: float | None = None
    driver_waits: bool = False
    checkpoint_s: float = 0.0
    stalled: bool = False
    attained_gpu_s: float = 0.0
    service: Service = Service()
    retries: int = 0
    failures: tuple[WorkerFailure, ...] = ()
    pinned: bool = False
    held: bool = False
    progress: Progress = Progress()
    message: str = ""

    @property
    def id(self) -> str:
        """The job's identity."""
        return self.spec.id

    @property
    def holding(self) -> tuple[Worker, ...]:
        """Workers that hold GPUs now."""
        return tuple([worker for worker in self.workers if worker.phase is not WorkerPhase.ENDED])

    @property
    def held_gpus(self) -> int:
        """GPUs held or promised now."""
        return sum(worker.gpus for worker in self.holding)

    @property
    def is_active(self) -> bool:
        """Whether a segment was granted and has not stopped."""
        return self.phase in (JobPhase.STARTING, JobPhase.RUNNING)

    def replace(self, **changes: object) -> Job:
        """A copy with some fields changed."""
        return replace(self, **changes)  # type: ignore[arg-type]  # dataclasses.replace is untyped by design

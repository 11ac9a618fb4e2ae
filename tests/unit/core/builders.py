"""Builders of core values for tests: everything has a default, so that a test names only what it is about."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from scheduler_core.model.allocation import Allocation
from scheduler_core.model.cluster import Cluster, Node
from scheduler_core.model.job import Job, JobPhase, JobSpec, Worker, WorkerPhase
from scheduler_core.model.observation import Observation
from scheduler_core.model.placement import Placement
from scheduler_core.model.ports import PlacerInput, PolicyInput
from scheduler_core.model.quarantine import DECIDE, job_inputs
from scheduler_core.model.target import Quarantine, Target

NOW_S = 1_000.0


def spec(job_id: str, bounds: tuple[int, int] = (1, 1), **changes: Any) -> JobSpec:
    """A request for ``bounds`` (min, max) GPUs."""
    settled: dict[str, Any] = {"namespace": "default", "workflow": job_id, "name": "train", "submitted_s": 0.0}
    return JobSpec(id=job_id, min_gpus=bounds[0], max_gpus=bounds[1], **{**settled, **changes})


def cluster(*gpus: int, **changes: Any) -> Cluster:
    """Nodes n0, n1, ... with so many GPUs."""
    return Cluster(nodes=tuple(Node(name=f"n{index}", gpus=count, **changes) for index, count in enumerate(gpus)))


def asked(specs: Iterable[JobSpec], capacity_gpus: int, **changes: Any) -> PolicyInput:
    """What a policy is asked."""
    settled: dict[str, Any] = {
        "current": Allocation(),
        "speed_by_job": {},
        "attained_gpu_s_by_job": {},
        "now_s": NOW_S,
    }
    return PolicyInput(specs=tuple(specs), capacity_gpus=capacity_gpus, **{**settled, **changes})


def to_place(
    gpus_by_job: Mapping[str, int],
    nodes: Cluster,
    current: Mapping[str, Mapping[str, int]] | None = None,
    specs: Iterable[JobSpec] | None = None,
) -> PlacerInput:
    """What a placer is asked; jobs are rigid with single-GPU workers unless their specs are given."""
    if specs is None:
        specs = [spec(job_id, (gpus, gpus)) for job_id, gpus in gpus_by_job.items()]
    return PlacerInput(
        allocation=Allocation(gpus_by_job=gpus_by_job),
        specs=tuple(sorted(specs, key=lambda one: one.id)),
        cluster=nodes,
        capacity_gpus={node.name: node.gpus - node.foreign_gpus for node in nodes.nodes},
        current=Placement(workers_by_job=current or {}),
    )


def workers(*nodes: str, phase: WorkerPhase = WorkerPhase.READY, gpus: int = 1, first: int = 0) -> tuple[Worker, ...]:
    """Workers w<first>, ... on these nodes, granted at ``NOW_S``."""
    return tuple(
        Worker(id=f"w{number}", node=node, gpus=gpus, phase=phase, since_s=NOW_S)
        for number, node in enumerate(nodes, start=first)
    )


def queued(request: JobSpec, **changes: Any) -> Job:
    """A job at its gate."""
    return Job(spec=request, phase=JobPhase.QUEUED, **changes)


def running(request: JobSpec, *nodes: str, **changes: Any) -> Job:
    """A job that trains by an acknowledged document of generation 1 with one worker on each of these nodes."""
    members = workers(*nodes, gpus=request.gpus_per_worker)
    settled: dict[str, Any] = {
        "phase": JobPhase.RUNNING,
        "workers": members,
        "published": tuple(worker.id for worker in members),
        "generation": 1,
        "acknowledged": 1,
        "driver_ready": True,
        "grow_gate_open": True,
        "granted_s": NOW_S,
    }
    return Job(spec=request, **{**settled, **changes})


def seen(nodes: Cluster, *jobs: Job, **changes: Any) -> Observation:
    """An observation at ``NOW_S``."""
    return Observation(**{"now_s": NOW_S, "cluster": nodes, "jobs": jobs, **changes})


def left_out(observation: Observation, job_id: str, reason: str, **changes: Any) -> Quarantine:
    """A quarantine of a job of the observation that begins now, for the first time."""
    settled: dict[str, Any] = {
        "stage": DECIDE,
        "since_s": observation.now_s,
        "tried_s": observation.now_s,
        "until_s": observation.now_s + 60.0,
        "tries": 1,
        "inputs": job_inputs(observation.jobs_by_id[job_id], observation),
    }
    return Quarantine(reason=reason, **{**settled, **changes})


def aimed(workers_by_job: Mapping[str, Mapping[str, int]], *jobs: Job, **changes: Any) -> Target:
    """A target of decision 1 that gives these jobs these workers by node, and the jobs it does not name nothing."""
    placement = Placement(workers_by_job=workers_by_job)
    gpus_by_job = {job.id: sum(placement.workers(job.id).values()) * job.spec.gpus_per_worker for job in jobs}
    settled: dict[str, Any] = {
        "decision": 1,
        "decided_s": NOW_S,
        "policy": "elastic_fifo",
        "allocation": Allocation(gpus_by_job=gpus_by_job),
        "placement": placement,
        "reasons": {job.id: "decided" for job in jobs},
    }
    return Target(**{**settled, **changes})

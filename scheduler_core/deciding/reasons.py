"""Why each job has what it has, in one sentence: stored with the target and shown by ``voda explain``."""

from __future__ import annotations

from collections.abc import Mapping

from scheduler_core.model.allocation import Allocation
from scheduler_core.model.job import JobPhase, JobSpec
from scheduler_core.model.observation import Observation
from scheduler_core.model.placement import Placement


def reasons(
    observation: Observation, allocation: Allocation, placement: Placement, notes: Mapping[str, str]
) -> dict[str, str]:
    """One sentence for every live job, by id in order.

    Args:
        observation: The world decided on.
        allocation: What was decided.
        placement: Where.
        notes: What else is to be said of single jobs (fixed, unplaced), by id.
    """
    said = {}
    free_gpus = max(0, sum(observation.ours_gpus().values()) - allocation.total_gpus)
    for job in observation.jobs:
        if job.phase is JobPhase.ENDED:
            continue
        gpus = allocation.gpus(job.id)
        sentence = _granted(job.spec, gpus, placement) if gpus else _waiting(job.spec, observation, free_gpus)
        said[job.id] = f"{sentence} ({notes[job.id]})" if job.id in notes else sentence
    return said


def _granted(spec: JobSpec, gpus: int, placement: Placement) -> str:
    nodes = ", ".join(f"{count * spec.gpus_per_worker} on {node}" for node, count in placement.workers(spec.id).items())
    return f"has {gpus} GPUs of {spec.min_gpus}..{spec.max_gpus}: {nodes}"


def _waiting(spec: JobSpec, observation: Observation, free_gpus: int) -> str:
    of_type = [node for node in observation.cluster.nodes if not spec.gpu_type or node.gpu_type == spec.gpu_type]
    total = sum(node.gpus for node in of_type)
    kind = f" of type {spec.gpu_type}" if spec.gpu_type else ""
    if total < spec.min_gpus:
        return f"waits for {spec.min_gpus} GPUs{kind}, and the cluster has {total}: add nodes or lower min-gpus"
    return f"waits for {spec.min_gpus} GPUs{kind}: {free_gpus} of the cluster's are not given to jobs before it"

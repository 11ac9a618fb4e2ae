"""Why each job has what it has, in one sentence: stored with the target and shown by ``voda explain``."""

from __future__ import annotations

from collections.abc import Mapping

from scheduler_core.allocate.feasible import unschedulable
from scheduler_core.model.allocation import Allocation
from scheduler_core.model.job import JobPhase, JobSpec
from scheduler_core.model.observation import Observation
from scheduler_core.model.placement import Placement
from scheduler_core.model.units import in_words


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
    left = _left(observation, placement)
    for job in observation.jobs:
        if job.phase is JobPhase.ENDED:
            continue
        gpus = allocation.gpus(job.id)
        sentence = _granted(job.spec, gpus, placement) if gpus else _waiting(job.spec, observation, left)
        is_enough = not gpus and bool(unschedulable(job.spec, observation.cluster))
        said[job.id] = f"{sentence} ({notes[job.id]})" if job.id in notes and not is_enough else sentence
    return said


def _left(observation: Observation, placement: Placement) -> dict[str, int]:
    """GPUs by node that nobody was given."""
    left = observation.ours_gpus()
    for job in observation.jobs:
        for node, count in placement.workers(job.id).items():
            left[node] = max(0, left.get(node, 0) - count * job.spec.gpus_per_worker)
    return left


def _granted(spec: JobSpec, gpus: int, placement: Placement) -> str:
    nodes = ", ".join(f"{count * spec.gpus_per_worker} on {node}" for node, count in placement.workers(spec.id).items())
    bounds = f" of {spec.min_gpus}..{spec.max_gpus}" if spec.is_elastic else ""
    return f"has {in_words(gpus)}{bounds}: {nodes}"


def _waiting(spec: JobSpec, observation: Observation, left: Mapping[str, int]) -> str:
    never = unschedulable(spec, observation.cluster)
    if never:
        return never
    of_type = [node for node in observation.cluster.nodes if not spec.gpu_type or node.gpu_type == spec.gpu_type]
    total, free = sum(node.gpus for node in of_type), sum(left[node.name] for node in of_type)
    kind = f" of type {spec.gpu_type}" if spec.gpu_type else ""
    return f"waits for {in_words(spec.min_gpus)}{kind}: {free} of {total} are not given to jobs before it"

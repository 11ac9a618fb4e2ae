"""Why each job has what it has, in one sentence: stored with the target, shown by ``voda explain`` and on the gates."""

from __future__ import annotations

from collections.abc import Mapping

from scheduler_core.allocate.order import by_arrival
from scheduler_core.model.allocation import Allocation
from scheduler_core.model.job import JobPhase, JobSpec
from scheduler_core.model.observation import Observation
from scheduler_core.model.placement import Placement
from scheduler_core.model.target import Target


def reasons(observation: Observation, allocation: Allocation, placement: Placement, notes: Mapping[str, str]) -> dict[str, str]:
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


def queue_messages(observation: Observation, target: Target) -> dict[str, str]:
    """What to show on each waiting job's gate, by id in order.

    The place is a bucket (1, 2, 3-4, 5-8, ...), so a queue that moves on by one rewrites few of them.
    """
    waiting = [
        job.spec
        for job in observation.jobs
        if job.phase is JobPhase.QUEUED and not target.allocation.gpus(job.id)
    ]
    capacity = sum(observation.ours_gpus().values())
    messages = {}
    for place, spec in enumerate(by_arrival(waiting), start=1):
        text = f"queued: place {_bucket(place)}, waits for {spec.min_gpus} GPUs"
        if spec.gpu_type:
            text += f" of type {spec.gpu_type}"
        if spec.min_gpus > capacity:
            text += f" and the cluster has {capacity}"
        if spec.id in target.quarantined:
            text += f"; left out of decisions: {target.quarantined[spec.id]}"
        messages[spec.id] = text
    return dict(sorted(messages.items()))


def _bucket(place: int) -> str:
    """The power-of-two bucket of a place from 1: 1, 2, 3-4, 5-8, ..."""
    high = 1 << (place - 1).bit_length()
    low = high // 2 + 1
    return str(high) if low >= high else f"{low}-{high}"

"""Why each job has what it has, in one sentence: stored with the target and shown by ``voda explain``.

In: the world, what was decided and where. Out: a sentence for each live job. Nodes are counted once, not once a job.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from scheduler_core.allocate.feasible import Room
from scheduler_core.model.allocation import Allocation
from scheduler_core.model.job import JobPhase, JobSpec
from scheduler_core.model.observation import Observation
from scheduler_core.model.placement import Placement
from scheduler_core.model.reason import Code, Reason
from scheduler_core.model.units import in_words


def reasons(
    observation: Observation,
    allocation: Allocation,
    placement: Placement,
    notes: Mapping[str, Sequence[Reason]],
) -> dict[str, Reason]:
    """One reason for every live job, by id in order.

    Args:
        observation: The world decided on.
        allocation: What was decided.
        placement: Where.
        notes: What else is to be said of single jobs (fixed, unplaced, their queue), by id.
    """
    room, left = Room(observation.cluster), _left_by_type(observation, placement)
    said = {}
    for job in observation.jobs:
        if job.phase is JobPhase.ENDED:
            continue
        gpus = allocation.gpus(job.id)
        found = _granted(job.spec, gpus, placement) if gpus else _waiting(job.spec, room, left)
        if job.id in notes and found.code is not Code.UNSCHEDULABLE:
            told = "; ".join(reason.text for reason in notes[job.id])
            found = Reason(code=found.code, text=f"{found.text} ({told})")
        said[job.id] = found
    return said


def _left_by_type(observation: Observation, placement: Placement) -> Counter[str]:
    """GPUs by type that nobody was given, those of all types under the empty name."""
    left = observation.ours_gpus()
    for job in observation.jobs:
        for name, count in placement.workers(job.id).items():
            left[name] = max(0, left.get(name, 0) - count * job.spec.gpus_per_worker)
    found: Counter[str] = Counter()
    for node in observation.cluster.nodes:
        found[""] += left[node.name]
        if node.gpu_type:
            found[node.gpu_type] += left[node.name]
    return found


def _granted(spec: JobSpec, gpus: int, placement: Placement) -> Reason:
    nodes = ", ".join(f"{count * spec.gpus_per_worker} on {node}" for node, count in placement.workers(spec.id).items())
    bounds = f" of {spec.min_gpus}..{spec.max_gpus}" if spec.is_elastic else ""
    return Reason(code=Code.GRANTED, text=f"has {in_words(gpus)}{bounds}: {nodes}")


def _waiting(spec: JobSpec, room: Room, left: Mapping[str, int]) -> Reason:
    never = room.unschedulable(spec)
    if never:
        return Reason(code=Code.UNSCHEDULABLE, text=never)
    kind = f" of type {spec.gpu_type}" if spec.gpu_type else ""
    total, free = room.total_gpus(spec.gpu_type), left.get(spec.gpu_type, 0)
    text = f"waits for {in_words(spec.min_gpus)}{kind}: {free} of {total} are not given to jobs before it"
    return Reason(code=Code.WAITING, text=text)

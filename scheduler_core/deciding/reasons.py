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
    waiting = _Waiting(Room(observation.cluster), _left_by_type(observation, placement))
    said = {}
    for job in observation.jobs:
        if job.phase is JobPhase.ENDED:
            continue
        spec = job.spec
        gpus = allocation.gpus(spec.id)
        found = _granted(spec, gpus, placement.workers(spec.id)) if gpus else waiting.reason(spec)
        if spec.id in notes and found.code is not Code.UNSCHEDULABLE:
            told = "; ".join(reason.text for reason in notes[spec.id])
            found = Reason(code=found.code, text=f"{found.text} ({told})")
        said[spec.id] = found
    return said


def _left_by_type(observation: Observation, placement: Placement) -> Counter[str]:
    """GPUs by type that nobody was given, those of all types under the empty name."""
    given: dict[str, int] = {}
    steps = {job.spec.id: job.spec.gpus_per_worker for job in observation.jobs}
    for job_id, workers_by_node in placement.workers_by_job.items():
        for name, count in workers_by_node.items():
            given[name] = given.get(name, 0) + count * steps[job_id]
    usable, found = observation.ours_gpus(), Counter[str]()
    for node in observation.cluster.nodes:
        free_gpus = usable[node.name] - given.get(node.name, 0)
        if free_gpus > 0:
            found[""] += free_gpus
            if node.gpu_type:
                found[node.gpu_type] += free_gpus
    return found


def _granted(spec: JobSpec, gpus: int, workers_by_node: Mapping[str, int]) -> Reason:
    step = spec.gpus_per_worker
    nodes = ", ".join([f"{count * step} on {node}" for node, count in workers_by_node.items()])
    bounds = f" of {spec.min_gpus}..{spec.max_gpus}" if spec.is_elastic else ""
    return Reason(code=Code.GRANTED, text=f"has {in_words(gpus)}{bounds}: {nodes}")


class _Waiting:
    """Why jobs wait; those that ask for the same wait for the same.

    Args:
        room: What the nodes could hold.
        left: GPUs by type that nobody was given.
    """

    def __init__(self, room: Room, left: Mapping[str, int]) -> None:
        self._room, self._left = room, left
        self._known: dict[tuple[str, int, int], Reason] = {}

    def reason(self, spec: JobSpec) -> Reason:
        """Why a job waits."""
        request = spec.gpu_type, spec.min_gpus, spec.gpus_per_worker
        if request not in self._known:
            self._known[request] = self._made(spec)
        return self._known[request]

    def _made(self, spec: JobSpec) -> Reason:
        never = self._room.unschedulable(spec)
        if never:
            return Reason(code=Code.UNSCHEDULABLE, text=never)
        kind = f" of type {spec.gpu_type}" if spec.gpu_type else ""
        total, free = self._room.total_gpus(spec.gpu_type), self._left.get(spec.gpu_type, 0)
        text = f"waits for {in_words(spec.min_gpus)}{kind}: {free} of {total} are not given to jobs before it"
        return Reason(code=Code.WAITING, text=text)

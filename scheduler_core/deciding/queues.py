"""What each queue may have of a pool, and what is said of it to its jobs.

In: a pool, the world, and where workers stand. Out: shares for ``quota.capped``, and reasons for the jobs whose queue
has come to its limit or borrows. Jobs that a decision leaves as they stand count against their queue.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from scheduler_core.allocate.pools import Pool
from scheduler_core.deciding.quota import Share
from scheduler_core.model.allocation import Allocation
from scheduler_core.model.job import JobSpec
from scheduler_core.model.observation import Observation
from scheduler_core.model.placement import Placement
from scheduler_core.model.queue import Queue
from scheduler_core.model.reason import Code, Reason
from scheduler_core.model.units import in_words


@dataclass(frozen=True, slots=True, kw_only=True)
class Shares:
    """The queues of one pool.

    Attributes:
        gpu_type: The pool's type.
        queues: Those with GPUs of their own, of any type, by name; empty when nothing is capped.
        held_gpus: GPUs of this pool by queue that jobs hold which are not decided on.
    """

    gpu_type: str = ""
    queues: Mapping[str, Queue] = field(default_factory=dict)
    held_gpus: Mapping[str, int] = field(default_factory=dict)

    @property
    def by_queue(self) -> dict[str, Share]:
        """What is left for the jobs that are decided on."""
        found = {}
        for name, queue in self.queues.items():
            held, most = self.held_gpus.get(name, 0), queue.most(self.gpu_type)
            found[name] = Share(
                own_gpus=max(0, queue.nominal(self.gpu_type) - held),
                most_gpus=None if most is None else max(0, most - held),
            )
        return found


def shares(pool: Pool, observation: Observation, current: Placement) -> Shares:
    """The queues' shares of a pool.

    Args:
        pool: Its jobs are those that are decided on.
        observation: The world, with the queues.
        current: Where the workers of all jobs stand.
    """
    queues = {name: queue for name, queue in sorted(observation.queues.items()) if queue.nominal_gpus}
    if not queues:
        return Shares()
    decided = {spec.id for spec in pool.specs}
    held: dict[str, int] = {}
    for job in observation.jobs:
        if job.id in decided or job.spec.queue not in queues:
            continue
        num_workers = sum(count for node, count in current.workers(job.id).items() if node in pool.gpus_by_node)
        held[job.spec.queue] = held.get(job.spec.queue, 0) + num_workers * job.spec.gpus_per_worker
    return Shares(gpu_type=pool.gpu_type, queues=queues, held_gpus=held)


def queue_reasons(pool: Pool, allocation: Allocation, known: Shares) -> dict[str, Reason]:
    """What a job is told of its queue, by id: that it may have no more, or that it uses what belongs to others."""
    used = dict(known.held_gpus)
    for spec in pool.specs:
        used[spec.queue] = used.get(spec.queue, 0) + allocation.gpus(spec.id)
    found = {}
    for spec in pool.specs:
        if spec.queue in known.queues:
            said = _of_queue(
                spec, known.queues[spec.queue], known.gpu_type, (used[spec.queue], allocation.gpus(spec.id))
            )
            if said is not None:
                found[spec.id] = said
    return found


def _of_queue(spec: JobSpec, queue: Queue, gpu_type: str, gpus: tuple[int, int]) -> Reason | None:
    """What is to be said of a job's queue; of GPUs, those that the queue has and those that the job has of them."""
    used, has = gpus
    most, kind = queue.most(gpu_type), f" of type {gpu_type}" if gpu_type else ""
    step = spec.gpus_per_worker if has else spec.min_gpus
    if most is not None and has < spec.max_gpus and used + step > most:
        return Reason(
            code=Code.QUEUE_LIMIT, text=f"queue {queue.name} may have {in_words(most)}{kind}, and its jobs have {used}"
        )
    over = used - queue.nominal(gpu_type)
    if not has or over <= 0:
        return None
    text = f"queue {queue.name} borrows {in_words(over)}{kind}, to be given back when a queue wants its own"
    return Reason(code=Code.BORROWS, text=text)

"""What each queue has and waits for, by GPU type: its own GPUs, those in use, those that it borrows. Pure.

In: queues, jobs as their Workflows tell of them, and the type of each node. Out: a row for each queue and type.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from scheduler_core.model.queue import Queue
from voda_flows.report.lives import JobLife

#: Stands for the type of those that wait for GPUs of any type, where the cluster has several.
ANY = "any"


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueUse:
    """One queue and one type of GPU.

    Attributes:
        queue: Its name.
        gpu_type: The type, empty for nodes without a label, ``any`` for those that wait for GPUs of any type.
        nominal_gpus: GPUs that are its own, None where it has neither GPUs of its own nor a limit.
        most_gpus: The most that it may have, None for no limit.
        used_gpus: GPUs that its jobs hold.
        waiting_jobs: Jobs that wait for GPUs of this type.
        waiting_gpus: Their least numbers of GPUs together.
    """

    queue: str
    gpu_type: str
    nominal_gpus: int | None
    most_gpus: int | None
    used_gpus: int
    waiting_jobs: int
    waiting_gpus: int

    @property
    def borrowed_gpus(self) -> int:
        """GPUs that it has beyond its own; none of a queue that has nothing of its own."""
        return 0 if self.nominal_gpus is None else max(0, self.used_gpus - self.nominal_gpus)


def queue_uses(
    queues: Mapping[str, Queue], lives: Iterable[JobLife], type_by_node: Mapping[str, str]
) -> tuple[QueueUse, ...]:
    """Every queue, also those that jobs name and settings do not (any more).

    Args:
        queues: The queues of the settings by name.
        lives: The jobs.
        type_by_node: GPU type of each node that has GPUs.

    Returns:
        Rows in order of queue and type: one for each type of the cluster, and for others that the queue owns or jobs
        wait for.
    """
    types = sorted(set(type_by_node.values()))
    anywhere = types[0] if len(types) == 1 else ANY
    used: Counter[tuple[str, str]] = Counter()
    jobs: Counter[tuple[str, str]] = Counter()
    wanted: Counter[tuple[str, str]] = Counter()
    for life in lives:
        queue = life.asked.get("queue") or "default"
        for held in life.holding:
            used[queue, type_by_node.get(held.node, "")] += held.gpus
        if life.phase == "Queued":
            place = queue, life.asked.get("gpu-type") or anywhere
            jobs[place] += 1
            wanted[place] += int(life.asked.get("min-gpus") or "1")
    places = {(queue, kind) for queue in queues for kind in (*types, *queues[queue].nominal_gpus)}
    rows = []
    for name, kind in sorted(places.union(place for counts in (used, jobs) for place in counts)):
        queue_ = queues.get(name, Queue(name=name))
        owns = bool(queue_.nominal_gpus) and kind != ANY
        rows.append(
            QueueUse(
                queue=name,
                gpu_type=kind,
                nominal_gpus=queue_.nominal(kind) if owns else None,
                most_gpus=queue_.most(kind) if owns else None,
                used_gpus=used[name, kind],
                waiting_jobs=jobs[name, kind],
                waiting_gpus=wanted[name, kind],
            )
        )
    return tuple(rows)

"""Whether the cluster could ever hold a job's minimum, were everything else gone; and in words, why not.

In: a request and the nodes. Out: a sentence for people, empty where the job has only to wait for its turn. Such a job
waits: nodes may be added. Who asks about many jobs makes one ``Room`` and asks that: it looks at each node once.
"""

from __future__ import annotations

from scheduler_core.model.cluster import Cluster
from scheduler_core.model.job import JobSpec
from scheduler_core.model.units import in_words

#: Nodes whose GPUs a message names one by one; of more it names how many there are of each size.
_MOST_NAMED = 16


class Room:
    """What the nodes of a cluster could hold were they empty; each type and width of worker is counted once.

    Args:
        cluster: The nodes.
    """

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._gpus_by_type: dict[str, list[int]] = {}
        self._workers: dict[tuple[str, int], int] = {}

    def total_gpus(self, gpu_type: str) -> int:
        """GPUs of one type in all, those of every type where it is empty."""
        return self._num_workers(gpu_type, 1)

    def unschedulable(self, spec: JobSpec) -> str:
        """Why no node or set of nodes can hold the job's minimum, empty where they can."""
        kind = f" of type {spec.gpu_type}" if spec.gpu_type else ""
        total_gpus = self.total_gpus(spec.gpu_type)
        if total_gpus < spec.min_gpus:
            return (
                f"is unschedulable: it needs {in_words(spec.min_gpus)}{kind} at least, and the cluster has "
                f"{total_gpus}: add nodes or lower min-gpus"
            )
        step, wanted = spec.gpus_per_worker, spec.min_gpus // spec.gpus_per_worker
        room = self._num_workers(spec.gpu_type, step)
        if room < wanted:
            return (
                f"is unschedulable: each of its workers needs {in_words(step)}{kind} on one node, and the nodes "
                f"({_sizes(self._gpus(spec.gpu_type))} GPUs) have room for {room} of at least {wanted}: "
                "add nodes or lower gpus-per-worker"
            )
        return ""

    def _gpus(self, gpu_type: str) -> list[int]:
        """GPUs of each node of a type, in order of names."""
        if gpu_type not in self._gpus_by_type:
            self._gpus_by_type[gpu_type] = [
                node.gpus for node in self._cluster.nodes if not gpu_type or node.gpu_type == gpu_type
            ]
        return self._gpus_by_type[gpu_type]

    def _num_workers(self, gpu_type: str, step: int) -> int:
        """Workers of so many GPUs that the nodes of a type can hold."""
        if (gpu_type, step) not in self._workers:
            self._workers[gpu_type, step] = sum(gpus // step for gpus in self._gpus(gpu_type))
        return self._workers[gpu_type, step]


def unschedulable(spec: JobSpec, cluster: Cluster) -> str:
    """Why no node or set of nodes can hold the job's minimum, empty where they can."""
    return Room(cluster).unschedulable(spec)


def _sizes(gpus: list[int]) -> str:
    if len(gpus) <= _MOST_NAMED:
        return ", ".join(map(str, gpus))
    return ", ".join(f"{gpus.count(size)} of {size}" for size in sorted(set(gpus)))

"""Whether the cluster could ever hold a job's minimum, were everything else gone; and in words, why not.

In: a request and the nodes. Out: a sentence for people, empty where the job has only to wait for its turn. Such a job
waits: nodes may be added.
"""

from __future__ import annotations

from scheduler_core.model.cluster import Cluster
from scheduler_core.model.job import JobSpec
from scheduler_core.model.units import in_words


def unschedulable(spec: JobSpec, cluster: Cluster) -> str:
    """Why no node or set of nodes can hold the job's minimum, empty where they can."""
    of_type = [node.gpus for node in cluster.nodes if not spec.gpu_type or node.gpu_type == spec.gpu_type]
    kind = f" of type {spec.gpu_type}" if spec.gpu_type else ""
    if sum(of_type) < spec.min_gpus:
        return (
            f"is unschedulable: it needs {in_words(spec.min_gpus)}{kind} at least, and the cluster has {sum(of_type)}: "
            "add nodes or lower min-gpus"
        )
    step, wanted = spec.gpus_per_worker, spec.min_gpus // spec.gpus_per_worker
    room = sum(gpus // step for gpus in of_type)
    if room < wanted:
        return (
            f"is unschedulable: each of its workers needs {in_words(step)}{kind} on one node, and the nodes "
            f"({', '.join(str(gpus) for gpus in of_type)} GPUs) have room for {room} of at least {wanted}: "
            "add nodes or lower gpus-per-worker"
        )
    return ""

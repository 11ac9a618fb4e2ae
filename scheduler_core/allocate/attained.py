"""The queues of Tiresias: who has had how much service since it last started, and who waited so long that it is new.

In: what each job has had (``Service``) and the settings. Out: the number of a job's queue, and the order of all.
Nothing is remembered between decisions.
The rule is that of Tiresias (NSDI'19, section 4.1.2, discretised 2D-LAS) as Voda has it. Voda promotes by how long a
job waited before its last start, which is true of most jobs just after a start and of none while they wait; ours
promotes only jobs that wait now.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from typing import Final

from scheduler_core.allocate.rungs import clipped
from scheduler_core.allocate.walk import smallest
from scheduler_core.model.job import JobSpec
from scheduler_core.model.ports import PolicyInput
from scheduler_core.model.service import Service

#: Of a job of which nothing is told.
NO_SERVICE: Final = Service()


def queue_number(asked: PolicyInput, job_id: str) -> int:
    """The queue of a job, 0 served first.

    Args:
        asked: Service, what jobs hold now, and the settings ``params.tiresias``.
        job_id: The job.

    Returns:
        How many of the limits its service since the last start exceeds; 0 for a job that holds nothing and has waited
        ``promote_ratio`` times as long as it ran. A job so promoted begins its service anew when it starts, so it
        stays in queue 0 until it exceeds a limit again.
    """
    service = asked.service_by_job.get(job_id, NO_SERVICE)
    settings = asked.params.tiresias
    if service.waiting_s >= settings.promote_ratio * service.running_s and not asked.current.gpus(job_id):
        return 0
    return bisect_left(settings.limits_gpu_s, service.since_start_gpu_s)


def by_queue(asked: PolicyInput) -> list[JobSpec]:
    """Jobs by priority class, queue, first start (those that never started last), arrival, id."""
    started = asked.started_s_by_job

    def key(spec: JobSpec) -> tuple[int, int, float, float, str]:
        first_s = started.get(spec.id, math.inf)
        return (-spec.priority, queue_number(asked, spec.id), first_s, spec.submitted_s, spec.id)

    return sorted(asked.specs, key=key)


def asked_gpus(spec: JobSpec, _free_gpus: int = 0) -> int:
    """What a job asks for: the number its user named, as far as sizes allow, else its smallest size."""
    return clipped(spec, spec.num_gpus) if spec.num_gpus else smallest(spec)

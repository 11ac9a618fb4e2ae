"""What a job's failed workers say: where not to put the next ones at once, and how long to wait with growing it.

In: a job of the observation. Out: nodes to avoid, the moment from which it may grow. A piece of the first deciding step
(estimate); the converge loop asks it too. A worker that worked for long and is lost is replaced at once; one that
fails soon after its start will often fail again, and each growth costs the others standing still and Argo one more
nested template.
"""

from __future__ import annotations

import math

from scheduler_core.model.job import Job, WorkerFailure, WorkerPhase

#: A worker that fails within the start limit and this has hardly worked.
_HARDLY_S = 30.0
#: A grown worker that has trained for so long has shown that growing works again.
_HEALTHY_S = 60.0
#: A node is avoided for so long after a worker failed on it.
AVOID_S = 600.0
#: The first growth after a failure is made at once, the second waits for ten seconds, then twenty, ...
_FIRST_S = 10.0
_LONGEST_S = 300.0


def early_failures(job: Job, start_limit_s: float) -> tuple[WorkerFailure, ...]:
    """The job's failed workers that never became ready or failed soon after, in order of their end.

    Args:
        job: The job.
        start_limit_s: Seconds a granted worker may take to become ready.
    """
    return tuple(failure for failure in job.failures if failure.ended_s - failure.started_s < start_limit_s + _HARDLY_S)


def avoided_nodes(job: Job, now_s: float, start_limit_s: float) -> tuple[str, ...]:
    """Nodes on which a worker of the job failed a moment ago and none of it is ready, sorted."""
    failed = {failure.node for failure in early_failures(job, start_limit_s) if 0 <= now_s - failure.ended_s < AVOID_S}
    ready = {worker.node for worker in job.workers if worker.phase is WorkerPhase.READY}
    return tuple(sorted(failed - ready))


def failed_growths(job: Job, now_s: float, start_limit_s: float) -> int:
    """How often in a row workers failed early, up to now; those of one growth count as one."""
    healthy_s = max(
        (
            worker.since_s
            for worker in job.workers
            if worker.phase is WorkerPhase.READY and worker.id in job.published and now_s - worker.since_s >= _HEALTHY_S
        ),
        default=-math.inf,
    )
    count, ended_s = 0, -math.inf
    for failure in sorted(early_failures(job, start_limit_s), key=lambda one: (one.started_s, one.worker)):
        if failure.started_s > healthy_s:
            count += failure.started_s > ended_s
            ended_s = max(ended_s, failure.ended_s)
    return count


def grows_from_s(job: Job, now_s: float, start_limit_s: float) -> float:
    """The moment from which the job may grow, seconds since the epoch; 0 where nothing speaks against it."""
    times = failed_growths(job, now_s, start_limit_s)
    if times < 2:
        return 0.0
    last_s = max(failure.ended_s for failure in early_failures(job, start_limit_s))
    return last_s + min(_FIRST_S * 2.0 ** min(times - 2, 60), _LONGEST_S)

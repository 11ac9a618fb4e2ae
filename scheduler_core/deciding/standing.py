"""What a decision starts from: who stands where, what may be used, what must stay, and whether anything is new.

In: the observation and the stored target. Out: values that ``cycle.decide`` hands to the stages. Where workers *stand*
is where the last decision put them: a change under way is not decided anew each time one of its steps is seen.
"""

from __future__ import annotations

import hashlib
import json
import math
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass

from scheduler_core.allocate.order import by_arrival
from scheduler_core.estimate.failing import avoided_nodes
from scheduler_core.model.cluster import Cluster
from scheduler_core.model.job import Job, JobPhase, WorkerPhase
from scheduler_core.model.memo import OncePerObject
from scheduler_core.model.observation import Observation
from scheduler_core.model.params import Params
from scheduler_core.model.placement import Placement
from scheduler_core.model.quarantine import quarantines, rounded
from scheduler_core.model.target import Target

#: Marks the digest of a decision that served waiting jobs only.
_WAITING_ONLY = "waiting:"
#: Policies that ask of a table only which size is the fastest, or nothing.
_BY_BEST_SIZE = ("fifo", "elastic_fifo", "srjf", "elastic_srjf", "tiresias")
#: Policies to which it is nothing how long a job still takes.
_WITHOUT_REMAINING = ("fifo", "elastic_fifo", "tiresias", "elastic_tiresias", "ffdl")


@OncePerObject
def workers_by_node(job: Job) -> dict[str, int]:
    """A job's workers that are there to stay, by node, in order of names."""
    counted = Counter(worker.node for worker in job.holding if worker.phase is not WorkerPhase.LEAVING)
    return dict(sorted(counted.items()))


def usable_gpus(observation: Observation) -> dict[str, int]:
    """GPUs by node that placements may use in all: on a node that takes nothing new, what our workers hold there."""
    usable = observation.ours_gpus()
    closed = {node.name for node in observation.cluster.nodes if not node.schedulable}
    for job in observation.jobs:
        for worker in job.holding:
            if worker.node in closed and worker.phase is not WorkerPhase.LEAVING:
                usable[worker.node] += worker.gpus
    return usable


def avoided(observation: Observation, params: Params) -> dict[str, tuple[str, ...]]:
    """Nodes that single jobs had better not be put on now, by id in order of those that have any."""
    failing = [job for job in observation.jobs if job.failures]
    found = {job.id: avoided_nodes(job, observation.now_s, params.start_limit_s) for job in failing}
    return {job_id: nodes for job_id, nodes in found.items() if nodes}


def standing(observation: Observation, target: Target, params: Params) -> Placement:
    """Where each live job's workers are or are meant to be.

    The last decision's placement where it gave the job any, else what the job holds (a scheduler without a stored
    target takes over what runs). On nodes that take nothing new, and on those where a worker of the job failed a moment
    ago, never more than what is really there.
    """
    shunned = avoided(observation, params)
    closed = {node.name for node in observation.cluster.nodes if not node.schedulable}
    workers_by_job = {}
    for job in observation.jobs:
        if job.phase is JobPhase.ENDED:
            continue
        held = workers_by_node(job)
        meant = target.placement.workers(job.id)
        if job.id not in target.reasons or job.held or job.stalled:
            meant = held if job.is_active else {}
        bare = closed.union(shunned.get(job.id, ()))
        workers_by_job[job.id] = {
            node: min(count, held.get(node, 0)) if node in bare else count for node, count in meant.items()
        }
    return Placement(workers_by_job=workers_by_job)


def fixed_jobs(observation: Observation, target: Target, current: Placement, *, within_limit: bool) -> dict[str, str]:
    """Jobs that this decision leaves as they stand, by id in order, with the reason (empty: only the rate limit).

    A job whose nodes can no longer hold it (a node went, foreign pods came) is never fixed: it is decided anew. Nor
    does the rate limit fix one that has not all that it was given because a worker failed: the world disturbed it.

    Args:
        observation: The world.
        target: The stored target.
        current: Where workers stand.
        within_limit: Whether running jobs may not be disturbed yet.
    """
    fixed = {}
    left_out = quarantines(observation, target)
    for job in observation.jobs:
        waits = job.phase is JobPhase.QUEUED and not target.allocation.gpus(job.id)
        if job.phase is JobPhase.ENDED:
            continue
        if job.id in left_out:
            fixed[job.id] = f"left out of decisions: {left_out[job.id].reason}"
        elif job.held:
            fixed[job.id] = "its Workflow is suspended or told to stop"
        elif job.stalled:
            fixed[job.id] = "its last segment has ended and its checkpoint step does not come up"
        elif job.pinned and job.is_active:
            fixed[job.id] = "pinned: its budget of segments or status size is used up"
        elif within_limit and not waits and not _lost_some(job, target, current):
            fixed[job.id] = ""
    homeless = _homeless(observation, fixed, current)
    return {job_id: why for job_id, why in fixed.items() if job_id not in homeless}


def _lost_some(job: Job, target: Target, current: Placement) -> bool:
    """Whether less of a job stands than it was given: a worker failed on a node that it should avoid now."""
    given = target.placement.workers(job.id)
    return sum(current.workers(job.id).values()) < sum(given.values()) and not job.held


def _homeless(observation: Observation, fixed: Iterable[str], current: Placement) -> set[str]:
    """Of these jobs, those for which there is no room where they stand, or only for less than their minimum.

    Who runs has its room before who was only promised some.
    """
    jobs = observation.jobs_by_id
    arrival = {spec.id: place for place, spec in enumerate(by_arrival(job.spec for job in observation.jobs))}
    left = usable_gpus(observation)
    homeless = set()
    for job_id in sorted(fixed, key=lambda one: (not jobs[one].is_active, arrival[one])):
        spec = jobs[job_id].spec
        needs = {node: count * spec.gpus_per_worker for node, count in current.workers(job_id).items()}
        if 0 < sum(needs.values()) < spec.min_gpus or any(gpus > left.get(node, 0) for node, gpus in needs.items()):
            homeless.add(job_id)
            continue
        for node, gpus in needs.items():
            left[node] -= gpus
    return homeless


def input_digest(observation: Observation, target: Target, params: Params) -> str:
    """A digest of all that a decision depends on; progress, messages, pods and the clock are not part of it.

    Taken of an observation and the target made from it, it says what input that target answers: the steps of carrying
    it out change no digest.
    """
    relevant = {
        "policy": params.policy,
        "params": [params.backfilling, asdict(params.tiresias), {at: asdict(params.links[at]) for at in params.links}],
        "queues": {name: asdict(queue) for name, queue in observation.queues.items()},
        "closed": _held_on_closed(observation),
        "remaining": _remaining(observation, params),
        "service": _levels(observation, params),
        "speeds": _speeds(observation, params),
        "quarantined": sorted(quarantines(observation, target)),
        "avoided": avoided(observation, params),
    }
    given = target.allocation.gpus_by_job
    texts = [json.dumps(relevant, sort_keys=True), _nodes_text(observation.cluster)]
    waiting = [job.id for job in observation.jobs if job.phase is JobPhase.QUEUED and job.spec.id not in given]
    texts += [json.dumps(waiting), *_job_digest.of_all(observation.jobs)]
    return hashlib.sha256("\n".join(texts).encode()).hexdigest()


def _held_on_closed(observation: Observation) -> dict[str, int]:
    """What our workers hold on nodes that take nothing new."""
    if all(node.schedulable for node in observation.cluster.nodes):
        return {}
    usable = usable_gpus(observation)
    return {node.name: usable[node.name] for node in observation.cluster.nodes if not node.schedulable}


@OncePerObject
def _nodes_text(cluster: Cluster) -> str:
    """What a decision depends on of the nodes."""
    nodes = [
        (node.name, node.gpu_type, sorted(node.labels.items()), node.schedulable, max(0, node.gpus - node.foreign_gpus))
        for node in cluster.nodes
    ]
    return json.dumps([cluster.levels, nodes])


def _speeds(observation: Observation, params: Params) -> Mapping[str, object]:
    """Speeds as the policy sees them: to some of them it only matters which size is the best, where not the largest."""
    if params.policy in _BY_BEST_SIZE:
        best = {job_id: speeds.index(max(speeds)) for job_id, speeds in observation.speed_by_job.items() if speeds}
        return {job_id: gpus for job_id, gpus in best.items() if gpus < len(observation.speed_by_job[job_id]) - 1}
    return {job_id: rounded(speeds) for job_id, speeds in observation.speed_by_job.items()}


def _remaining(observation: Observation, params: Params) -> Mapping[str, int]:
    """Remaining times to a factor of two, for policies that order by them; those of other packages may."""
    if params.policy in _WITHOUT_REMAINING:
        return {}
    return {job_id: int(math.log2(max(1.0, left_s))) for job_id, left_s in observation.remaining_s_by_job.items()}


def _levels(observation: Observation, params: Params) -> Mapping[str, tuple[int, bool]]:
    """For the policies that order by service: the queue that each job has come to, and whether it waited for long."""
    if not params.policy.endswith("tiresias"):
        return {}
    settings = params.tiresias
    return {
        job.id: (
            bisect_left(settings.limits_gpu_s, job.service.since_start_gpu_s),
            job.service.running_s > 0 and job.service.waiting_s >= settings.promote_ratio * job.service.running_s,
        )
        for job in observation.jobs
    }


@OncePerObject
def _job_digest(job: Job) -> str:
    """What a decision depends on of a job."""
    spec = job.spec
    relevant = {
        "id": spec.id,
        "bounds": (spec.min_gpus, spec.max_gpus, spec.gpus_per_worker, spec.num_gpus, spec.gpu_sizes),
        "order": (spec.priority, spec.submitted_s, spec.queue, spec.gpu_type),
        "state": ((job.pinned or job.held) and job.is_active, job.held, job.stalled, job.phase is JobPhase.ENDED),
    }
    return hashlib.sha256(json.dumps(relevant).encode()).hexdigest()


@dataclass(frozen=True, slots=True, kw_only=True)
class Start:
    """Where a decision starts.

    Attributes:
        within_limit: Whether running jobs may not be disturbed yet.
        current: Where workers stand.
        fixed: Jobs that stay as they stand, with the reason.
        left_gpus: GPUs by node for all the other jobs.
        params: The settings.
    """

    within_limit: bool
    current: Placement
    fixed: Mapping[str, str]
    left_gpus: Mapping[str, int]
    params: Params


def answered(observation: Observation, target: Target, params: Params) -> tuple[str, bool]:
    """The digest of the input, and whether the last decision answers this input already."""
    digest = input_digest(observation, target, params)
    within_limit = _is_within_limit(observation, target, params)
    return digest, target.digest in (digest, marked(digest, within_limit=within_limit))


def _is_within_limit(observation: Observation, target: Target, params: Params) -> bool:
    since_s = observation.now_s - target.disturbed_s
    return target.disturbed_s > 0 and 0 <= since_s < params.decide_interval_s


def start(observation: Observation, target: Target, params: Params) -> Start:
    """See what may be decided, and what must stay as it is."""
    within_limit = _is_within_limit(observation, target, params)
    current = standing(observation, target, params)
    fixed = fixed_jobs(observation, target, current, within_limit=within_limit)
    left_gpus = usable_gpus(observation)
    for job in observation.jobs:
        if job.id in fixed:
            for node, count in current.workers(job.id).items():
                left_gpus[node] -= count * job.spec.gpus_per_worker
    return Start(
        within_limit=within_limit,
        current=current,
        fixed=fixed,
        left_gpus=left_gpus,
        params=params,
    )


def marked(digest: str, *, within_limit: bool) -> str:
    """How a target stores its digest: one made for waiting jobs only still owes the full decision on its input."""
    return f"{_WAITING_ONLY}{digest}" if within_limit else digest

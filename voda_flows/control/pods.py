"""The pods of training jobs: whose they are, how far they have come, what GPUs they hold.

Pods are the truth about GPUs in use, never a Workflow's phase. They are matched by the uid of the Workflow that owns
them, because a Workflow deleted and submitted again has the same name.
"""

from __future__ import annotations

import textwrap
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from scheduler_core.model.job import WorkerPhase
from voda_flows.objects import HOSTNAME_LABEL, POD_ENDED, WORKFLOW_LABEL, Object, num_gpus, phase_of, seconds

ALLOCATION = "voda.dev/allocation"
#: What a pod says of itself while nothing is wrong.
_PREPARING = (None, "", "ContainerCreating", "PodInitializing")
#: Characters of why a pod waits.
_WHY = 300


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class PodKey:
    """What a pod is for: one worker, or the driver, of one segment of one job.

    Attributes:
        namespace: Its namespace.
        workflow: Name of its Workflow.
        job: The job's name in it.
        segment: The segment's number, as text.
        role: ``driver``, ``worker`` or ``checkpoint``.
        worker: The worker's id, empty for other roles.
    """

    namespace: str
    workflow: str
    job: str
    segment: str
    role: str
    worker: str = ""


def key_of_pod(pod: Object) -> PodKey:
    """What a pod is for, by its labels; fields are empty where it has none."""
    labels = pod["metadata"].get("labels") or {}
    return PodKey(
        namespace=pod["metadata"].get("namespace") or "default",
        workflow=labels.get(WORKFLOW_LABEL, ""),
        job=labels.get("voda.dev/job", ""),
        segment=labels.get("voda.dev/segment", ""),
        role=labels.get("voda.dev/role", ""),
        worker=labels.get("voda.dev/worker", ""),
    )


def by_key(pods: Iterable[Object]) -> dict[PodKey, list[Object]]:
    """Pods by what they are for, the one to go by first: still there before ended, then the newest."""
    found: dict[PodKey, list[Object]] = {}
    for pod in pods:
        found.setdefault(key_of_pod(pod), []).append(pod)
    for several in found.values():
        several.sort(key=lambda pod: (pod["metadata"].get("creationTimestamp") or "", uid(pod)), reverse=True)
        several.sort(key=has_ended)
    return found


def of_workflows(pods: Iterable[Object], names: Collection[str]) -> list[Object]:
    """The pods of Workflows of these names, in whatever namespace."""
    return [pod for pod in pods if (pod["metadata"].get("labels") or {}).get(WORKFLOW_LABEL) in names]


def newest(pods: Mapping[PodKey, list[Object]], key: PodKey, owner_uid: str) -> Object | None:
    """The pod to go by for a key among those that a Workflow owns, or None."""
    return next((pod for pod in pods.get(key, ()) if is_owned(pod, owner_uid)), None)


def is_owned(pod: Object, owner_uid: str) -> bool:
    """Whether a pod belongs to the Workflow of that uid; a pod that names no owner goes by its labels."""
    owners = pod["metadata"].get("ownerReferences") or ()
    return not owners or any(owner.get("uid") == owner_uid for owner in owners)


def worker_phase(pod: Object) -> WorkerPhase:
    """How far a worker's pod has come."""
    status = pod.get("status") or {}
    if has_ended(pod):
        return WorkerPhase.ENDED
    if is_leaving(pod):
        return WorkerPhase.LEAVING
    if status.get("phase") != "Running":
        return WorkerPhase.PENDING
    conditions = status.get("conditions") or ()
    ready = any(row.get("type") == "Ready" and row.get("status") == "True" for row in conditions)
    return WorkerPhase.READY if ready else WorkerPhase.RUNNING


def has_ended(pod: Object) -> bool:
    """Whether its processes are gone."""
    return phase_of(pod) in POD_ENDED


def why_pending(pod: Object) -> str:
    """Why a pod does not run yet, as its kubelet or the scheduler of pods says it; empty where nobody says anything."""
    status = pod.get("status") or {}
    if status.get("phase") not in (None, "", "Pending"):
        return ""
    rows = [*(status.get("initContainerStatuses") or ()), *(status.get("containerStatuses") or ())]
    waits = [waiting for row in rows if (waiting := (row.get("state") or {}).get("waiting"))]
    unbound = [
        row
        for row in status.get("conditions") or ()
        if row.get("type") == "PodScheduled" and row.get("status") == "False"
    ]
    said = [row for row in [*waits, *unbound] if row.get("reason") not in _PREPARING]
    words = f"{said[0].get('reason') or ''}: {said[0].get('message') or ''}" if said else status.get("message") or ""
    return textwrap.shorten(words.strip(": "), _WHY, placeholder=" ...")


def done_s(pod: Object) -> float | None:
    """When its processes ended well, seconds since the epoch; None where they did not."""
    status = pod.get("status") or {}
    if status.get("phase") != "Succeeded":
        return None
    ends = [(row.get("state") or {}).get("terminated") or {} for row in status.get("containerStatuses") or ()]
    known = [moment for end in ends if (moment := seconds(end.get("finishedAt")))]
    return max(known, default=seconds(pod["metadata"].get("creationTimestamp")) or 1.0)


def is_leaving(pod: Object) -> bool:
    """Whether it was told to go."""
    return "deletionTimestamp" in pod["metadata"]


def is_running(pod: Object) -> bool:
    """Whether it runs and was not told to go."""
    return phase_of(pod) == "Running" and not is_leaving(pod)


def address(pod: Object) -> str:
    """Its IP address, empty until it has one."""
    return (pod.get("status") or {}).get("podIP") or ""


def node_id(pod: Object) -> str:
    """The id of its node in its Workflow, empty where nobody wrote it down."""
    return str((pod["metadata"].get("annotations") or {}).get("workflows.argoproj.io/node-id") or "")


def uid(pod: Object) -> str:
    """Its uid."""
    return str(pod["metadata"].get("uid") or "")


def gpus(pod: Object) -> int:
    """GPUs that it holds on its node, counted as kube-scheduler does.

    Init containers run before the others, one after the other, and leave what they had to those that follow; a
    sidecar among them (one that is restarted always) stays.
    """
    spec = pod.get("spec") or {}
    sidecars = widest = 0
    for row in spec.get("initContainers") or ():
        if row.get("restartPolicy") == "Always":
            sidecars += _gpus_of(row)
            widest = max(widest, sidecars)
        else:
            widest = max(widest, sidecars + _gpus_of(row))
    return max(widest, sidecars + sum(_gpus_of(row) for row in spec.get("containers") or ()))


def _gpus_of(container: Object) -> int:
    """GPUs of a container; of what cannot be shared, a request is the limit, and either may be left out."""
    resources = container.get("resources") or {}
    return num_gpus(resources.get("requests")) or num_gpus(resources.get("limits"))


def node_of(pod: Object) -> str:
    """The node it is on or can only go to, empty when that is open."""
    spec = pod.get("spec") or {}
    return spec.get("nodeName") or (spec.get("nodeSelector") or {}).get(HOSTNAME_LABEL) or ""

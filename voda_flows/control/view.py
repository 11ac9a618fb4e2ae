"""One job as it stands: its Workflow's nodes, its pods and what its driver says, joined into the core's ``Job``.

In: ``JobNodes``, pods and the driver's last answer. Out: a ``JobView``, which holds the core's value and the objects
that an action on the job has to patch.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from scheduler_core.errors import InvalidValue
from scheduler_core.model.job import Job, JobPhase, JobSpec, Progress, Worker, WorkerPhase
from voda_flows.control import pods
from voda_flows.control.jobs import Granted, JobNodes
from voda_flows.control.pods import PodKey
from voda_flows.control.reports import DriverStatus
from voda_flows.control.request import Limits, read_request
from voda_flows.control.service import service_of
from voda_flows.objects import Object, seconds
from voda_flows.wire import AllocationDocument, read_document

#: Failures of workers are told to the core for so long, and so many of them at most.
_FAILURES_S = 3_600.0
_FAILURES_MOST = 50
#: Phases of a pod that runs and was not told to go.
_UNTOLD = (WorkerPhase.RUNNING, WorkerPhase.READY)


@dataclass(frozen=True, slots=True, kw_only=True)
class JobView:
    """A job and the objects behind it.

    Attributes:
        nodes: What its Workflow says.
        workflow: The Workflow.
        driver: Its segment's driver pod, None where there is none.
        document: The allocation document written for that very pod, None before the first.
        pod_by_worker: Its segment's worker pods by worker id.
        checkpoint: The pod of its checkpoint step, None where there is none.
        job: The core's value; None where its request is refused.
        refusal: Why it is refused, empty otherwise.
    """

    nodes: JobNodes
    workflow: Object
    driver: Object | None = None
    document: AllocationDocument | None = None
    pod_by_worker: Mapping[str, Object] = field(default_factory=dict)
    checkpoint: Object | None = None
    job: Job | None = None
    refusal: str = ""

    @property
    def id(self) -> str:
        """The job's identity."""
        return self.nodes.id

    @property
    def driver_uid(self) -> str:
        """Uid of the driver pod, empty where there is none."""
        return pods.uid(self.driver) if self.driver else ""


def pods_of(nodes: JobNodes, workflow: Object, pods_by_key: Mapping[PodKey, list[Object]]) -> JobView:
    """The job with the pods of its current segment, before its request is looked at."""
    driver = pods.newest(pods_by_key, _key(nodes, "driver"), nodes.asked.workflow_uid)
    found = {
        granted.worker.id: pods.newest(pods_by_key, _key(nodes, "worker", granted.worker.id), nodes.asked.workflow_uid)
        for granted in nodes.workers
    }
    return JobView(
        nodes=nodes,
        workflow=workflow,
        driver=driver,
        document=_document(nodes, driver),
        pod_by_worker={worker_id: pod for worker_id, pod in found.items() if pod is not None},
        checkpoint=pods.newest(pods_by_key, _key(nodes, "checkpoint"), nodes.asked.workflow_uid),
    )


def requested(view: JobView, limits: Limits) -> JobSpec:
    """What the job asks for.

    Raises:
        InvalidValue: It is not legal; the text that its user is shown.
    """
    if view.nodes.fault:
        raise InvalidValue(f"job {view.nodes.asked.workflow}/{view.nodes.asked.given_name}: {view.nodes.fault}")
    return read_request(view.nodes.asked, limits)


def job_of(view: JobView, spec: JobSpec, status: DriverStatus, *, now_s: float, segments_limit: int) -> Job:
    """The core's value of a job.

    Args:
        view: The job with its pods.
        spec: Its request.
        status: What its driver last said.
        now_s: Seconds since the epoch.
        segments_limit: Segments after which it is pinned.

    Returns:
        The job.
    """
    nodes, document = view.nodes, view.document
    said = status if status.driver_uid == view.driver_uid else DriverStatus()
    service = service_of(nodes.account, now_s)
    return Job(
        spec=spec,
        phase=_phase(view, said),
        segment=nodes.segment,
        workers=tuple(
            _worker(granted, view.pod_by_worker.get(granted.worker.id), said, now_s) for granted in nodes.workers
        ),
        published=tuple(worker.id for worker in document.workers) if document else (),
        generation=document.generation if document else 0,
        acknowledged=said.generation if document else 0,
        driver_ready=view.driver is not None and pods.is_running(view.driver),
        stop_written=bool(document and document.stop),
        grow_gate_open=bool(nodes.grow_gate),
        started_s=nodes.started_s,
        granted_s=nodes.granted_s,
        driver_ended_s=nodes.driver_ended_s,
        driver_waits=bool(nodes.driver) and not (view.driver and pods.is_running(view.driver)),
        checkpoint_s=_waits_since_s(view),
        attained_gpu_s=service.attained_gpu_s,
        service=service,
        retries=nodes.retries,
        failures=tuple(one for one in nodes.failures if now_s - one.ended_s < _FAILURES_S)[-_FAILURES_MOST:],
        held=nodes.held,
        pinned=nodes.is_spent(segments_limit),
        progress=Progress(
            epoch=said.epoch, step=said.step, world_size=said.world_size, samples_per_s=said.samples_per_s
        ),
        message=nodes.message,
    )


def _waits_since_s(view: JobView) -> float:
    """Since when the pod of the checkpoint step waits to run, 0 where none does."""
    pod = view.checkpoint
    if not view.nodes.checkpoint or pod is None or pods.worker_phase(pod) is not WorkerPhase.PENDING:
        return 0.0
    return seconds(pod["metadata"].get("creationTimestamp")) or 0.0


def _key(nodes: JobNodes, role: str, worker: str = "") -> PodKey:
    asked = nodes.asked
    return PodKey(
        namespace=asked.namespace,
        workflow=asked.workflow,
        job=asked.name,
        segment=str(nodes.segment),
        role=role,
        worker=worker,
    )


def _document(nodes: JobNodes, driver: Object | None) -> AllocationDocument | None:
    """The driver's document, if it was written for this pod: annotations are copied by what recreates pods."""
    if driver is None:
        return None
    document = read_document((driver["metadata"].get("annotations") or {}).get(pods.ALLOCATION) or "")
    if document is None or document.driver_uid != pods.uid(driver) or document.segment != nodes.segment:
        return None
    return document


def _phase(view: JobView, said: DriverStatus) -> JobPhase:
    """Where the segment stands; ``scheduler_core.model.job`` draws the moves."""
    nodes = view.nodes
    if nodes.gate_open:
        return JobPhase.BETWEEN if nodes.held else JobPhase.QUEUED
    if nodes.granted_s is None or nodes.driver_ended or (view.driver is not None and pods.has_ended(view.driver)):
        return JobPhase.BETWEEN
    if view.document is None:
        return JobPhase.STARTING
    return JobPhase.STOPPING if view.document.stop or said.ending else JobPhase.RUNNING


def _worker(granted: Granted, pod: Object | None, said: DriverStatus, now_s: float) -> Worker:
    """A worker by its pod; one that its driver dropped leaves, whatever its pod says: it is no fresh worker."""
    left_s = unplaced_s = 0.0
    if pod is not None:
        phase = pods.worker_phase(pod)
        if phase in _UNTOLD and granted.worker.id in said.left:
            left_s = now_s
        if phase is WorkerPhase.PENDING and not (pod.get("spec") or {}).get("nodeName"):
            unplaced_s = now_s
        if phase is not WorkerPhase.ENDED and granted.worker.id in said.leaving:
            phase = WorkerPhase.LEAVING
        created_s = seconds(pod["metadata"].get("creationTimestamp")) or 0.0
    else:
        phase = WorkerPhase.ENDED if granted.node_ended else WorkerPhase.GRANTED
        created_s = 0.0
    done_s = granted.done_s or (pods.done_s(pod) if pod is not None else None)
    return Worker(
        id=granted.worker.id,
        node=granted.worker.node,
        gpus=granted.worker.gpus,
        phase=phase,
        address=pods.address(pod) if pod else "",
        since_s=max(granted.since_s, created_s),
        done_s=done_s or 0.0,
        left_s=left_s,
        unplaced_s=unplaced_s,
    )

"""The training jobs in a Workflow's document: where each stands, what was granted to it, and which gates are open.

In: a raw Workflow as its engine left it. Out: one ``JobNodes`` per training step, values only; pods are matched to it
in ``standing.py``. Nodes are known by the template they came from and by their chain of boundaries, never by their
position in a name, so a job may be a whole Workflow or one step of a user's own.
"""

from __future__ import annotations

import json
import math
import textwrap
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from itertools import takewhile

from scheduler_core.errors import InvalidValue
from scheduler_core.model.job import WorkerFailure
from scheduler_core.model.plan import NewWorker
from voda_flows.control.request import Asked
from voda_flows.control.service import Account, Spent, account_of, waits_of
from voda_flows.control.steps import strange_names, twice
from voda_flows.objects import NODE_ENDED, Object, seconds
from voda_flows.wire import read_gate_workers
from voda_flows.workflows.packed import ELSEWHERE
from voda_flows.workflows.tree import SegmentNodes, Tree, is_grant, parameters, tree

#: Argo moves a status of more than 1 MB out of sight; above this a job is not made to grow any further.
STATUS_LIMIT_BYTES = 600_000
#: Argo ends a Workflow at 100 nested templates; a growth nests one, a segment two.
DEPTH_LIMIT = 80
#: Characters of a failed worker's message that are told on.
_WHY = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Granted:
    """A worker in a gate's answer.

    Attributes:
        worker: The worker.
        since_s: When it was granted.
        node: Id of its node in the Workflow, empty until there is one.
        node_ended: Whether that node has ended.
        done_s: When it ended well, None where it did not.
    """

    worker: NewWorker
    since_s: float
    node: str = ""
    node_ended: bool = False
    done_s: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class JobNodes:
    """What a Workflow's nodes say about one of its jobs.

    Attributes:
        asked: The job's parameters.
        fault: Why they cannot be served whatever they are (a job-name given twice), empty otherwise.
        root: Id of the job's own node.
        segment: Number of the current segment.
        gate: Id of its start gate, empty when there is none yet.
        gate_open: Whether that gate waits for an answer.
        message: What stands on that gate.
        granted_s: When that gate was answered with a grant, None before.
        grow_gate: Id of the grow gate that waits for an answer, empty when none does.
        workers: Every worker granted in the current segment, by number.
        driver: Id of the current segment's driver's node while it has not ended, else empty.
        checkpoint: Id of the node of a try of its checkpoint step that has not begun to run, else empty.
        driver_ended: Whether the current segment's driver has ended.
        driver_ended_s: When, None before.
        started_s: First grant of any segment.
        retries: Segments in a row, up to the last one, that ended without a new checkpoint.
        account: GPU time and waiting of all segments.
        failures: Workers of all segments that ended before their driver and not well, in order of their end.
        num_segments: How many segments there have been.
        status_bytes: Size of the Workflow's status.
        depth: How deep its deepest node is nested.
        held: Whether the Workflow was suspended or told to stop: its gates are not to be answered.
    """

    asked: Asked
    fault: str = ""
    root: str
    segment: int = 0
    gate: str = ""
    gate_open: bool = False
    message: str = ""
    granted_s: float | None = None
    grow_gate: str = ""
    workers: tuple[Granted, ...] = ()
    driver: str = ""
    checkpoint: str = ""
    driver_ended: bool = False
    driver_ended_s: float | None = None
    started_s: float | None = None
    retries: int = 0
    account: Account = Account()
    failures: tuple[WorkerFailure, ...] = ()
    num_segments: int = 0
    status_bytes: int = 0
    depth: int = 0
    held: bool = False

    @property
    def id(self) -> str:
        """The job's identity."""
        return f"{self.asked.workflow_uid}/{self.asked.name}"

    def is_spent(self, segments_limit: int) -> bool:
        """Whether what Argo allows one Workflow is nearly used up."""
        return self.num_segments >= segments_limit or self.status_bytes > STATUS_LIMIT_BYTES or self.depth > DEPTH_LIMIT


def find_jobs(workflow: Object) -> list[JobNodes]:
    """Every live training job of a Workflow, in order of its start.

    Args:
        workflow: Its raw document.

    Returns:
        The jobs that have not ended; none where the Workflow has ended or is being deleted.

    Raises:
        InvalidValue: Its nodes cannot be read (they are stored elsewhere, or packed in a way that is not known).
    """
    status = workflow.get("status") or {}
    if status.get("phase") in NODE_ENDED or "deletionTimestamp" in workflow["metadata"]:
        return []
    if status.get(ELSEWHERE):
        raise InvalidValue(
            f"workflow {workflow['metadata']['name']!r}: expected its nodes in its status, they are offloaded to a "
            "database; end the Workflow and submit the rest of it as another"
        )
    nodes = tree(workflow)
    live = [node_id for node_id in nodes.roots if nodes.nodes[node_id].get("phase") not in NODE_ENDED]
    if not live:
        return []
    size = len(json.dumps({**status, "nodes": nodes.nodes}, separators=(",", ":")))
    found, names = [], set[str]()
    for root in live:
        job = _job_nodes(nodes, root, size)
        found.append(_with_fault(job, twice(job.asked.name)) if job.asked.name in names else job)
        names.add(job.asked.name)
    return found


def _with_fault(job: JobNodes, fault: str) -> JobNodes:
    """The second job of a name, set apart by its node so that its refusal does not hit the first."""
    parameters_apart = {**job.asked.parameters, "job-name": f"{job.asked.name}@{job.root}"}
    return replace(job, asked=replace(job.asked, parameters=parameters_apart), fault=fault)


def _job_nodes(nodes: Tree, root: str, status_bytes: int) -> JobNodes:
    segments = nodes.segments(root)
    grants = [gate for segment in segments for gate in segment.of("gate") if is_grant(gate)]
    workers = [node for segment in segments for node in segment.of("worker") if node.get("type") == "Pod"]
    whole = JobNodes(
        asked=_asked(nodes, root, started=bool(grants)),
        root=root,
        started_s=min((_end_s(gate) for gate in grants), default=None),
        retries=_retries(segments),
        account=account_of(waits_of(segments), [_spent(node) for node in workers]),
        failures=_failures(segments),
        num_segments=len({segment.number for segment in segments}),
        status_bytes=status_bytes,
        depth=max(nodes.depth(node["id"]) for node in [nodes.nodes[root], *nodes.within(root)]),
        held=_is_held(nodes.workflow),
    )
    return _with_segment(whole, segments[-1]) if segments else whole


def _with_segment(job: JobNodes, segment: SegmentNodes) -> JobNodes:
    """The job with what its current segment says."""
    gate = next(iter(segment.of("gate")), {})
    grow_gates = segment.of("grow-gate")
    driver_ends = [_end_s(node) for node in segment.of("driver") if node.get("phase") in NODE_ENDED]
    answered = [one for one in (gate, *grow_gates) if one.get("phase") == "Succeeded"]
    node_by_worker = {parameters(node).get("id") or "": node for node in segment.of("worker")}
    return replace(
        job,
        segment=segment.number,
        gate=gate.get("id", ""),
        gate_open=_is_open(gate),
        message=gate.get("message") or "",
        granted_s=_end_s(gate) if is_grant(gate) else None,
        grow_gate=next((one["id"] for one in grow_gates if _is_open(one)), ""),
        workers=_granted(answered, node_by_worker) if is_grant(gate) else (),
        driver=next((node["id"] for node in segment.of("driver") if node.get("phase") not in NODE_ENDED), ""),
        checkpoint=next((node["id"] for node in segment.of("checkpoint") if _waits_to_run(node)), ""),
        driver_ended=bool(driver_ends),
        driver_ended_s=max(driver_ends, default=None),
    )


def _granted(gates: Iterable[Object], node_by_worker: Mapping[str, Object]) -> tuple[Granted, ...]:
    """The workers in the gates' answers, by number; an answer that cannot be read grants none."""
    found = {}
    for gate in gates:
        try:
            workers = read_gate_workers(parameters(gate, "outputs").get("workers") or "[]")
        except InvalidValue:
            continue
        for worker in workers:
            node = node_by_worker.get(worker.id, {})
            found[worker.id] = Granted(
                worker=worker,
                since_s=_end_s(gate),
                node=node.get("id", ""),
                node_ended=node.get("phase") in NODE_ENDED,
                done_s=_end_s(node) if node.get("phase") == "Succeeded" else None,
            )
    return tuple(sorted(found.values(), key=lambda one: int(one.worker.id.removeprefix("w"))))


def _asked(nodes: Tree, root: str, *, started: bool) -> Asked:
    workflow, node = nodes.workflow, nodes.nodes[root]
    metadata, spec = workflow["metadata"], workflow.get("spec") or {}
    given = {**strange_names(spec), **parameters(node)}
    given.pop("segment", None)
    return Asked(
        workflow_uid=metadata["uid"],
        namespace=metadata.get("namespace") or "default",
        workflow=metadata["name"],
        parameters=given,
        submitted_s=seconds(node.get("startedAt")) or 0.0,
        parallelism=spec.get("parallelism"),
        started=started,
    )


def _retries(segments: Iterable[SegmentNodes]) -> int:
    """How many of the last checkpoint steps found nothing new."""
    tries = [node for segment in segments for node in segment.of("checkpoint") if node.get("type") != "Retry"]
    steps = [node for node in tries if node.get("phase") == "Succeeded"]  # a lost one has its output's default
    states = [state for node in steps if (state := parameters(node, "outputs").get("state"))]
    return sum(1 for _ in takewhile(lambda state: state == "lost", reversed(states)))


def _spent(node: Object) -> Spent:
    gpus = parameters(node).get("gpus") or "1"
    start_s = seconds(node.get("startedAt")) or 0.0
    return Spent(gpus=int(gpus) if gpus.isdigit() else 1, start_s=start_s, end_s=seconds(node.get("finishedAt")))


def _failures(segments: Iterable[SegmentNodes]) -> tuple[WorkerFailure, ...]:
    """Workers that failed by themselves: what ends with its driver, or after it, is no failure of a worker."""
    found = []
    for segment in segments:
        driver_ends = [_end_s(node) for node in segment.of("driver") if node.get("phase") in NODE_ENDED]
        before_s = min(driver_ends, default=math.inf)
        found += [
            WorkerFailure(
                worker=parameters(node).get("id") or "",
                node=parameters(node).get("node") or "",
                started_s=seconds(node.get("startedAt")) or 0.0,
                ended_s=_end_s(node),
                why=textwrap.shorten(node.get("message") or "", _WHY, placeholder=" ..."),
            )
            for node in segment.of("worker")
            if node.get("phase") in ("Failed", "Error") and _end_s(node) <= before_s
        ]
    return tuple(sorted(found, key=lambda one: (one.ended_s, one.worker)))


def _waits_to_run(node: Object) -> bool:
    return node.get("type") == "Pod" and node.get("phase") == "Pending"


def _is_open(gate: Object) -> bool:
    return gate.get("phase") in ("Running", "Pending")


def _is_held(workflow: Object) -> bool:
    spec = workflow.get("spec") or {}
    return bool(spec.get("suspend") or spec.get("shutdown"))


def _end_s(node: Object) -> float:
    return seconds(node.get("finishedAt")) or seconds(node.get("startedAt")) or 0.0

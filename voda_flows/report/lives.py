"""A job's life as its Workflow and pods tell it: queued, granted, held GPUs, stopped, granted again, ended.

In: raw objects. Out: frozen values. ``voda list`` and ``get`` show the latest segment, the report shows all of them.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeGuard

from scheduler_core.errors import InvalidValue
from voda_flows.objects import WORKFLOW_ENDED, Object, phase_of, seconds
from voda_flows.report.progress import UNITS_PER_EPOCH, Kept, reached
from voda_flows.wire import read_gate_workers
from voda_flows.workflows.tree import SegmentNodes, Tree, is_grant, parameters, tree


@dataclass(frozen=True, slots=True, kw_only=True)
class Holding:
    """A worker pod's hold on GPUs.

    Attributes:
        worker: Worker id within the segment.
        node: Name of its node.
        slots: Indexes of the node's slots, empty where nobody wrote them down.
        gpus: How many GPUs.
        start_s: When the pod was made, seconds since the epoch.
        end_s: When it ended, None while it holds them.
        phase: The pod's phase as Argo has it.
        pod: Name of the pod, empty before it was seen.
    """

    worker: str
    node: str
    slots: tuple[int, ...]
    gpus: int
    start_s: float
    end_s: float | None
    phase: str
    pod: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Segment:
    """One life between two checkpoints.

    Attributes:
        number: From 0.
        queued_s: When it began to wait.
        granted_s: When it was given GPUs, None while it waits.
        granted: How many GPUs by node it was given then.
        ended_s: When its checkpoint step ended, None before.
        outcome: ``done``, ``resize`` or ``lost`` as the checkpoint step said, ``failed``, empty before.
        holdings: Its workers, in order of start.
        driver: Name of its driver pod, empty before it was seen.
        driver_ended_s: When its driver ended, None before.
        trains: Whether the driver was given an allocation document.
        size: Workers in the newest document.
        message: What its gate says of its place in the queue, empty once granted.
        record: What its checkpoint step told of it (``runtime/segment_record.py``), empty before.
    """

    number: int
    queued_s: float
    granted_s: float | None = None
    granted: Mapping[str, int] = field(default_factory=dict)
    ended_s: float | None = None
    outcome: str = ""
    holdings: tuple[Holding, ...] = ()
    driver: str = ""
    driver_ended_s: float | None = None
    trains: bool = False
    size: int = 0
    message: str = ""
    record: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class JobLife:
    """A job from its submission on.

    Attributes:
        id: ``<workflow uid>/<job-name>``.
        namespace: Namespace of its Workflow.
        workflow: Name of its Workflow.
        name: Job name within the Workflow.
        label: What people call it: ``<workflow>``, or ``<workflow>/<job-name>`` where there are several.
        phase: ``Queued``, ``Starting``, ``Running``, ``Stopping``, ``Succeeded``, ``Failed`` or ``Error``.
        message: Why, as Argo or the queue says.
        asked: The job's inputs.
        submitted_s: When it reached the queue.
        ended_s: When it ended, None before.
        done: Hundredths of an epoch done, the most that any driver came to.
        total: Hundredths of an epoch in all, 0 when unknown.
        segments: By number.
        is_suspended: Whether nothing new of its Workflow is started until ``voda resume``.
        is_known: Whether how far it is can be told now: not where a driver may have shown more than is certain.
    """

    id: str
    namespace: str
    workflow: str
    name: str
    label: str
    phase: str
    message: str
    asked: Mapping[str, str]
    submitted_s: float
    ended_s: float | None
    done: int
    total: int
    segments: tuple[Segment, ...]
    is_suspended: bool = False
    is_known: bool = True

    @property
    def status(self) -> str:
        """Its phase, and whether it is suspended, as Argo's own list shows it."""
        return f"{self.phase} (suspended)" if self.is_suspended else self.phase

    @property
    def holding(self) -> tuple[Holding, ...]:
        """What it holds now."""
        return tuple(held for segment in self.segments for held in segment.holdings if held.end_s is None)

    @property
    def gpus(self) -> int:
        """GPUs it holds now."""
        return sum(held.gpus for held in self.holding)

    @property
    def size(self) -> int:
        """Workers in the newest allocation document of the current segment."""
        return self.segments[-1].size if self.segments else 0

    @property
    def fraction(self) -> float:
        """Part of its epochs that is done, 0 to 1; it never goes back."""
        if self.phase == "Succeeded":
            return 1.0
        return min(1.0, self.done / self.total) if self.total else 0.0

    @property
    def share(self) -> str:
        """The same for people: ``46%``, and ``-`` while nobody knows."""
        return f"{self.fraction:.0%}" if self.is_known or self.phase == "Succeeded" else "-"

    @property
    def has_of_asked(self) -> str:
        """GPUs it has of those it asked for: ``3/1-4``, ``2/2``."""
        return f"{self.gpus}/{self.asks}"

    @property
    def asks(self) -> str:
        """GPUs it asked for: ``1-4``, ``2``."""
        low, high = self.asked.get("min-gpus", "1"), self.asked.get("max-gpus", "1")
        return low if low == high else f"{low}-{high}"

    @property
    def queued_s(self) -> float:
        """When its latest wait began."""
        return self.segments[-1].queued_s if self.segments else self.submitted_s

    def waits(self, now_s: float) -> tuple[tuple[float, float], ...]:
        """From when to when it waited at its gates, up to now; from its submission on before there was one."""
        ends_s = now_s if self.ended_s is None else self.ended_s
        if not self.segments:
            return ((self.submitted_s, ends_s),)
        return tuple((segment.queued_s, segment.granted_s or ends_s) for segment in self.segments)

    def waited_s(self, now_s: float) -> float:
        """Seconds at its gates up to now, all segments together."""
        return sum(to_s - from_s for from_s, to_s in self.waits(now_s))


def is_suspended(workflow: Object) -> bool:
    """Whether nothing new of a Workflow is started until somebody resumes it."""
    return workflow["spec"].get("suspend") is True and phase_of(workflow) not in WORKFLOW_ENDED


def lives(workflow: Object, pods: Iterable[Object]) -> tuple[JobLife, ...]:
    """The jobs of a Workflow.

    Args:
        workflow: The Workflow with its status.
        pods: Its pods (others are ignored).

    Returns:
        One life per job that has reached the queue, in order of submission.
    """
    nodes = tree(workflow)
    by_node = {pod["metadata"].get("annotations", {}).get("workflows.argoproj.io/node-id", ""): pod for pod in pods}
    return tuple(_life(nodes, nodes.nodes[root_id], by_node) for root_id in nodes.roots)


def _life(nodes: Tree, root: Object, pods: Mapping[str, Object]) -> JobLife:
    """One job."""
    asked, inside = parameters(root), nodes.within(root["id"])
    segments = _segments(nodes, root, pods)
    name, meta = asked.get("job-name", "train"), nodes.workflow["metadata"]
    of_job = nodes.segments(root["id"])
    # Segments lie inside each other: two that began in the same second keep their order.
    drivers = [driver for segment in of_job for driver in segment.of("driver")]
    found = reached(drivers, epochs_of(asked), dict(_told(of_job)))
    phase = _phase(nodes.workflow, root, segments)
    whole = round(epochs_of(asked) * UNITS_PER_EPOCH) if phase == "Succeeded" else 0
    done, total = found or (whole, whole)
    return JobLife(
        id=f"{meta['uid']}/{name}",
        namespace=meta.get("namespace", "default"),
        workflow=meta["name"],
        name=name,
        label=meta["name"] if len(nodes.roots) == 1 else f"{meta['name']}/{name}",
        phase=phase,
        message=_message(nodes.workflow, root, segments, inside),
        asked=asked,
        submitted_s=seconds(root.get("startedAt")) or 0.0,
        ended_s=_ended_s(nodes.workflow, root, phase),
        done=done,
        total=total,
        segments=segments,
        is_suspended=is_suspended(nodes.workflow),
        is_known=found is not None,
    )


def _told(segments: Iterable[SegmentNodes]) -> Iterator[tuple[str, Kept]]:
    """What checkpoint steps told of how far their segments came, by the id of the driver's node."""
    for segment in segments:
        record = _object(_record(segment.of("checkpoint")))
        end, progress = record.get("end"), record.get("progress")
        epoch = end.get("epoch") if isinstance(end, dict) else None
        began, furthest = progress if _are_units(progress) else (None, None)
        units = round(epoch * UNITS_PER_EPOCH) if isinstance(epoch, int | float) else None
        for driver in segment.of("driver"):
            yield driver["id"], Kept(began=began, furthest=furthest, end=units)


def _are_units(progress: object) -> TypeGuard[list[int]]:
    """Whether this is where a segment began, and its furthest point."""
    return (
        isinstance(progress, list)
        and len(progress) == 2
        and all(type(units) is int for units in progress)
        and 0 <= progress[0] <= progress[1]
    )


def _record(checkpoints: Iterable[Object]) -> str:
    """What a checkpoint step told of its segment, empty where it has not."""
    return next((text for node in checkpoints if (text := parameters(node, "outputs").get("record", ""))), "")


def _segments(nodes: Tree, root: Object, pods: Mapping[str, Object]) -> tuple[Segment, ...]:
    """The segments of a job; a gate that was answered with nothing and asked anew belongs to the same segment."""
    found: dict[int, list[SegmentNodes]] = {}
    for segment in nodes.segments(root["id"]):
        if segment.of("gate"):
            found.setdefault(segment.number, []).append(segment)
    return tuple(_segment(several, pods) for _, several in sorted(found.items()))


def _segment(several: Sequence[SegmentNodes], pods: Mapping[str, Object]) -> Segment:
    """One segment from its gates and the nodes of its last train step."""
    gates = [gate for segment in several for gate in segment.of("gate")]
    granted = [gate for gate in gates if is_grant(gate)]
    own = next((segment for segment in reversed(several) if segment.of("train")), several[-1])
    driving = next(iter(own.of("driver")), {})
    driver = pods.get(driving.get("id", ""), {})
    document = _document(driver)
    checkpoints = own.of("checkpoint")
    checkpoint = next(iter(checkpoints), {})
    return Segment(
        number=own.number,
        queued_s=seconds(gates[0].get("startedAt")) or 0.0,
        granted_s=seconds(granted[0].get("finishedAt")) if granted else None,
        granted=_given(granted[0]) if granted else {},
        ended_s=seconds(checkpoint.get("finishedAt")),
        outcome=_outcome(checkpoint),
        holdings=tuple(
            _holding(node, pods.get(node["id"], {})) for node in own.of("worker") if node.get("type") == "Pod"
        ),
        driver=driver.get("metadata", {}).get("name", ""),
        driver_ended_s=seconds(driving.get("finishedAt")),
        trains=bool(document),
        size=len(document.get("workers", ())),
        message="" if granted else gates[-1].get("message", ""),
        record=_record(checkpoints),
    )


def _given(gate: Object) -> dict[str, int]:
    """GPUs by node in a gate's answer; none where it cannot be read."""
    found: dict[str, int] = {}
    try:
        workers = read_gate_workers(parameters(gate, "outputs").get("workers") or "[]")
    except InvalidValue:
        return found
    for worker in workers:
        found[worker.node] = found.get(worker.node, 0) + worker.gpus
    return found


def _holding(node: Object, pod: Object) -> Holding:
    """A worker's hold: from its node, and from its pod where that is still there."""
    given = parameters(node)
    slots = pod.get("metadata", {}).get("annotations", {}).get("voda.dev/slots", "")
    return Holding(
        worker=given.get("id", ""),
        node=given.get("node", ""),
        slots=tuple(int(slot) for slot in slots.split(",") if slot.strip()),
        gpus=int(given.get("gpus", "1") or 1),
        start_s=seconds(node.get("startedAt")) or 0.0,
        end_s=seconds(node.get("finishedAt")),
        phase=node.get("phase", ""),
        pod=pod.get("metadata", {}).get("name", ""),
    )


def _phase(workflow: Object, root: Object, segments: tuple[Segment, ...]) -> str:
    """Where the job stands; nodes of a stopped Workflow may stay Running, so the Workflow is asked first."""
    for ended in (root.get("phase", ""), workflow.get("status", {}).get("phase", "")):
        if ended in WORKFLOW_ENDED:
            return str(ended)
    if not segments or segments[-1].granted_s is None:
        return "Queued"
    last = segments[-1]
    if last.ended_s is not None:
        return "Stopping"
    return "Running" if last.trains else "Starting"


def _message(workflow: Object, root: Object, segments: tuple[Segment, ...], inside: Iterable[Object]) -> str:
    """The queue's word while the job waits, else that of the pod that failed it, else Argo's."""
    waiting = segments[-1].message if segments else ""
    failed = [node for node in inside if _has_failed(node) and node.get("message")] if _has_failed(root) else []
    if failed and not waiting:
        # The last pod of a failed job is what failed it: pods that failed before were made up for.
        last = max(failed, key=lambda node: seconds(node.get("finishedAt")) or 0.0)
        return f"{last['displayName']}: {last['message']}"
    return str(waiting or root.get("message") or workflow.get("status", {}).get("message") or "")


def _has_failed(node: Object) -> bool:
    """Whether a pod, or a job's root, has failed."""
    return node.get("phase") in ("Failed", "Error") and (node.get("type") == "Pod" or node.get("templateName") == "job")


def _ended_s(workflow: Object, root: Object, phase: str) -> float | None:
    """When the job ended."""
    if phase not in WORKFLOW_ENDED:
        return None
    return seconds(root.get("finishedAt")) or seconds(workflow.get("status", {}).get("finishedAt"))


def _outcome(checkpoint: Object) -> str:
    """What the checkpoint step decided."""
    if checkpoint.get("phase") in ("Failed", "Error"):
        return "failed"
    return parameters(checkpoint, "outputs").get("state", "") if checkpoint.get("phase") == "Succeeded" else ""


def _document(driver: Object) -> Object:
    """The allocation document on a driver pod, empty before the first."""
    return _object(driver.get("metadata", {}).get("annotations", {}).get("voda.dev/allocation", ""))


def _object(text: str) -> Object:
    """The JSON object in a text, empty where there is none."""
    try:
        found = json.loads(text) if text else {}
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def epochs_of(asked: Mapping[str, str]) -> float:
    """Epochs that a job asked for, 0 where it says none that is a number."""
    text = asked.get("epochs", "1")
    return float(text) if text.isdecimal() else 0.0


def _is(node: Object, template: str) -> bool:
    """Whether a node was made from a template."""
    return bool(node.get("templateName") == template)

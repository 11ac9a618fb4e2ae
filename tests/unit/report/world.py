"""Builders for hand-made worlds: a job's Workflow as an engine would leave it, its pods and its drivers' files."""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace

from voda_flows.objects import Object
from voda_flows.report.files import SegmentFiles
from voda_flows.report.times import text
from voda_flows.runtime.segment_record import Told, record_text

START_S = 1_800_000_000.0
UID = "11111111-2222-3333-4444-555555555555"


def at(after_s: float) -> str:
    """A time in an object, seconds after the start."""
    whole = text(START_S + after_s)
    return f"{whole[:-1]}.{round(after_s % 1 * 1e6):06d}Z"


def node(name: str, gpus: int, **labels: str) -> Object:
    """A Node."""
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": labels},
        "status": {"allocatable": {"nvidia.com/gpu": str(gpus)}},
    }


@dataclass(kw_only=True)
class Building:
    """A job under construction; every method adds what happened next.

    Times are seconds after ``START_S``.
    """

    name: str
    submitted: float = 0.0
    asked: dict[str, str] = field(default_factory=dict)
    uid: str = UID
    root: str = ""
    nodes: dict[str, Object] = field(default_factory=dict)
    pods: dict[str, Object] = field(default_factory=dict)
    phase: str = "Running"
    finished: float | None = None
    files: dict[int, SegmentFiles] = field(default_factory=dict)
    checkpoints: dict[str, int] = field(default_factory=dict)
    segment: int = 0
    outer: str = ""
    train: str = ""

    def __post_init__(self) -> None:
        """The job's own node and its first gate."""
        self.root = self.root or self.name
        defaults = {"command": "python -m workloads.digits", "min-gpus": "1", "max-gpus": "4", "job-name": "train"}
        self.asked = {**defaults, "queue": "default", "priority": "normal", "epochs": "10", **self.asked}
        self.add(self.root, "Steps", "job", "", self.submitted, inputs=self.asked)
        self.queue(self.root, "segment", self.submitted)

    def add(self, name: str, kind: str, template: str, boundary: str, start: float, **more: object) -> Object:
        """A node of the Workflow."""
        made: Object = {
            "id": name,
            "name": name,
            "displayName": name.rpartition(".")[2],
            "type": kind,
            "templateName": template,
            "phase": "Running",
            "startedAt": at(start),
        }
        if boundary:
            made["boundaryID"] = boundary
        inputs = more.pop("inputs", None)
        if isinstance(inputs, dict):
            made["inputs"] = {"parameters": [{"name": key, "value": value} for key, value in inputs.items()]}
        self.nodes[name] = {**made, **more}
        return self.nodes[name]

    def end(self, name: str, when: float, phase: str = "Succeeded", **outputs: str) -> None:
        """The end of a node."""
        parameters = [{"name": key, "value": value} for key, value in outputs.items()]
        self.nodes[name] |= {"phase": phase, "finishedAt": at(when)}
        if parameters:
            self.nodes[name]["outputs"] = {"parameters": parameters}

    def queue(self, boundary: str, step: str, when: float) -> None:
        """A segment begins to wait at its gate."""
        self.outer = f"{boundary}.{step}"
        self.add(self.outer, "Steps", "segment", boundary, when, inputs={**self.asked, "segment": str(self.segment)})
        self.add(f"{self.outer}.gate", "Suspend", "gate", self.outer, when)

    def say(self, message: str) -> Building:
        """What the scheduler writes on the gate."""
        self.nodes[f"{self.outer}.gate"]["message"] = message
        return self

    def resume(self, when: float) -> Building:
        """Somebody completes the gate with its defaults: a new gate in the same segment."""
        self.end(f"{self.outer}.gate", when, grant="none", workers="[]")
        self.queue(self.outer, "requeue", when)
        return self

    def grant(self, when: float, *workers: tuple[str, str]) -> Building:
        """The gate is answered; driver and workers are made."""
        given = [{"id": worker, "node": on, "gpus": "1"} for worker, on in workers]
        self.end(f"{self.outer}.gate", when, grant="given", workers=json.dumps(given))
        self.train = f"{self.outer}.train"
        self.add(self.train, "Steps", "train", self.outer, when, inputs={"segment": str(self.segment)})
        self.add(f"{self.train}.driver", "Pod", "driver", self.train, when)
        self.pod(f"{self.train}.driver", "driver")
        self.add(f"{self.train}.grow", "Steps", "grow", self.train, when)
        self.add(f"{self.train}.grow.gate", "Suspend", "grow-gate", f"{self.train}.grow", when)
        for worker, on in workers:
            self.worker(self.train, worker, on, when)
        return self

    def grow(self, when: float, worker: str, on: str, slot: int | None = None) -> Building:
        """The grow gate is answered."""
        self.end(f"{self.train}.grow.gate", when, workers="[]", more="yes")
        self.worker(f"{self.train}.grow", worker, on, when, slot)
        return self

    def worker(self, boundary: str, worker: str, on: str, when: float, slot: int | None = None) -> None:
        """A worker's pod."""
        name = f"{boundary}.worker({worker})"
        self.add(name, "Pod", "worker", boundary, when, inputs={"id": worker, "node": on, "gpus": "1"})
        self.pod(name, "worker", worker=worker, on=on, slot=slot)

    def pod(self, node_name: str, role: str, *, worker: str = "", on: str = "", slot: int | None = None) -> None:
        """A pod of a node."""
        name = f"{self.name}-{role}-{self.segment}{worker}"
        labels = {
            "workflows.argoproj.io/workflow": self.name,
            "voda.dev/role": role,
            "voda.dev/segment": str(self.segment),
        }
        if worker:
            labels["voda.dev/worker"] = worker
        labels["voda.dev/job"] = self.asked["job-name"]
        annotations = {"workflows.argoproj.io/node-id": node_name, "workflows.argoproj.io/node-name": node_name}
        if slot is not None:
            annotations["voda.dev/slots"] = str(slot)
        self.pods[name] = {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": name, "namespace": "default", "labels": labels, "annotations": annotations},
            "spec": {"nodeName": on} if on else {},
            "status": {"phase": "Running"},
        }

    def publish(self, *workers: str) -> Building:
        """The driver is given an allocation document."""
        document = json.dumps({"version": 1, "workers": [{"id": worker} for worker in workers], "stop": None})
        driver = self.pods[f"{self.name}-driver-{self.segment}"]
        driver["metadata"]["annotations"]["voda.dev/allocation"] = document
        return self

    def progress(self, done: int, total: int) -> Building:
        """The driver says how far it is."""
        self.nodes[f"{self.train}.driver"]["progress"] = f"{done}/{total}"
        return self

    def leave(self, when: float, *workers: str) -> Building:
        """Workers' pods end."""
        for name, made in list(self.nodes.items()):
            mine = name.startswith(self.train) and made["templateName"] == "worker" and made["phase"] == "Running"
            if mine and any(f"({worker})" in name for worker in workers):
                self.end(name, when)
                pod = next(
                    p
                    for p in self.pods.values()
                    if p["metadata"]["annotations"]["workflows.argoproj.io/node-id"] == name
                )
                pod["status"]["phase"] = "Succeeded"
        return self

    def stop(self, when: float, state: str, *workers: str) -> Building:
        """The segment ends: driver, workers, then the checkpoint step decides ``done``, ``resize`` or ``lost``."""
        self.leave(when, *workers)
        self.end(f"{self.train}.driver", when)
        self.pods[f"{self.name}-driver-{self.segment}"]["status"]["phase"] = "Succeeded"
        checkpoint = f"{self.train}.checkpoint"
        self.add(checkpoint, "Pod", "checkpoint", self.train, when)
        self.end(checkpoint, when + 0.5, state=state)
        self.checkpoints[checkpoint] = self.segment
        if state == "done":
            self.finish(when + 1)
        else:
            self.segment += 1
            self.queue(self.train, "resize", when + 1)
        return self

    def finish(self, when: float, phase: str = "Succeeded") -> Building:
        """The job ends."""
        self.end(self.root, when, phase)
        self.phase, self.finished = phase, when
        return self

    def wrote(self, segment: int, *resizes: Object, rows: tuple[Object, ...] = ()) -> Building:
        """What a driver left beside the checkpoints."""
        self.files[segment] = replace(self.files.get(segment, SegmentFiles()), rows=rows, resizes=resizes)
        return self

    def judged(self, segment: int, step: int, *, state: str = "resize", counted: bool = False) -> Building:
        """What the checkpoint step left."""
        verdict = {"state": state, "step": step, "counted": counted, "message": ""}
        self.files[segment] = replace(self.files.get(segment, SegmentFiles()), verdict=verdict)
        return self

    def told(self) -> dict[str, Object]:
        """The nodes, with what their checkpoint steps tell of their segments."""
        nodes = dict(self.nodes)
        for name, segment in self.checkpoints.items():
            left = self.files.get(segment, SegmentFiles())
            told = Told(segment=segment, end=left.end, verdict=left.verdict, resizes=left.resizes, rows=left.rows)
            said = [*nodes[name]["outputs"]["parameters"], {"name": "record", "value": record_text(told)}]
            nodes[name] = {**nodes[name], "outputs": {"parameters": said}}
        return nodes

    def workflow(self) -> Object:
        """The Workflow as it stands."""
        status: Object = {"phase": self.phase, "nodes": self.told()}
        if self.finished is not None:
            status["finishedAt"] = at(self.finished)
        meta = {"name": self.name, "namespace": "default", "uid": self.uid, "creationTimestamp": at(self.submitted)}
        arguments = [{"name": key, "value": value} for key, value in self.asked.items()]
        return {
            "apiVersion": "argoproj.io/v1alpha1",
            "kind": "Workflow",
            "metadata": meta,
            "spec": {
                "workflowTemplateRef": {"name": "voda-elastic-job"},
                "arguments": {"parameters": arguments},
            },
            "status": status,
        }


def resize(kind: str, before: int, after: int, when: float, *, still: float = 0.0, lost: int = 0) -> Object:
    """A driver's resize record."""
    return {
        "generation": 1,
        "kind": kind,
        "from_size": before,
        "to_size": after,
        "document_s": START_S + when - still,
        "last_step_s": START_S + when - still if before else None,
        "first_step_s": START_S + when if kind != "stop" else None,
        "still_s": still if before and kind != "stop" else None,
        "steps_lost": lost,
    }


def row(when: float, epoch: int, step: int, *, segment: int = 0, **metrics: float) -> Object:
    """A report row."""
    own: Object = {key: metrics.pop(key) for key in ("loss", "validation_loss") if key in metrics}
    return {
        "kind": "epoch",
        "time_s": START_S + when,
        "segment": segment,
        "epoch": epoch,
        "step": step,
        **own,
        "metrics": metrics,
    }

"""What the scheduler reads from Workflows as the real Argo leaves them: each state of a recorded elastic life.

The record names nodes, types, phases and boundaries; what else a node carries (template, inputs, outputs) is put back
here from the names, so that shape and nesting are the real controller's.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from voda_flows.control.jobs import find_jobs
from voda_flows.objects import Object
from voda_flows.wire import gate_workers_text, read_gate_workers

GOLDEN = Path(__file__).parent / "argo_golden" / "elastic-job.json"
STEPS = json.loads(GOLDEN.read_text())["steps"]
WORKER = re.compile(r"worker\(\d+:gpus:(?P<gpus>\d+),id:(?P<id>w\d+),node:(?P<node>\w+)\)")
BY_DISPLAY_NAME = {
    "elastic-job": "segment",
    "requeue": "segment",
    "resize": "segment",
    "train": "train",
    "grow": "grow",
    "again": "grow",
    "driver": "driver",
    "checkpoint": "checkpoint",
}


def workflow(step: Object) -> Object:
    """The recorded state as a Workflow object."""
    recorded = {node["name"]: node for node in step["nodes"]}
    nodes = {name: _node(node, recorded) for name, node in recorded.items()}
    return {
        "apiVersion": "argoproj.io/v1alpha1",
        "kind": "Workflow",
        "metadata": {"name": "elastic-job", "namespace": "default", "uid": "u"},
        "spec": {"workflowTemplateRef": {"name": "voda-elastic-job"}},
        "status": {"phase": step["phase"], "nodes": nodes},
    }


def _node(node: Object, recorded: dict[str, Object]) -> Object:
    found: Object = {
        **{key: node[key] for key in ("name", "displayName", "type", "phase")},
        "id": node["name"],
        "boundaryID": node.get("boundary", ""),
        "templateName": _template(node, recorded),
        "startedAt": "2026-11-29T10:00:00Z",
    }
    worker = WORKER.fullmatch(node["displayName"])
    if worker:
        found["inputs"] = _parameters(**worker.groupdict())
    if found["templateName"] == "segment":
        found["inputs"] = _parameters(segment=str(node["name"].count(".resize")), command="x")
    if node["type"] == "Suspend" and node["phase"] == "Succeeded":
        found |= {"outputs": _answer(node, recorded), "finishedAt": "2026-11-29T10:00:05Z"}
    return found


def _template(node: Object, recorded: dict[str, Object]) -> str:
    if node["type"] == "StepGroup":
        return ""
    if node["displayName"] == "gate":
        inside = recorded[node["boundary"]]["displayName"]
        return "grow-gate" if inside in ("grow", "again") else "gate"
    return "worker" if node["displayName"].startswith("worker") else BY_DISPLAY_NAME[node["displayName"]]


def _answer(gate: Object, recorded: dict[str, Object]) -> Object:
    """What a gate was answered with: the workers that came of it."""
    scope = gate["boundary"]
    if _template(gate, recorded) == "gate":
        scope += "[1].train"
    found = [WORKER.fullmatch(node["displayName"]) for node in recorded.values() if node.get("boundary") == scope]
    workers = [match.groupdict() for match in found if match]
    given = scope in recorded and recorded[scope]["phase"] != "Skipped"
    return _parameters(grant="given" if given else "none", workers=json.dumps(workers))


def _parameters(**values: str) -> Object:
    return {"parameters": [{"name": name, "value": value} for name, value in values.items()]}


def state(after: str) -> Object:
    """The one recorded state whose description begins so."""
    (found,) = [step for step in STEPS if step["after"].startswith(after)]
    return workflow(found)


def read(after: str) -> dict[str, Any]:
    """The parts of what the scheduler reads that its decisions depend on."""
    (job,) = find_jobs(state(after))
    return {
        "segment": job.segment,
        "gate_open": job.gate_open,
        "granted": job.granted_s is not None,
        "grow_gate": bool(job.grow_gate),
        "workers": [f"{one.worker.id}@{one.worker.node}" for one in job.workers],
        "driver_ended": job.driver_ended,
    }


QUEUED = {"gate_open": True, "granted": False, "grow_gate": False, "workers": [], "driver_ended": False}
TRAINS = {"gate_open": False, "granted": True, "grow_gate": True, "driver_ended": False}


@pytest.mark.parametrize(
    ("after", "expected"),
    [
        ("submitted", {"segment": 0, **QUEUED}),
        ("argo resume while queued", {"segment": 0, **QUEUED}),
        ("granted: w0, w1 on n0", {"segment": 0, **TRAINS, "workers": ["w0@n0", "w1@n0"]}),
        ("grow gate granted", {"segment": 0, **TRAINS, "workers": ["w0@n0", "w1@n0", "w2@n1"]}),
        ("argo resume while running", {"segment": 0, **TRAINS, "workers": ["w0@n0", "w1@n0", "w2@n1"]}),
        ("stopped for a resize", {"segment": 1, **QUEUED}),
        ("granted: w0 on n1", {"segment": 1, **TRAINS, "workers": ["w0@n1"]}),
        ("driver's pod deleted by force", {"segment": 2, **QUEUED}),
        (
            "argo retry",
            {"segment": 2, **TRAINS, "grow_gate": False, "workers": ["w0@n0"]},
        ),
    ],
)
def test_each_state_of_a_real_life_is_read_right(after: str, expected: dict[str, Any]) -> None:
    """Segment, gates and granted workers come from the nodes' templates and boundaries alone."""
    assert read(after) == expected


@pytest.mark.parametrize("after", ["argo stop", "driver done"])
def test_a_workflow_that_has_ended_has_no_job(after: str) -> None:
    """After a stop, nodes above the pods may stay Running: the Workflow's phase is asked first."""
    assert find_jobs(state(after)) == []


def test_a_gates_answer_reads_as_it_was_written() -> None:
    """The recorded gates were answered in the form that the scheduler writes, but for what workers are called."""
    workers = read_gate_workers('[{"gpus":"1","id":"w0","node":"n0"}]')

    assert gate_workers_text(workers) == '[{"gpus":"1","id":"w0","node":"n0","shown":"w0-on-n0"}]'

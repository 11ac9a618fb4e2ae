"""The shipped template of elastic jobs, its programs replaced by shell scripts: gates, growths, resizes, ends.

In: ``templates/voda-elastic-job.yaml``; nothing of it but commands is changed, and nothing is assumed of its nodes'
names: gates and pods are found by template and role. The scripts stand in for a scheduler and for training.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace

import yaml

from tests.cluster.images import HOST_IMAGE
from tests.cluster.places import REPOSITORY
from tests.contract.two_worlds.play import Case, Notes, Script
from tests.contract.two_worlds.story import life, story
from tests.contract.two_worlds.world import Flow
from voda_flows.objects import Object

NAME = "voda-elastic-job"
ALLOCATION = "voda.dev/allocation"
ROLE = "voda.dev/role"
PROGRAMS = {
    "driver": "echo ready; while :; do case $(cat /podinfo/allocation) in stop|done) exit 0;; fail) exit 1;; esac; "
              "sleep 0.2; done",
    # In the segment that is stopped it ends badly: one that ends well may be shown so, and is not retried then.
    "worker": "trap 'test $VODA_SEGMENT != 2; exit $?' TERM; echo ready; sleep 600 & wait",
    # Segment 1 has trouble with its volume once, which is no verdict; a driver that failed is one.
    "checkpoint": "test $VODA_SEGMENT != 1 || test {{retries}} -ge 1 || exit 3; "
                  "case $VODA_DRIVER_STATUS-$VODA_SEGMENT in Failed-*) exit 1;; Succeeded-0) state=resize;; "
                  "Succeeded-*) state=done;; *) state=lost;; esac; printf $state > {state}",
}  # fmt: skip


def sleeping_template() -> Object:
    """The shipped template whose pods run scripts."""
    template: Object = yaml.safe_load((REPOSITORY / "templates" / f"{NAME}.yaml").read_text())
    for each in template["spec"]["templates"]:
        if each["name"] in PROGRAMS:
            paths = {
                output["name"]: output["valueFrom"]["path"]
                for output in (each.get("outputs") or {}).get("parameters", ())
            }
            program = PROGRAMS[each["name"]].replace("{state}", paths.get("state", ""))
            each["container"] |= {"command": ["sh", "-c", program]}
            each["container"].pop("args", None)
    return template


def elastic_cases() -> list[Case]:
    """A whole life, a job that fails, and two jobs of one Workflow, one after the other."""
    template = sleeping_template()
    alone: Object = {"workflowTemplateRef": {"name": NAME}, "arguments": _parameters()}
    lived = [_case("elastic-life", alone, _life), _case("elastic-failure", alone, _failure)]
    return [replace(case, templates=(template,)) for case in (*lived, _case("elastic-pair", _two_jobs(), _pair))]


def _case(name: str, spec: Object, script: Script) -> Case:
    document = {"apiVersion": "argoproj.io/v1alpha1", "kind": "Workflow", "metadata": {"name": name}, "spec": spec}
    return Case(name=name, document=document, script=script)


def _two_jobs() -> Object:
    """Steps of a user's own around a graph of two jobs."""
    one, two = ({"name": name, "templateRef": {"name": NAME, "template": "job"}, "arguments": _parameters(name)}
                for name in ("one", "two"))  # fmt: skip
    script = {"image": HOST_IMAGE, "command": ["sh", "-c", "test {{inputs.parameters.m}} = Succeeded"]}
    said = {"parameters": [{"name": "m", "value": "{{steps.train.status}}"}]}
    return {
        "entrypoint": "main",
        "templates": [
            {"name": "main", "steps": [[{"name": "prepare", "template": "ok"}], [{"name": "train", "template": "both"}],
                                       [{"name": "evaluate", "template": "evaluate", "arguments": said}]]},
            {"name": "both", "dag": {"tasks": [one, {**two, "depends": "one"}]}},
            {"name": "ok", "container": {"image": HOST_IMAGE, "command": ["true"]}},
            {"name": "evaluate", "inputs": {"parameters": [{"name": "m"}]}, "container": script},
        ],
    }  # fmt: skip


def _parameters(name: str = "train") -> Object:
    values = {"command": "true", "image": HOST_IMAGE, "job-name": name, "max-gpus": "3"}
    return {"parameters": [{"name": key, "value": value} for key, value in values.items()]}


class _Job:
    """A job of a Workflow: the nodes below a name."""

    def __init__(self, flow: Flow, notes: Notes, below: str = "") -> None:
        self.flow, self.notes, self._below = flow, notes, flow.name + below

    def gates(self, template: str) -> list[str]:
        """The names of the open gates of that template."""
        return [gate["name"] for gate in self.flow.gates(template) if gate["name"].startswith(self._below)]

    def pods(self, role: str) -> list[str]:
        """The names of the nodes whose pods are at work in that role."""
        found = {name: pod for name, pod in self.flow.pods.items() if name.startswith(self._below)}
        return [
            name
            for name, pod in found.items()
            if pod["metadata"]["labels"].get(ROLE) == role and self.flow.is_at_work(name)
        ]

    def until(self, what: str, holds: Callable[[], bool]) -> None:
        """Wait, then write down how the nodes are."""
        self.flow.until(holds, what)
        self.notes.add(what, life(self.flow))

    def waits(self, what: str, *, not_at: str = "") -> str:
        """Wait for an open start gate, another than that one; its name."""
        self.until(what, lambda: self.gates("gate") not in ([], [not_at]))
        return self.gates("gate")[0]

    def trains(self, what: str, workers: int, *, gates: int = 1, not_at: str = "") -> str:
        """Wait until a driver and so many workers are at work, and grow gates open, not that one; the name of one."""
        self.until(what, lambda: (len(self.pods("driver")), len(self.pods("worker")), len(self.gates("grow-gate")))
                   == (1, workers, gates) and not_at not in self.gates("grow-gate"))  # fmt: skip
        return next(iter(self.gates("grow-gate")), "")

    def grant(self, *workers: tuple[str, str, str]) -> None:
        """Answer the start gate."""
        self.flow.supply("gate", grant="given", workers=_workers(*workers))

    def tell_driver(self, word: str) -> None:
        """Have the driver end by its annotation, the workers by themselves, the grow gate released."""
        (driver,) = self.pods("driver")
        pod = self.flow.pods[driver]
        self.flow.world.store.merge_patch("Pod", pod["metadata"]["namespace"], pod["metadata"]["name"],
                                          {"metadata": {"annotations": {ALLOCATION: word}}})  # fmt: skip
        self.flow.until(lambda: self.flow.nodes[driver]["phase"] != "Running", f"{driver} to end")
        self.leave()

    def leave(self) -> None:
        """The workers go, the grow gate is released where one is open."""
        workers = self.pods("worker")
        for name in workers:
            self.flow.world.ask_to_end(self.flow.pods[name])
        self.flow.until(lambda: all(self.flow.nodes[name]["phase"] != "Running" for name in workers), "workers to end")
        if self.gates("grow-gate"):
            self.flow.supply("grow-gate", workers="[]", more="no")

    def give_key(self) -> None:
        """The Secret that a job's pods mount."""
        metadata = self.flow.workflow["metadata"]
        name = {"name": f"voda-key-{metadata['uid']}", "namespace": metadata["namespace"]}
        self.flow.world.store.create(
            {"apiVersion": "v1", "kind": "Secret", "metadata": name, "stringData": {"key": "00"}}
        )


def _workers(*rows: tuple[str, str, str]) -> str:
    return json.dumps([{"id": worker, "node": node, "gpus": gpus} for worker, node, gpus in rows])


def _life(flow: Flow, notes: Notes) -> None:
    job = _Job(flow, notes)
    first = job.waits("submitted")
    flow.world.operate("resume", flow.name)
    job.waits("resumed while queued", not_at=first)
    job.give_key()
    job.grant(("w0", "n0", "1"), ("w1", "n0", "1"))
    grow = job.trains("granted", 2)
    flow.supply("grow-gate", workers=_workers(("w2", "n1", "1")), more="yes")
    grow = job.trains("grown", 3, not_at=grow)
    flow.world.operate("resume", flow.name)
    job.trains("resumed while running", 3, not_at=grow)
    job.tell_driver("stop")
    gate = job.waits("stopped for a resize")
    job.grant(("w0", "n1", "1"))
    job.trains("granted on another node", 1)
    flow.world.delete_pod(flow.pods[job.pods("driver")[0]], force=True)
    flow.until(lambda: not job.pods("driver"), "the driver lost")
    job.leave()
    job.waits("driver lost", not_at=gate)
    job.grant(("w0", "n0", "1"))
    job.trains("granted again", 1)
    flow.world.operate("stop", flow.name)
    flow.ends()
    flow.until(flow.is_settled, "its pods to be seen off")
    notes.add("stopped", story(flow))
    flow.world.operate("retry", flow.name)
    job.trains("retried", 1, gates=0)
    job.tell_driver("done")
    flow.ends()


def _failure(flow: Flow, notes: Notes) -> None:
    job = _Job(flow, notes)
    job.waits("submitted")
    job.give_key()
    job.grant(("w0", "n1", "0"))
    job.trains("granted", 1)
    job.tell_driver("fail")
    flow.ends()


def _pair(flow: Flow, notes: Notes) -> None:
    for number, name in enumerate(("one", "two")):
        job = _Job(flow, notes, f"[1].train.{name}")
        job.waits(f"{name} submitted")
        if number == 0:
            job.give_key()
        job.grant(("w0", "n1", "0"))
        job.trains(f"{name} granted", 1)
        job.tell_driver("stop")
        job.waits(f"{name} resized")
        job.grant(("w0", "n2", "0"))
        job.trains(f"{name} granted again", 1)
        job.tell_driver("done")
    flow.ends()

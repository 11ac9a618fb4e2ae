"""A world of one Workflow: the engine's ``advance`` driven to the end over plain processes.

It stands in for the engine where only Argo's semantics are tried: everything is in memory, nothing survives it.
"""

from __future__ import annotations

import queue
import uuid
from collections.abc import Callable, Mapping
from copy import deepcopy
from datetime import UTC, datetime
from pathlib import Path
from time import monotonic

from tests.contract.argo.processes import PodProcess
from voda_flows.local.argo import advance, validate
from voda_flows.objects import Object, format_time

LOOK_S = 0.1  # how often progress files are read
ENDED = ("Succeeded", "Failed", "Error")


class SmallWorld:
    """Holds one Workflow and its pods; ``step`` looks once, ``until`` looks until something holds."""

    def __init__(self, document: Object, folder: Path, templates: Mapping[str, Object] | None = None) -> None:
        self._templates = templates or {}
        validate(document, self._template)
        self.workflow = deepcopy(document)
        self.workflow["metadata"] |= {
            "uid": str(uuid.uuid4()),
            "namespace": "argo",
            "creationTimestamp": format_time(datetime.now(UTC)),
        }
        self.processes: dict[str, PodProcess] = {}
        self.progress_seen: list[str] = []
        self._folder = folder
        self._news: queue.Queue[None] = queue.Queue()

    def _template(self, namespace: str, name: str) -> Object | None:
        return self._templates.get(name)

    @property
    def status(self) -> Object:
        """The Workflow's status."""
        status: Object = self.workflow.get("status", {})
        return status

    @property
    def pods(self) -> dict[str, Object]:
        """Pods by name."""
        return {name: process.pod for name, process in self.processes.items()}

    def step(self) -> float | None:
        """One look of the engine: make pods, keep the Workflow, end pods; returns when to look again."""
        found = advance(self.workflow, deepcopy(self.pods), self._template, datetime.now(UTC))
        for pod in found.create:
            self._start(deepcopy(pod))
        self.workflow = found.workflow
        for name in found.delete:
            self.delete_pod(name)
        progress = self.status.get("progress", "")
        if self.progress_seen[-1:] != [progress]:
            self.progress_seen.append(progress)
        return found.again_s

    def until(self, holds: Callable[[], bool], limit_s: float = 30.0) -> None:
        """Look until the condition holds.

        Raises:
            TimeoutError: It does not within the limit.
        """
        deadline = monotonic() + limit_s
        while True:
            again_s = self.step()
            if holds():
                return
            if monotonic() > deadline:
                raise TimeoutError(self._shown())
            self._wait(again_s)

    def finish(self) -> None:
        """Look until the Workflow has ended."""
        self.until(lambda: self.status.get("phase") in ENDED)

    def node(self, name: str) -> Object | None:
        """The node of that name."""
        return next((node for node in self.status.get("nodes", {}).values() if node["name"] == name), None)

    def running(self, name: str) -> bool:
        """Whether the node of that name runs."""
        node = self.node(name)
        return node is not None and node["phase"] == "Running"

    def delete_pod(self, name: str, *, force: bool = False) -> None:
        """Delete a pod: its process is asked to end; by force the object goes at once."""
        process = self.processes[name]
        process.pod["metadata"]["deletionTimestamp"] = format_time(datetime.now(UTC))
        process.stop()
        if force:
            del self.processes[name]

    def pod_of(self, node: str) -> str:
        """The name of a node's pod."""
        marked = "workflows.argoproj.io/node-name"
        return next(name for name, pod in self.pods.items() if pod["metadata"]["annotations"][marked] == node)

    def close(self) -> None:
        """End every process."""
        for process in self.processes.values():
            process.stop()

    def _shown(self) -> str:
        open_nodes = [node["name"] for node in self.status.get("nodes", {}).values() if node["phase"] == "Running"]
        name, phase = self.workflow["metadata"]["name"], self.status.get("phase")
        return f"{name} is {phase}, {self.status.get('progress')}; running: {open_nodes}"

    def _start(self, pod: Object) -> None:
        name = pod["metadata"]["name"]
        assert name not in self.processes, f"pod {name} was made twice"
        pod["metadata"]["creationTimestamp"] = format_time(datetime.now(UTC))
        pod["metadata"]["uid"] = str(uuid.uuid4())
        process = PodProcess(pod, self._folder / pod["metadata"]["uid"], lambda: self._news.put(None))
        self.processes[name] = process
        process.start()

    def _wait(self, again_s: float | None) -> None:
        running = any(process.pod.get("status", {}).get("phase") == "Running" for process in self.processes.values())
        limit_s = min(again_s or 1.0, LOOK_S if running else 1.0)
        for process in list(self.processes.values()):
            if process.read_progress():
                return
        try:
            self._news.get(timeout=limit_s)
        except queue.Empty:
            return

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
from tests.contract.argo.world import is_up
from voda_flows.local.argo import advance, validate
from voda_flows.objects import Object, format_time

LOOK_S = 0.1  # how often progress files are read


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
        for name in found.end:
            self.dismiss(name)
        for name in found.delete:
            self.delete_pod(name)
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

    def operate(self, change: Callable[[Object], Object]) -> None:
        """Change the Workflow's document."""
        self.workflow = change(self.workflow)

    def delete_pod(self, name: str, *, force: bool = False) -> None:
        """Delete a pod: its process is asked to end; by force the object goes at once."""
        process = self.processes[name]
        process.pod["metadata"]["deletionTimestamp"] = format_time(datetime.now(UTC))
        had_ended = not is_up(process.pod)
        process.stop()
        if force or had_ended:
            del self.processes[name]

    def dismiss(self, name: str) -> None:
        """Ask a pod's process to end."""
        self.processes[name].stop()

    def annotate(self, name: str, annotation: str, value: str) -> None:
        """Set an annotation of a pod, and the file in which the pod sees it."""
        self.processes[name].pod["metadata"]["annotations"][annotation] = value
        self.processes[name].write_downward_files()

    def pid(self, name: str) -> int | None:
        """The pid of a pod's command, while it runs."""
        process = self.processes[name].process
        return process.pid if process is not None and process.poll() is None else None

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
        limit_s = min(again_s or 1.0, LOOK_S if any(is_up(pod) for pod in self.pods.values()) else 1.0)
        if any(process.read_progress() for process in list(self.processes.values())):
            return
        try:
            self._news.get(timeout=limit_s)
        except queue.Empty:
            return

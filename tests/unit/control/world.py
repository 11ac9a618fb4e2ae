"""A world for tests of the control loop: the real store and the real engine, in which tests play the pods' part."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Mapping
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from scheduler_core.cycle import run_cycle
from scheduler_core.model.decision import CycleResult
from scheduler_core.model.job import Job
from scheduler_core.model.params import Params
from scheduler_core.model.plan import Action
from voda_flows.config import Settings
from voda_flows.control import pods
from voda_flows.control.enforce import StoreEnforcer
from voda_flows.control.observe import StoreObserver
from voda_flows.control.reports import DriverStatus, Reports
from voda_flows.control.targets import StoredTarget
from voda_flows.control.view import JobView
from voda_flows.control.why import Why
from voda_flows.local.advancing import Workflows
from voda_flows.local.nodes import make_node
from voda_flows.local.store import LocalStore
from voda_flows.objects import Key, Object
from voda_flows.render import TEMPLATES
from voda_flows.workflows.parameters import JOB_TEMPLATE

PARAMS = Params(policy="elastic_fifo", decide_interval_s=0.0, start_limit_s=300.0)


class Spoken(Reports):
    """Drivers whose answers a test writes down."""

    def __init__(self) -> None:
        super().__init__()
        self.said: dict[str, DriverStatus] = {}

    def pull(
        self, address_by_uid: Mapping[str, str], rows_read: Mapping[str, int] | None = None
    ) -> dict[str, DriverStatus]:
        """What was written down for those that are asked."""
        return {uid: self.said[uid] for uid in address_by_uid if uid in self.said}


@cache
def _first_state(gpus: tuple[int, ...]) -> bytes:
    """The state of a world in which nothing has happened yet; made once for each cluster."""
    with tempfile.TemporaryDirectory() as folder:
        store = LocalStore(Path(folder))
        for index, count in enumerate(gpus):
            store.create(make_node(f"n{index}", count))
        store.create(yaml.safe_load((TEMPLATES / f"{JOB_TEMPLATE}.yaml").read_text(encoding="utf-8")))
        store.close()
        return (Path(folder) / "state.db").read_bytes()


class World:
    """Nodes, the job's template and a scheduler over a fresh store.

    Args:
        home: Folder of the store.
        gpus: GPUs of each node ``n0``, ``n1``, ...
        settings: The scheduler's settings.
    """

    def __init__(self, home: Path, gpus: tuple[int, ...] = (2, 2), settings: Settings | None = None) -> None:
        home.mkdir(parents=True, exist_ok=True)
        (home / "state.db").write_bytes(_first_state(gpus))
        self.store = LocalStore(home)
        self.engine = Workflows(self.store)
        self.drivers = Spoken()
        self.observer = StoreObserver(self.store, settings or Settings(), self.drivers)
        why = Why(self.observer.name_of)
        self.enforcer = StoreEnforcer(self.store, self.observer, why=why.of)
        self.targets = StoredTarget(self.store, "voda", decided=why.decided)

    def submit(self, name: str, spec: Mapping[str, Any] | None = None, **inputs: str) -> Object:
        """A Workflow that is one training job, or one of a spec of its own; taken up by the engine."""
        parameters = {"command": "python -m workloads.digits"} | {k.replace("_", "-"): v for k, v in inputs.items()}
        whole = {
            "workflowTemplateRef": {"name": JOB_TEMPLATE},
            "arguments": {"parameters": [{"name": key, "value": value} for key, value in parameters.items()]},
        }
        body = {
            "apiVersion": "argoproj.io/v1alpha1",
            "kind": "Workflow",
            "metadata": {"name": name, "namespace": "default"},
            "spec": dict(spec or whole),
        }
        self.store.create(body)
        self.settle()
        return self.store.get("Workflow", "default", name)

    def settle(self) -> None:
        """Let the engine work until it has nothing more to do; pods told to go are gone."""
        before = -1
        while before != (before := self.store.revision()):
            self.engine.advance(datetime.now(UTC))
            for key, pod in self.store.snapshot("Pod").items():
                if pods.is_leaving(pod):
                    self.store.remove(key, uid=pods.uid(pod))

    def cycle(self) -> list[Action]:
        """One round of the scheduler, then the engine; what was done."""
        return list(self.round().done)

    def round(self, params: Params = PARAMS) -> CycleResult:
        """One round of the scheduler, then the engine."""
        result = run_cycle(self.observer, self.enforcer, self.targets, params)
        assert not result.fault + result.decision.fault
        self.settle()
        return result

    def view(self, name: str = "train") -> JobView:
        """The job of that name as it is now."""
        self.observer.observe()
        (found,) = [view for view in self.observer.views.values() if view.nodes.asked.name == name]
        return found

    def job(self, name: str = "train") -> Job:
        """The core's value of a job as it is now."""
        job = self.view(name).job
        assert job is not None
        return job

    def pod(self, role: str, worker: str = "") -> Object:
        """The live pod of a role (and worker)."""
        (found,) = [
            pod
            for key, several in pods.by_key(self.store.snapshot("Pod").values()).items()
            for pod in several
            if key.role == role and key.worker == worker and not pods.has_ended(pod)
        ]
        return found

    def run_pods(self) -> None:
        """Every pod that waits runs, is ready and has an address."""
        for number, (key, pod) in enumerate(self.store.snapshot("Pod").items()):
            if not (pod.get("status") or {}).get("phase"):
                self.patch(key, {"phase": "Running", "podIP": f"127.1.0.{number + 1}", "conditions": [_READY]})
        self.settle()

    def end_pod(self, role: str, worker: str = "", *, phase: str = "Succeeded", **outputs: str) -> None:
        """A pod ends, leaving outputs."""
        pod = self.pod(role, worker)
        said = json.dumps({"parameters": outputs, "exitCode": "0" if phase == "Succeeded" else "1"})
        key = Key("Pod", pod["metadata"]["namespace"], pod["metadata"]["name"])
        self.store.merge_patch(*key, {"metadata": {"annotations": {"voda.dev/outputs": said}}})
        self.patch(key, {"phase": phase})
        self.settle()

    def acknowledge(self) -> None:
        """The driver says that it trains by its document."""
        document = self.view().document
        assert document is not None
        uid = document.driver_uid
        size = sum(worker.slots for worker in document.workers)
        self.drivers.said[uid] = DriverStatus(driver_uid=uid, generation=document.generation, step=10, world_size=size)

    def patch(self, key: Key, status: Object) -> None:
        """Write a pod's status, as its kubelet would."""
        self.store.merge_patch(*key, {"status": status})

    def outputs(self, path: str) -> dict[str, str]:
        """Output parameters of the one node whose name ends in a path."""
        (node,) = [node for node in self.nodes().values() if node["name"].endswith(path)]
        return {row["name"]: row["value"] for row in node["outputs"]["parameters"]}

    def nodes_of(self, workflow: str) -> Object:
        """The status of a Workflow, with its nodes."""
        found: Object = self.store.get("Workflow", "default", workflow)["status"]
        return found

    def nodes(self) -> dict[str, Object]:
        """The nodes of the one Workflow."""
        (workflow,) = self.store.list("Workflow")
        found: dict[str, Object] = workflow["status"]["nodes"]
        return found


_READY = {"type": "Ready", "status": "True"}

"""What scheduler and kubelets do in a cluster: pods go to nodes, are started, watched, ended and taken away.

In: the store's pods and nodes; out: their statuses in the store, and processes (``pods.py``). Level-triggered: each
call looks at what is and does the next thing, so that it may be cut off anywhere.
"""

from __future__ import annotations

import logging
import os
import shutil
import subprocess
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path

from scheduler_core.errors import Conflict, NotFound
from voda_flows.local import logs
from voda_flows.local.clock import EvenClock
from voda_flows.local.launch import SLOTS, WORKDIR, Surroundings, launch
from voda_flows.local.nodes import Binding, bind, devices_of, held_slots, node_of
from voda_flows.local.pods import Pods, choose_address
from voda_flows.local.store import LocalStore
from voda_flows.local.trouble import is_trouble
from voda_flows.objects import (
    COMPLETED_LABEL,
    POD_ENDED,
    WORKFLOW_LABEL,
    Key,
    Object,
    format_time,
    key_of,
    phase_of,
)

END = "voda.dev/end"
"""Annotation of a pod whose processes are to end while the pod itself stays."""
ROLE = "voda.dev/role"
DEVICES_LIMIT_S = 20

log = logging.getLogger("voda.local.kubelet")


def count_devices() -> int:
    """How many GPUs this machine has; 0 where the driver's tool is not there or does not answer."""
    tool = shutil.which("nvidia-smi")
    if tool is None:
        return 0
    try:
        answer = subprocess.run([tool, "-L"], capture_output=True, text=True, timeout=DEVICES_LIMIT_S, check=False)
    except subprocess.TimeoutExpired:
        return 0
    return sum(line.startswith("GPU ") for line in answer.stdout.splitlines())


class Kubelet:
    """The nodes of one home."""

    def __init__(self, store: LocalStore, num_devices: int, clock: EvenClock) -> None:
        self.store = store
        self.pods = Pods(store.home, clock)
        self.num_devices = num_devices
        self.live: list[Object] = []
        self._seen: dict[Key, Object] = {}
        self._open: dict[Key, Object] = {}

    def sweep(self) -> None:
        """Before the first round: end what belongs to no pod of the store, forget logs of Workflows that are gone."""
        pods, workflows = self.store.snapshot("Pod"), self.store.snapshot("Workflow")
        for uid in self.pods.sweep(pod["metadata"]["uid"] for pod in pods.values()):
            log.warning("pod=%s is not in the store, what was left of it was ended", uid)
        logs.sweep(self.store.home, (workflow["metadata"]["uid"] for workflow in workflows.values()))

    def watch(self) -> None:
        """Record how the pods that were live at the last round fare."""
        for pod in self.live:
            patch = self.pods.look(pod)
            if patch:
                self._patch(pod, patch)

    def has_work(self) -> bool:
        """Whether pods of users are live: their ends are awaited, the scheduler's is not."""
        return any((pod["metadata"].get("labels") or {}).get(ROLE) != "scheduler" for pod in self.live)

    def is_behind(self) -> bool:
        """Whether a pod is to be started again though no object changes."""
        waiting = [pod for pod in self.live if pod["status"].get("phase") == "Pending"]
        return any(self.pods.has_failed_to_begin(pod["metadata"]["uid"]) for pod in waiting)

    def place(self) -> None:
        """Bind pods that wait for a node, oldest first."""
        pods, used = self._open_pods(), set[str]()
        for binding in bind(pods, self.store.snapshot("Node")):
            pod, used = pods[binding.pod], used or self._addresses()
            patch = _waiting(pod, binding) if binding.node is None else _bound(pod, binding, used)
            if patch:
                self._patch(pod, patch)

    def refresh(self) -> None:
        """Keep the downward-API files of live pods as they should be: a driver waits for its allocation there."""
        live = {pod["metadata"]["uid"] for pod in self.live}
        for pod in self._open_pods().values():
            if pod["metadata"]["uid"] in live:
                self.pods.refresh(pod)

    def start(self) -> None:
        """Start bound pods that have not begun, and take on those that have."""
        self.live = []
        for pod in self._open_pods().values():
            if node_of(pod) is None or pod["status"].get("phase") in POD_ENDED:
                continue
            self.live.append(pod)
            if self.pods.has_begun(pod["metadata"]["uid"]):
                self.pods.refresh(pod)  # one that this engine sees for the first time
            elif "deletionTimestamp" not in pod["metadata"]:
                self._start(pod)

    def end(self, unseen: set[tuple[str, str]]) -> None:
        """End pods that were deleted or are told to, and take away the deleted ones that have ended.

        Args:
            unseen: (namespace, name) of Workflows that have not taken note of their pods' ends yet: these stay.
        """
        for key, pod in self._open_pods().items():
            metadata = pod["metadata"]
            if "deletionTimestamp" not in metadata:
                if END in (metadata.get("annotations") or {}):
                    self.pods.end(pod)
                continue
            if not self.pods.end(pod):
                continue
            if (key.namespace, (metadata.get("labels") or {}).get(WORKFLOW_LABEL)) not in unseen:
                self._keep_log(pod)
                self.pods.forget(metadata["uid"])
                self.store.remove(key, uid=metadata["uid"])
                log.info("pod=%s/%s removed", key.namespace, key.name)

    def _open_pods(self) -> dict[Key, Object]:
        """The pods with which something may have to be done: not ended, or deleted. Made anew only when pods change."""
        pods = self.store.snapshot("Pod")
        if pods is not self._seen:
            self._seen, self._open = pods, {key: pod for key, pod in pods.items() if _is_open(pod)}
        return self._open

    def _addresses(self) -> set[str]:
        """Those that pods have or had: nobody is to meet another one where a pod was."""
        pods = self.store.snapshot("Pod").values()
        return {address for pod in pods if (address := (pod.get("status") or {}).get("podIP"))}

    def _keep_log(self, pod: Object) -> None:
        """Put the log of a deleted pod aside for as long as its Workflow stays."""
        workflow = self._workflow(pod)
        if workflow is not None and "deletionTimestamp" not in workflow["metadata"]:
            logs.keep(self.store.home, pod, workflow["metadata"]["uid"])

    def _start(self, pod: Object) -> None:
        try:
            self.pods.start(pod, launch(pod, self._surroundings(pod)))
            log.info("pod=%s/%s start node=%s", *key_of(pod)[1:], pod["spec"]["nodeName"])
        except NotFound as waiting:
            state = {"waiting": {"reason": "ContainerCreating", "message": str(waiting)}}
            containers = [{"name": "main", "ready": False, "state": state}]
            self._patch(pod, {"status": {"message": str(waiting), "containerStatuses": containers}})
        except Exception as error:
            if is_trouble(error):
                raise  # the machine's, not the pod's: it is tried again
            # Whatever is wrong with one pod's document or folder ends that pod, and no other.
            log.exception("pod=%s/%s cannot start", *key_of(pod)[1:])
            self._patch(pod, {"status": {"phase": "Failed", "message": f"cannot start: {error}"}})

    def _surroundings(self, pod: Object) -> Surroundings:
        node, slots = pod["spec"]["nodeName"], held_slots(pod)
        return Surroundings(
            home=self.store.home,
            workdir=self._workdir(pod),
            environment=os.environ,
            devices=devices_of(node, slots, self.store.snapshot("Node"), self.num_devices),
            read=self.store.get,
        )

    def _workflow(self, pod: Object) -> Object | None:
        name = (pod["metadata"].get("labels") or {}).get(WORKFLOW_LABEL)
        return self.store.snapshot("Workflow").get(Key("Workflow", pod["metadata"]["namespace"], name or ""))

    def _workdir(self, pod: Object) -> Path | None:
        workflow = self._workflow(pod)
        folder = ((workflow or {}).get("metadata", {}).get("annotations") or {}).get(WORKDIR)
        return Path(folder) if folder else None

    def _patch(self, pod: Object, patch: Object) -> None:
        """Write what happened to a pod; one that is not the same any more is looked at in the next round."""
        key = key_of(pod)
        metadata = {**(patch.get("metadata") or {}), "uid": pod["metadata"]["uid"]}
        phase = (patch.get("status") or {}).get("phase")
        if phase in POD_ENDED and WORKFLOW_LABEL in (pod["metadata"].get("labels") or {}):
            metadata["labels"] = {**(metadata.get("labels") or {}), COMPLETED_LABEL: "true"}
        try:
            new = self.store.merge_patch(*key, {**patch, "metadata": metadata})
        except (Conflict, NotFound):
            return
        if phase is not None:
            log.info("pod=%s/%s phase=%s %s", key.namespace, key.name, phase, new["status"].get("message") or "")
        if phase in POD_ENDED:
            self.pods.rest(pod["metadata"]["uid"])


def _is_open(pod: Object) -> bool:
    return phase_of(pod) not in POD_ENDED or "deletionTimestamp" in pod["metadata"]


def _bound(pod: Object, binding: Binding, used: set[str]) -> Object:
    """The patch that binds a pod to its node, with slots and an address of its own."""
    address = choose_address(pod["metadata"]["uid"], used)
    used.add(address)
    return {
        "metadata": {"annotations": {SLOTS: ",".join(map(str, binding.slots))}},
        "spec": {"nodeName": binding.node},
        "status": {
            "phase": "Pending",
            "message": None,
            "podIP": address,
            "hostIP": "127.0.0.1",
            "conditions": [_scheduled("True", {})],
        },
    }


def _waiting(pod: Object, binding: Binding) -> Object:
    """The patch that says why a pod waits, empty where that is said already; one with a fault fails."""
    if binding.is_fault:
        return {"status": {"phase": "Failed", "message": f"cannot start: {binding.message}"}}
    conditions = (pod.get("status") or {}).get("conditions") or ()
    if any(entry["type"] == "PodScheduled" and entry.get("message") == binding.message for entry in conditions):
        return {}
    condition = _scheduled("False", {"reason": "Unschedulable", "message": binding.message})
    return {"status": {"phase": "Pending", "message": f"Unschedulable: {binding.message}", "conditions": [condition]}}


def _scheduled(status: str, reason: Mapping[str, str]) -> Object:
    return {
        "type": "PodScheduled",
        "status": status,
        "lastTransitionTime": format_time(datetime.now(UTC)),
        **reason,
    }

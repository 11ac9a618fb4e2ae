"""What the suite asks of a world: take documents, do what people do to Workflows, hurt pods.

In: documents; out: objects in an ``ObjectStore``. ``Flow`` is one Workflow of a world: waiting for it, answering its
gates. Whatever is said here holds for both worlds, so a case is one script for both.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from time import monotonic
from typing import Protocol

from scheduler_core.errors import NotFound, Unreachable
from voda_flows.objects import COMPLETED_LABEL, POD_ENDED, WORKFLOW_ENDED, WORKFLOW_LABEL, Key, Object, phase_of
from voda_flows.store import ObjectStore

#: A pod of a busy cluster takes long to start; what is waited for ends the wait.
LIMIT_S = 240.0
LOOK_S = 0.5
NODE_NAME = "workflows.argoproj.io/node-name"
READY = "ready"
"""What a pod's program writes when it has set up what it does when asked to end."""


class World(Protocol):
    """A world with one namespace that is the suite's own."""

    @property
    def name(self) -> str:
        """``local`` or ``cluster``."""
        ...

    @property
    def namespace(self) -> str:
        """Where the suite's objects are."""
        ...

    @property
    def store(self) -> ObjectStore:
        """Its objects."""
        ...

    def submit(self, document: Object) -> Object:
        """Create a Workflow, WorkflowTemplate or CronWorkflow as a user would.

        Raises:
            InvalidValue: It is refused.
        """
        ...

    def operate(self, verb: str, name: str) -> str:
        """Do to a Workflow what ``argo VERB NAME`` does.

        Args:
            verb: stop, terminate, suspend, resume, retry, resubmit or delete.
            name: The Workflow's.

        Returns:
            The new Workflow's name after a resubmit, else the Workflow's own.

        Raises:
            Conflict: The Workflow is not in a state for that.
        """
        ...

    def delete_pod(self, pod: Object, *, force: bool) -> None:
        """Delete a pod; by force it goes at once, without being asked to end."""
        ...

    def ask_to_end(self, pod: Object) -> None:
        """Send SIGTERM to a pod's program, the pod is not deleted."""
        ...

    def log(self, pod: Object) -> str:
        """What a pod's program has written."""
        ...

    def prepare_volume(self, claim: str) -> None:
        """Have a claim of that name, which pods can mount."""
        ...


class Flow:
    """One Workflow of a world."""

    def __init__(self, world: World, name: str) -> None:
        self.world = world
        self.name = name

    @property
    def workflow(self) -> Object:
        """The Workflow, empty where it is not there."""
        key = Key("Workflow", self.world.namespace, self.name)
        return self.world.store.snapshot("Workflow").get(key) or {}

    @property
    def status(self) -> Object:
        """Its status."""
        status: Object = self.workflow.get("status") or {}
        return status

    @property
    def nodes(self) -> dict[str, Object]:
        """Its nodes by whole name."""
        return {node["name"]: node for node in (self.status.get("nodes") or {}).values()}

    @property
    def pods(self) -> dict[str, Object]:
        """Its pods by the name of their node."""
        found = self.world.store.snapshot("Pod")
        return {
            (pod["metadata"].get("annotations") or {}).get(NODE_NAME, key.name): pod
            for key, pod in found.items()
            if key.namespace == self.world.namespace
            and (pod["metadata"].get("labels") or {}).get(WORKFLOW_LABEL) == self.name
        }

    def until(self, holds: Callable[[], bool], what: str) -> None:
        """Wait until something holds.

        Args:
            holds: Whether it does.
            what: In words, for whoever reads that it did not.

        Raises:
            TimeoutError: It does not within the limit; with how the nodes are.
        """
        deadline_s = monotonic() + LIMIT_S
        while True:
            seen = self.world.store.revision()
            with suppress(Unreachable):  # a busy API server
                if holds():
                    return
            if monotonic() > deadline_s:
                nodes = {name: node["phase"] for name, node in self.nodes.items()}
                raise TimeoutError(
                    f"{self.world.name}: {self.name}: expected {what} within {LIMIT_S:.0f} s; the Workflow is "
                    f"{self.status.get('phase')}, its nodes are {nodes}"
                )
            self.world.store.wait(seen, LOOK_S)

    def ends(self) -> None:
        """Wait until it has ended, and its pods with it."""
        self.until(lambda: self.status.get("phase") in WORKFLOW_ENDED, "its end")
        self.until(self.is_settled, "its pods to be seen off")

    def comes_to(self, nodes: Mapping[str, str]) -> None:
        """Wait until nodes, by whole name behind the Workflow's own, are in these phases."""
        wanted = {self.name + name: phase for name, phase in nodes.items()}
        self.until(lambda: wanted.items() <= {n: each["phase"] for n, each in self.nodes.items()}.items(),
                   f"nodes {wanted}")  # fmt: skip

    def is_at_work(self, node: str) -> bool:
        """Whether the node and its pod run, and the pod's program has said that it is ready."""
        pod, found = self.pods.get(node), self.nodes.get(node)
        if pod is None or found is None or found["phase"] != "Running" or "deletionTimestamp" in pod["metadata"]:
            return False
        return (pod.get("status") or {}).get("phase") == "Running" and READY in self.world.log(pod)

    def works(self, *nodes: str) -> None:
        """Wait until the pods of these nodes, by whole name behind the Workflow's own, are at work."""
        for node in nodes:
            whole = self.name + node
            self.until(lambda whole=whole: self.is_at_work(whole), f"{whole} at work")  # type: ignore[misc]  # bound

    def pod(self, node: str) -> Object:
        """The pod of a node, by the node's name behind the Workflow's own."""
        return self.pods[self.name + node]

    def gates(self, template: str) -> list[Object]:
        """The open gates of that template."""
        opened = [node for node in self.nodes.values() if node["type"] == "Suspend" and node["phase"] == "Running"]
        return [node for node in opened if node["templateName"] == template]

    def supply(self, template: str, **values: str) -> None:
        """What a scheduler does: complete the open gate of that template by one merge-patch, guarded by its version."""
        (gate,) = self.gates(template)
        rows = [{"name": name, "value": value} for name, value in values.items()]
        done = {"phase": "Succeeded", "finishedAt": "2026-11-29T00:00:00Z", "outputs": {"parameters": rows}}
        workflow = self.workflow
        patch = {"status": {"nodes": {gate["id"]: done}}}
        self.world.store.merge_patch("Workflow", self.world.namespace, self.name, patch,
                                     resource_version=workflow["metadata"]["resourceVersion"])  # fmt: skip

    def is_settled(self) -> bool:
        """Whether all pods are gone, or have ended and the label says so, which comes a moment later."""
        return all(
            phase_of(pod) in POD_ENDED
            and pod["metadata"]["labels"][COMPLETED_LABEL] == "true"
            and "deletionTimestamp" not in pod["metadata"]
            for pod in self.pods.values()
        )

    def touch(self) -> None:
        """Change the Workflow a little: the controller may have lost sight of a pod that went."""
        self.world.store.merge_patch("Workflow", self.world.namespace, self.name,
                                     {"metadata": {"annotations": {"touched": "yes"}}})  # fmt: skip

    def is_gone(self) -> bool:
        """Whether the Workflow is not there any more."""
        try:
            self.world.store.get("Workflow", self.world.namespace, self.name)
        except NotFound:
            return True
        return False

"""The real world of local mode: one home with its engine, its nodes and its pods as processes.

Several Workflows share a home; each has an ``EngineWorld`` of its own.
"""

from __future__ import annotations

import signal
from collections.abc import Callable
from pathlib import Path
from time import monotonic

from scheduler_core.errors import Conflict, NotFound
from tests.contract.argo.world import is_up
from voda_flows.local.launch import pod_folder
from voda_flows.local.nodes import nodes_of_shape
from voda_flows.local.processes import parent_of, tell
from voda_flows.local.store import LocalStore
from voda_flows.local.up import start_engine
from voda_flows.objects import Key, Object

NAMESPACE = "argo"
LOOK_S = 0.2  # at the latest, where what is waited for is no change of an object


def begin(home: Path) -> None:
    """Make a home of two nodes with two slots each, and start its engine."""
    store = LocalStore(home)
    for node in nodes_of_shape("2x2"):
        store.create(node)
    start_engine(home)


class EngineWorld:
    """One Workflow of a home whose engine runs."""

    def __init__(self, document: Object, home: Path) -> None:
        self._home = home
        self._store = LocalStore(home)
        self._name = document["metadata"]["name"]
        self._store.create({**document, "metadata": {**document["metadata"], "namespace": NAMESPACE}})

    @property
    def status(self) -> Object:
        """The Workflow's status."""
        status: Object = self._store.get("Workflow", NAMESPACE, self._name).get("status", {})
        return status

    @property
    def pods(self) -> dict[str, Object]:
        """Pods by name."""
        found = self._store.list("Pod", NAMESPACE, {"workflows.argoproj.io/workflow": self._name})
        return {pod["metadata"]["name"]: pod for pod in found}

    def until(self, holds: Callable[[], bool], limit_s: float = 30.0) -> None:
        """Wait until the condition holds.

        Raises:
            TimeoutError: It does not within the limit.
        """
        deadline = monotonic() + limit_s
        while True:
            seen = self._store.revision()
            if holds():
                return
            if monotonic() > deadline:
                nodes = self.status.get("nodes", {}).values()
                running = [node["name"] for node in nodes if node["phase"] == "Running"]
                raise TimeoutError(f"{self._name} is {self.status.get('phase')}; running: {running}")
            self._store.wait(seen, LOOK_S)

    def operate(self, change: Callable[[Object], Object]) -> None:
        """Change the Workflow's document, again where somebody else was first."""
        while True:
            try:
                self._store.replace(change(self._store.get("Workflow", NAMESPACE, self._name)))
            except Conflict:
                continue
            return

    def delete_pod(self, name: str, *, force: bool = False) -> None:
        """Delete a pod; by force its process is killed and its object goes at once."""
        pod = self.pods[name]
        if force:
            tell(self._folder(pod), signal.SIGQUIT)
            self._store.remove(Key("Pod", NAMESPACE, name), uid=pod["metadata"]["uid"])
            return
        self._store.delete("Pod", NAMESPACE, name)
        if not is_up(pod):
            self.until(lambda: name not in self.pods)

    def dismiss(self, name: str) -> None:
        """Ask a pod's process to end."""
        tell(self._folder(self.pods[name]), signal.SIGTERM)

    def annotate(self, name: str, annotation: str, value: str) -> None:
        """Set an annotation of a pod."""
        self._store.merge_patch("Pod", NAMESPACE, name, {"metadata": {"annotations": {annotation: value}}})

    def pid(self, name: str) -> int | None:
        """The pid of a pod's command, while it runs."""
        parent = parent_of(self._folder(self.pods[name]))
        if parent is None:
            return None
        children = Path(f"/proc/{parent}/task/{parent}/children").read_text().split()
        return int(children[0]) if children else None

    def close(self) -> None:
        """Delete the Workflow, and its pods with it."""
        try:
            self._store.delete("Workflow", NAMESPACE, self._name)
        except NotFound:
            return

    def _folder(self, pod: Object) -> Path:
        return pod_folder(self._home, pod["metadata"]["uid"])

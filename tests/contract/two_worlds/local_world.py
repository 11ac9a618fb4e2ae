"""The local engine as a world: a home in a temporary folder, its pods are processes of this machine."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from voda_flows import operations
from voda_flows.local.argo import operate, validate
from voda_flows.local.argo.validate import validate_template
from voda_flows.local.cron import validate_cron
from voda_flows.local.launch import pod_folder
from voda_flows.local.logs import log_path
from voda_flows.local.nodes import nodes_of_shape
from voda_flows.local.processes import tell
from voda_flows.local.store import LocalStore
from voda_flows.local.up import down, start_engine
from voda_flows.objects import Key, Object

SHAPE = "3x2"


class LocalWorld:
    """A home with three nodes of two GPUs, whose engine runs."""

    name = "local"

    def __init__(self, home: Path, namespace: str) -> None:
        self.namespace = namespace
        self.home = home
        self.store = LocalStore(home)

    def submit(self, document: Object) -> Object:
        """See ``World``."""
        body = {**document, "metadata": {**document["metadata"], "namespace": self.namespace}}
        if body["kind"] == "CronWorkflow":
            validate_cron(body)
            validate({**body, "kind": "Workflow", "spec": body["spec"]["workflowSpec"]}, self._template)
        elif body["kind"] == "WorkflowTemplate":
            validate_template(body, self._template)
        else:
            validate(body, self._template)
        return self.store.create(body)

    def _template(self, namespace: str, name: str, /) -> Object | None:
        return self.store.snapshot("WorkflowTemplate").get(Key("WorkflowTemplate", namespace, name))

    def operate(self, verb: str, name: str) -> str:
        """See ``World``."""
        workflow = self.store.get("Workflow", self.namespace, name)
        if verb == "delete":
            self.store.delete("Workflow", self.namespace, name)
            return name
        if verb == "stop":  # `voda stop` is about jobs
            self.store.merge_patch("Workflow", self.namespace, name, {"spec": operate.stop(workflow)["spec"]})
            return name
        changed: Object = getattr(operations, verb)(self.store, workflow)
        return str(changed["metadata"]["name"])

    def delete_pod(self, pod: Object, *, force: bool) -> None:
        """See ``World``."""
        metadata = pod["metadata"]
        if force:
            tell(pod_folder(self.home, metadata["uid"]), signal.SIGQUIT)
            self.store.remove(Key("Pod", self.namespace, metadata["name"]), uid=metadata["uid"])
            return
        self.store.delete("Pod", self.namespace, metadata["name"])

    def ask_to_end(self, pod: Object) -> None:
        """See ``World``."""
        tell(pod_folder(self.home, pod["metadata"]["uid"]), signal.SIGTERM)

    def log(self, pod: Object) -> str:
        """See ``World``."""
        owner = pod["metadata"]["ownerReferences"][0]["uid"]
        path = log_path(self.home, owner, pod["metadata"]["uid"])
        return path.read_text() if path.exists() else ""

    def prepare_volume(self, claim: str) -> None:
        """See ``World``: every claim is a folder of the home, made when it is first used."""


@contextmanager
def local_world(home: Path, namespace: str) -> Iterator[LocalWorld]:
    """Such a world, its engine running; down at the end."""
    store = LocalStore(home)
    for node in nodes_of_shape(SHAPE):
        store.create(node)
    start_engine(home)
    try:
        yield LocalWorld(home, namespace)
    finally:
        down(home, drain_s=0.2)

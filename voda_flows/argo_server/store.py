"""``ObjectStore`` on an argo-server: Workflows, what nodes tell of their pods, and templates to look up."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from typing import Final, NoReturn

from scheduler_core.errors import VodaError
from voda_flows.argo_server.client import Client
from voda_flows.argo_server.pods import pods_of
from voda_flows.objects import WORKFLOW_LABEL, Key, Object, has_labels, key_of
from voda_flows.world import NotGiven

_API: Final = "argoproj.io/v1alpha1"
#: A watch that broke is opened again after so long.
_AGAIN_S: Final = 1.0


class ArgoStore:
    """What an argo-server gives of a cluster; usable from all threads.

    Args:
        client: Its calls.
        namespace: Whose Workflows are meant; empty for all.
    """

    def __init__(self, client: Client, namespace: str) -> None:
        self._client = client
        self._namespace = namespace
        self._changed = threading.Condition()
        self._revision = 0
        self._watching: threading.Thread | None = None
        self._closed = threading.Event()

    def get(self, kind: str, namespace: str, name: str) -> Object:
        """See ``ObjectStore.get``."""
        if kind == "WorkflowTemplate":
            return {**self._client.template(namespace, name), "kind": kind, "apiVersion": _API}
        if kind != "Workflow":
            _refuse(f"to read a {kind}")
        return _whole(self._client.get(namespace, name))

    def list(self, kind: str, namespace: str | None = None, labels: Mapping[str, str] | None = None) -> list[Object]:
        """See ``ObjectStore.list``."""
        place, wanted = self._namespace if namespace is None else namespace, dict(labels or {})
        if kind == "Pod":
            return [
                pod for workflow in self._owners(place, wanted) for pod in pods_of(workflow) if has_labels(pod, wanted)
            ]
        if kind != "Workflow":
            _refuse(f"to list {kind} objects")
        selector = ",".join(f"{name}={text}" for name, text in wanted.items())
        return sorted(map(_whole, self._client.list(place, selector)), key=key_of)

    def snapshot(self, kind: str) -> Mapping[Key, Object]:
        """See ``ObjectStore.snapshot``; asked anew each time."""
        return {key_of(body): body for body in self.list(kind)}

    def create(self, body: Object) -> Object:
        """See ``ObjectStore.create``."""
        if body.get("kind") != "Workflow":
            _refuse(f"to create a {body.get('kind')}")
        return _whole(self._client.create(body["metadata"].get("namespace") or self._namespace, body))

    def merge_patch(
        self, kind: str, namespace: str, name: str, patch: Object, *, resource_version: str | None = None
    ) -> Object:
        """See ``ObjectStore.merge_patch``: a Workflow can be told to stop, and nothing else."""
        shutdown = (patch.get("spec") or {}).get("shutdown")
        if kind != "Workflow" or shutdown not in ("Stop", "Terminate") or resource_version is not None:
            _refuse(f"to change a {kind}")
        return _whole(self._client.shut_down(namespace, name, terminate=shutdown == "Terminate"))

    def replace(self, body: Object) -> Object:
        """See ``ObjectStore.replace``."""
        _refuse(f"to change a {body.get('kind')}")

    def delete(
        self, kind: str, namespace: str, name: str, *, uid: str | None = None, version: str | None = None
    ) -> None:
        """See ``ObjectStore.delete``."""
        del uid, version
        _refuse(f"to delete {Key(kind, namespace, name)}")

    def revision(self) -> int:
        """See ``ObjectStore.revision``; the first call begins to watch."""
        if self._watching is None:
            self._watching = threading.Thread(target=self._watch, name="argo-server-watch", daemon=True)
            self._watching.start()
        return self._revision

    def wait(self, since: int, timeout_s: float) -> int:
        """See ``ObjectStore.wait``."""
        with self._changed:
            self._changed.wait_for(lambda: self._revision > since, timeout=timeout_s)
            return self._revision

    def close(self) -> None:
        """End the watch."""
        self._closed.set()

    def _owners(self, namespace: str, labels: Mapping[str, str]) -> Sequence[Object]:
        """The Workflows whose pods are meant."""
        if WORKFLOW_LABEL in labels and namespace:
            return [self.get("Workflow", namespace, labels[WORKFLOW_LABEL])]
        return self.list("Workflow", namespace)

    def _watch(self) -> None:
        """Count changes until the store is closed; a watch that breaks is opened anew."""
        while not self._closed.is_set():
            try:
                for _ in self._client.changes(self._namespace):
                    self._count()
            except VodaError:
                self._count()  # whatever was missed
            self._closed.wait(_AGAIN_S)

    def _count(self) -> None:
        with self._changed:
            self._revision += 1
            self._changed.notify_all()


def _whole(body: Object) -> Object:
    """A Workflow as everybody here has it: with its kind, and without what nobody reads."""
    metadata = {name: value for name, value in body.get("metadata", {}).items() if name != "managedFields"}
    return {"apiVersion": _API, "kind": "Workflow", **body, "metadata": metadata}


def _refuse(what: str) -> NoReturn:
    raise NotGiven(
        f"an argo-server gives Workflows and their logs, this needs {what}; "
        "name the cluster with --context or --kubeconfig"
    )

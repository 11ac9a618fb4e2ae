"""The real controller as a world: a namespace of a cluster, people's verbs by the ``argo`` command itself."""

from __future__ import annotations

import secrets
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager

from scheduler_core.errors import Conflict
from tests.cluster.api import RefusedError
from tests.cluster.cluster import Cluster
from tests.contract.two_worlds.dressing import for_cluster
from voda_flows.kube.cluster import Cluster as Named
from voda_flows.kube.opening import open_api
from voda_flows.kube.store import KubeStore, Scope
from voda_flows.objects import Object

VERB_LIMIT_S = 120.0
EXECUTOR = {"apiGroups": ["argoproj.io"], "resources": ["workflowtaskresults"], "verbs": ["create", "patch"]}
ACCOUNTS = ("default", "voda-job")
RBAC = "rbac.authorization.k8s.io"


class ClusterWorld:
    """A namespace of a cluster in which pods may do what Argo's executor needs."""

    name = "cluster"

    def __init__(self, cluster: Cluster, namespace: str) -> None:
        self.namespace = namespace
        scope = Scope(namespaces=(namespace,), watched=("Workflow", "Pod"))
        self.store = KubeStore(open_api(Named(kubeconfig=str(cluster.kubeconfig)), {}), scope)
        self._cluster = cluster
        self._api = cluster.api
        self._programs = cluster.programs

    def submit(self, document: Object) -> Object:
        """See ``World``."""
        body = for_cluster(document)
        return self.store.create({**body, "metadata": {**body["metadata"], "namespace": self.namespace}})

    def operate(self, verb: str, name: str) -> str:
        """See ``World``."""
        flags = ["-o", "name"] if verb == "resubmit" else []
        ended = self._run("argo", verb, name, *flags)
        if ended.returncode:
            raise Conflict(f"argo {verb} {name}: {ended.stderr.strip()}")
        return ended.stdout.strip().rsplit("/", maxsplit=1)[-1] if verb == "resubmit" else name

    def delete_pod(self, pod: Object, *, force: bool) -> None:
        """See ``World``."""
        name = pod["metadata"]["name"]
        flags = "?gracePeriodSeconds=0" if force else ""
        self._api.delete(f"/api/v1/namespaces/{self.namespace}/pods/{name}{flags}")

    def ask_to_end(self, pod: Object) -> None:
        """See ``World``: all processes of the container but Argo's executor, which is the first."""
        script = ("exec", pod["metadata"]["name"], "-c", "main", "--", "sh", "-c", "kill -TERM -1")
        self._run("kubectl", *script)  # the shell that is asked to send it may be ended by it: its code says nothing

    def log(self, pod: Object) -> str:
        """See ``World``."""
        path = f"/api/v1/namespaces/{self.namespace}/pods/{pod['metadata']['name']}/log?container=main"
        try:
            return self._api.text(path)
        except RefusedError:  # its container is not there yet, or not any more
            return ""

    def prepare_volume(self, claim: str) -> None:
        """See ``World``: a folder of all nodes, which goes with the cluster."""
        metadata, size = {"name": f"{self.namespace}-{claim}"}, {"storage": "1Gi"}
        folder = self._cluster.home.folder / "volumes" / metadata["name"]
        host = {"path": str(folder), "type": "DirectoryOrCreate"}
        common = {"accessModes": ["ReadWriteMany"], "storageClassName": ""}
        volume = {**common, "capacity": size, "hostPath": host}
        asked = {**common, "resources": {"requests": size}, "volumeName": metadata["name"]}
        self._post("/api/v1/persistentvolumes", "PersistentVolume", metadata, volume)
        path = f"/api/v1/namespaces/{self.namespace}/persistentvolumeclaims"
        self._post(path, "PersistentVolumeClaim", {"name": claim}, asked)

    def _post(self, path: str, kind: str, metadata: Object, spec: Object) -> None:
        self._api.post(path, {"apiVersion": "v1", "kind": kind, "metadata": metadata, "spec": spec})

    def open(self) -> None:
        """Make the namespace, and the accounts of its pods."""
        path = f"/api/v1/namespaces/{self.namespace}"
        self._post("/api/v1/namespaces", "Namespace", {"name": self.namespace}, {})
        metadata = {"name": "executor", "namespace": self.namespace}
        self._api.apply({"apiVersion": "v1", "kind": "ServiceAccount",
                         "metadata": {"name": "voda-job", "namespace": self.namespace}})  # fmt: skip
        self._api.apply({"apiVersion": f"{RBAC}/v1", "kind": "Role", "metadata": metadata, "rules": [EXECUTOR]})
        self._api.apply({
            "apiVersion": f"{RBAC}/v1",
            "kind": "RoleBinding",
            "metadata": metadata,
            "roleRef": {"apiGroup": RBAC, "kind": "Role", "name": "executor"},
            "subjects": [{"kind": "ServiceAccount", "name": each, "namespace": self.namespace} for each in ACCOUNTS],
        })  # fmt: skip
        self._api.wait(f"{path}/serviceaccounts", "default", bool, VERB_LIMIT_S)

    def close(self) -> None:
        """Delete the namespace with all that is in it; nobody waits for that."""
        self.store.close()
        self._api.delete(f"/api/v1/namespaces/{self.namespace}")
        self._api.delete(f"/api/v1/persistentvolumes/{self.namespace}-voda")

    def _run(self, program: str, *arguments: str) -> subprocess.CompletedProcess[str]:
        place = (f"--kubeconfig={self._cluster.kubeconfig}", f"--namespace={self.namespace}")
        command = (self._programs.path(program), arguments[0], *place, *arguments[1:])
        return subprocess.run(command, capture_output=True, text=True, timeout=VERB_LIMIT_S, check=False)


@contextmanager
def cluster_world(cluster: Cluster) -> Iterator[ClusterWorld]:
    """A namespace of its own in a cluster that is up; deleted at the end."""
    world = ClusterWorld(cluster, f"two-worlds-{secrets.token_hex(3)}")
    try:
        world.open()
        yield world
    finally:
        world.close()

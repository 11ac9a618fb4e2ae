"""The scheduler's shell over a real API server, with the rights that it is given there and no others.

Nobody runs pods here: the test plays the controller's and the kubelets' part, and writes what they would.
"""

from __future__ import annotations

import json
import os
import secrets
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path

import pytest
import yaml

from scheduler_core.errors import Forbidden
from scheduler_core.model.plan import Evict
from tests.contract.conftest import KUBECONFIG, Bench, cluster, make_namespace
from tests.unit.control.world import World
from voda_flows.config import Settings
from voda_flows.control.enforce import StoreEnforcer
from voda_flows.control.lease import EPOCH, NAME
from voda_flows.control.observe import StoreObserver
from voda_flows.control.reports import Reports
from voda_flows.control.scheduler import Place, Scheduler
from voda_flows.kube.api import Api
from voda_flows.kube.cluster import Cluster
from voda_flows.kube.connection import HttpTransport, connect
from voda_flows.kube.store import KubeStore, Scope
from voda_flows.kube.transport import MERGE_PATCH, Request
from voda_flows.objects import Object
from voda_flows.wire import read_document

pytestmark = pytest.mark.cluster

SOON_S = 60.0
ACCOUNT = "scheduler"
#: What the scheduler does, as roles name it (docs/contracts.md, section 14): in the whole cluster, in namespaces with
#: jobs, and in its own.
IN_THE_CLUSTER = {("", "nodes"): ["list", "watch"], ("", "pods"): ["list", "watch"]}
WITH_JOBS = {
    ("argoproj.io", "workflows"): ["get", "list", "watch", "patch"],
    ("", "pods"): ["get", "patch", "delete"],
    ("", "secrets"): ["get", "create"],
    ("", "persistentvolumeclaims"): ["get"],
}
ITS_OWN = {
    ("", "configmaps"): ["get", "create", "patch"],
    ("coordination.k8s.io", "leases"): ["get", "create", "patch"],
}
_RBAC = "rbac.authorization.k8s.io/v1"


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """A cluster with one node of two GPUs, a queued job, and an account for the scheduler.

    Attributes:
        admin: A connection that may do anything.
        bench: A namespace for jobs (``one``) and one for the scheduler (``two``), with an administrator's store.
        kubeconfig: The account's.
    """

    admin: HttpTransport
    bench: Bench
    kubeconfig: str

    def store(self) -> KubeStore:
        """A store of the account's."""
        scope = Scope(namespaces=(self.bench.one,), everywhere=frozenset({"Pod"}))
        return KubeStore(Api(connect(Cluster(kubeconfig=self.kubeconfig))), scope)

    def send(self, method: str, path: str, body: Object) -> Object:
        """Something that only an administrator may do."""
        kind = MERGE_PATCH if method == "PATCH" else "application/json"
        answer = self.admin.send(Request(method=method, path=path, body=json.dumps(body), content_type=kind))
        assert answer.status in (HTTPStatus.OK, HTTPStatus.CREATED), answer.body
        found: Object = answer.document()
        return found

    def workflow(self) -> Object:
        """The job's."""
        return self.bench.store.get("Workflow", self.bench.one, "digits")


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[Stage]:
    """A cluster in which a job waits at its gate."""
    admin = cluster()
    name = f"scheduler-{secrets.token_hex(4)}"
    one, two = f"{name}-jobs", f"{name}-own"
    for namespace in (one, two):
        make_namespace(admin, namespace)
    store = KubeStore(Api(cluster()), Scope(namespaces=(one, two), watched=("Workflow", "Pod")))
    made = Stage(admin=admin, bench=Bench(store=store, other=store, one=one, two=two), kubeconfig=f"{tmp_path}/config")
    try:
        _give_rights(made, tmp_path)
        _register_node(made, name)
        store.create(_queued_job(tmp_path, one))
        yield made
    finally:
        store.close()
        for path in (f"namespaces/{one}", f"namespaces/{two}", f"nodes/{name}"):
            admin.send(Request(method="DELETE", path=f"/api/v1/{path}"))
        for kind in ("clusterroles", "clusterrolebindings"):
            admin.send(Request(method="DELETE", path=f"/apis/{_RBAC}/{kind}/{two}"))


def test_a_job_is_granted_started_taken_over_and_pruned_with_these_rights(stage: Stage) -> None:
    """Grant, key, target, history, document, fence and eviction: all that the scheduler writes, it may write."""
    one, two, admin = stage.bench.one, stage.bench.two, stage.bench.store
    first = Scheduler(stage.store(), Place(namespace=two, identity="pod/gone"))
    first.once()
    uid = stage.workflow()["metadata"]["uid"]
    workers = _granted(stage.workflow())
    assert [worker["id"] for worker in workers] == ["w0", "w1"]
    assert admin.get("Secret", one, f"voda-key-{uid}")["metadata"]["ownerReferences"][0]["uid"] == uid

    driver = _run_pod(stage, "driver", uid, workers[0]["node"])
    for worker in workers:
        _run_pod(stage, "worker", uid, worker["node"], worker=worker["id"])

    def published() -> list[Object]:
        first.once()
        return _document(stage, driver)

    document = _until(stage, published)
    assert [worker["id"] for worker in document] == ["w0", "w1"]
    assert admin.get("Lease", two, NAME)["spec"]["holderIdentity"] == "pod/gone"

    second = Scheduler(stage.store(), Place(namespace=two, identity="pod/second"))
    second.once()
    annotated = [
        stage.workflow(),
        admin.get("Pod", one, driver),
        admin.get("ConfigMap", two, "voda-target"),
        admin.get("ConfigMap", two, "voda-history"),
    ]
    assert [body["metadata"]["annotations"][EPOCH] for body in annotated] == ["2"] * 4

    store = stage.store()
    observer = StoreObserver(store, Settings(namespace=two), Reports())
    (job,) = observer.observe().jobs
    StoreEnforcer(store, observer).enforce(Evict(job_id=job.id, segment=0, worker_id="w1", reason="a test"))
    (shown,) = [pod for key, pod in store.snapshot("Pod").items() if key.name == "worker-w1" and key.namespace == one]
    assert "deletionTimestamp" in shown["metadata"]
    store.close()
    second.close()
    first.close()


def test_a_right_that_is_missing_is_named(stage: Stage) -> None:
    """Verb, resource, namespace and account are in the message, whatever was asked for."""
    store, one = stage.store(), stage.bench.one
    account = f"system:serviceaccount:{stage.bench.two}:{ACCOUNT}"
    lacks = f"account '{account}' lacks it"

    with pytest.raises(Forbidden, match=f"right to list secrets in namespace '{one}', {lacks}; give it a Role"):
        store.list("Secret", one)
    with pytest.raises(Forbidden, match=f"right to delete secrets in namespace '{one}', {lacks}"):
        store.delete("Secret", one, "a", uid="u")
    with pytest.raises(Forbidden, match=r"right to create workflows\.argoproj\.io in namespace 'default'"):
        store.create({**stage.workflow(), "metadata": {"name": "x", "namespace": "default"}})
    with pytest.raises(Forbidden, match=f"right to patch nodes in the whole cluster, {lacks}; give it a ClusterRole"):
        store.merge_patch("Node", "", "x", {"spec": {"unschedulable": True}})
    with pytest.raises(Forbidden, match="right to list configmaps in the whole cluster"):
        KubeStore(Api(connect(Cluster(kubeconfig=stage.kubeconfig)))).snapshot("ConfigMap")


def _until(stage: Stage, found: Callable[[], list[Object]]) -> list[Object]:
    """What is found once there is something; looked for after every change."""
    store = stage.bench.store
    for _ in range(int(SOON_S)):
        revision = store.revision()
        if some := found():
            return some
        store.wait(revision, 1.0)
    pytest.fail("expected something by now")


def _granted(workflow: Object) -> list[Object]:
    """The workers in the answer to the job's gate."""
    (gate,) = [node for node in workflow["status"]["nodes"].values() if node["type"] == "Suspend"]
    answer = {row["name"]: row["value"] for row in gate["outputs"]["parameters"]}
    assert (gate["phase"], answer["grant"]) == ("Succeeded", "given")
    workers: list[Object] = json.loads(answer["workers"])
    return workers


def _document(stage: Stage, driver: str) -> list[Object]:
    """The workers in the driver's document."""
    annotations = stage.bench.store.get("Pod", stage.bench.one, driver)["metadata"].get("annotations") or {}
    document = read_document(annotations.get("voda.dev/allocation", ""))
    return [{"id": worker.id, "address": worker.address} for worker in document.workers] if document else []


def _queued_job(folder: Path, namespace: str) -> Object:
    """A job at its gate, as local mode's engine leaves it; the API server takes it with all its status."""
    body = World(folder / "local").submit("digits", min_gpus="2", max_gpus="2")
    body["metadata"] = {"name": "digits", "namespace": namespace}
    return body


def _register_node(stage: Stage, name: str) -> None:
    """A node as its kubelet registers it."""
    labels = {"kubernetes.io/hostname": name}
    stage.send(
        "POST", "/api/v1/nodes", {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": labels}}
    )
    amounts = {"nvidia.com/gpu": "2", "cpu": "8", "memory": "8Gi", "pods": "110"}
    ready = {"type": "Ready", "status": "True", "reason": "KubeletReady"}
    status = {"capacity": amounts, "allocatable": amounts, "conditions": [ready]}
    stage.send("PATCH", f"/api/v1/nodes/{name}/status", {"status": status})
    stage.send("PATCH", f"/api/v1/nodes/{name}", {"spec": {"taints": None}})


def _run_pod(stage: Stage, role: str, workflow_uid: str, node: str, worker: str = "") -> str:
    """A pod of the job that runs and is ready."""
    name, path = f"{role}-{worker}" if worker else role, f"/api/v1/namespaces/{stage.bench.one}/pods"
    labels = {
        "workflows.argoproj.io/workflow": "digits",
        "voda.dev/job": "train",
        "voda.dev/segment": "0",
        "voda.dev/role": role,
        **({"voda.dev/worker": worker} if worker else {}),
    }
    owner = {"apiVersion": "argoproj.io/v1alpha1", "kind": "Workflow", "name": "digits", "uid": workflow_uid}
    limits = {"resources": {"limits": {"nvidia.com/gpu": "1"}}} if worker else {}
    body = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "labels": labels, "ownerReferences": [owner]},
        "spec": {"nodeName": node, "containers": [{"name": "main", "image": "none", **limits}]},
    }
    stage.send("POST", path, body)
    status = {"phase": "Running", "podIP": "127.0.0.9", "conditions": [{"type": "Ready", "status": "True"}]}
    stage.send("PATCH", f"{path}/{name}/status", {"status": status})
    return name


def _give_rights(stage: Stage, folder: Path) -> None:
    """An account with the scheduler's rights, and its kubeconfig."""
    one, two = stage.bench.one, stage.bench.two
    accounts = f"/api/v1/namespaces/{two}/serviceaccounts"
    stage.send("POST", accounts, {"metadata": {"name": ACCOUNT}})
    subject = [{"kind": "ServiceAccount", "name": ACCOUNT, "namespace": two}]
    for kind, where, rights in (
        ("ClusterRole", "", IN_THE_CLUSTER),
        ("Role", f"/namespaces/{one}", WITH_JOBS),
        ("Role", f"/namespaces/{two}", ITS_OWN),
    ):
        rules = [
            {"apiGroups": [group], "resources": [plural], "verbs": verbs} for (group, plural), verbs in rights.items()
        ]
        root = f"/apis/{_RBAC}{where}/{kind.lower()}"
        stage.send("POST", f"{root}s", {"metadata": {"name": two}, "rules": rules})
        role = {"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": two}
        stage.send("POST", f"{root}bindings", {"metadata": {"name": two}, "roleRef": role, "subjects": subject})
    token = stage.send("POST", f"{accounts}/{ACCOUNT}/token", {"spec": {"expirationSeconds": 3600}})["status"]["token"]
    _write_kubeconfig(folder / "config", token)


def _write_kubeconfig(path: Path, token: str) -> None:
    """The tests' own kubeconfig, with another user."""
    found = yaml.safe_load(Path(os.environ[KUBECONFIG]).read_text())
    current = next(one for one in found["contexts"] if one["name"] == found["current-context"])
    current["context"]["user"] = ACCOUNT
    found["users"] = [{"name": ACCOUNT, "user": {"token": token}}]
    path.write_text(yaml.safe_dump(found))

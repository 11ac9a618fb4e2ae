"""Voda on the tests' cluster, as users have it there: the overlay ``test`` applied, the scheduler a pod that decides.

The fixture ``installed`` (``fixture.py``) is one installation for all tests of a run, ``installation`` here the same as
a context manager.
Jobs are submitted as documents and nothing else; what they do is read from the cluster's own objects.
"""

from __future__ import annotations

import contextlib
import json
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import yaml

from scheduler_core.errors import Conflict, NotFound
from tests.cluster.cluster import Cluster
from tests.cluster.faults import ClusterError
from tests.cluster.nodes import NODES
from tests.cluster.overlay import write_overlay
from voda_flows.config import CONFIG_MAP
from voda_flows.control.lease import NAME as LEASE
from voda_flows.control.lease import POD as POD_HOLDER
from voda_flows.install.applying import Manner, apply, resource_for
from voda_flows.install.kustomize import CLUSTER_WIDE
from voda_flows.install.overlays import Wanted, documents
from voda_flows.install.starting import start_scheduler
from voda_flows.kube.cluster import Cluster as Chosen
from voda_flows.kube.store import KubeStore, Scope
from voda_flows.objects import (
    CRON_LABEL,
    POD_ENDED,
    WORKFLOW_ENDED,
    WORKFLOW_LABEL,
    Key,
    Object,
    has_labels,
    num_gpus,
    phase_of,
)
from voda_flows.report.files import SegmentFiles, read_files
from voda_flows.report.lives import JobLife, lives
from voda_flows.worlds import open_api, open_cluster

NAMESPACE = "voda"
#: An event that does not come in this time never will: three agents import PyTorch at once on two cores.
LIMIT_S = 300.0
#: Quicker than in production, where a minute between two disturbances is nothing.
SETTINGS: Mapping[str, str] = {"decide_interval_s": "3"}
EXAMPLES = Path(__file__).resolve().parents[2] / "templates/examples"
_LOOK_S = 1.0
_PODS = f"/api/v1/namespaces/{NAMESPACE}/pods"
ROLE = "voda.dev/role"
_SCHEDULER = {ROLE: "scheduler"}


@dataclass(frozen=True, kw_only=True)
class Installation:
    """Voda on a cluster.

    Attributes:
        cluster: The cluster.
        overlay: The kustomization that was applied: ``voda install --overlay`` takes it too.
        store: All of the namespace's objects, and the pods of all, as the administrator.
        settings: Of the scheduler, as ``reset`` makes them again.
    """

    cluster: Cluster
    overlay: Path
    store: KubeStore
    settings: Mapping[str, str]

    @property
    def volume(self) -> Path:
        """The folder behind the jobs' volume claim."""
        return self.cluster.home.folder / "volume"

    def submit(self, workflow: Object | Path, /, **parameters: str) -> str:
        """Create a Workflow as ``kubectl create`` would.

        Args:
            workflow: Its document, or a file with it.
            parameters: Arguments to set; ``_`` stands for ``-`` in names.

        Returns:
            Its name.
        """
        body = yaml.safe_load(workflow.read_text(encoding="utf-8")) if isinstance(workflow, Path) else workflow
        made: Object = json.loads(json.dumps(body))
        made["metadata"].setdefault("namespace", NAMESPACE)
        given = made["spec"].setdefault("arguments", {}).setdefault("parameters", [])
        for name, value in parameters.items():
            wanted = name.replace("_", "-")
            given[:] = [entry for entry in given if entry["name"] != wanted]
            given.append({"name": wanted, "value": value})
        return str(self.store.create(made)["metadata"]["name"])

    def job(self, name: str, command: str, /, **parameters: str) -> str:
        """Submit a Workflow that is one training job; its name."""
        body = {
            "apiVersion": "argoproj.io/v1alpha1",
            "kind": "Workflow",
            "metadata": {"name": name},
            "spec": {"workflowTemplateRef": {"name": "voda-elastic-job"}},
        }
        return self.submit(body, command=command, **parameters)

    def workflow(self, name: str) -> Object:
        """A Workflow as the watch shows it.

        Raises:
            NotFound: There is none.
        """
        key = Key("Workflow", NAMESPACE, name)
        found = self.store.snapshot("Workflow").get(key)
        if found is None:
            raise NotFound(f"{key}: expected it to be there, it is not")
        return found

    def pods(self, workflow: str, role: str = "") -> list[Object]:
        """The pods of a Workflow as the watch shows them, ended ones too, in order of their creation."""
        labels = {WORKFLOW_LABEL: workflow, **({ROLE: role} if role else {})}
        found = [pod for pod in self._all("Pod") if has_labels(pod, labels)]
        return sorted(found, key=lambda pod: str(pod["metadata"]["creationTimestamp"]))

    def life(self, name: str) -> JobLife | None:
        """The life of a Workflow's only job; None before it has reached the queue."""
        found = lives(self.workflow(name), self.pods(name))
        return found[0] if found else None

    def files(self, name: str) -> dict[int, SegmentFiles]:
        """What a Workflow's only job has left on the volume, by segment."""
        root = self.volume / NAMESPACE / self.workflow(name)["metadata"]["uid"]
        jobs = list(root.iterdir()) if root.is_dir() else []
        return read_files(jobs[0]) if jobs else {}

    def until(self, holds: Callable[[], bool], limit_s: float = LIMIT_S) -> bool:
        """Wait for something to be so, looked at after every change and each second; False when it never was."""
        end_s = time.monotonic() + limit_s
        while not (held := holds()) and time.monotonic() < end_s:
            self.store.wait(self.store.revision(), _LOOK_S)
        return held

    def until_life(self, name: str, holds: Callable[[JobLife], bool], limit_s: float = LIMIT_S) -> JobLife:
        """Wait for something to be so of a Workflow's only job; what it is then.

        Raises:
            ClusterError: It never was; with what is known of it.
        """
        found: list[JobLife] = []

        def is_so() -> bool:
            life = self.life(name)
            found[:] = [life] if life is not None else []
            return life is not None and holds(life)

        if not self.until(is_so, limit_s):
            raise ClusterError(f"job {name}: expected another state within {limit_s:.0f} s, it is {found}\n"
                               f"{self.story(name)}")  # fmt: skip
        return found[0]

    def wait_ended(self, name: str, timeout_s: float = LIMIT_S) -> Object:
        """Wait until a Workflow has ended; returns it. One that others have just made may not have been seen yet.

        Raises:
            ClusterError: It did not in time; with what is known of it.
        """
        key = Key("Workflow", NAMESPACE, name)
        if not self.until(lambda: phase_of(self.store.snapshot("Workflow").get(key, {})) in WORKFLOW_ENDED, timeout_s):
            raise ClusterError(f"workflow {name}: expected it to end within {timeout_s:.0f} s\n{self.story(name)}")
        return self.workflow(name)

    def logs(self, workflow: str) -> dict[str, str]:
        """What the pods of a Workflow have said, by pod."""
        return {pod["metadata"]["name"]: self.log(pod["metadata"]["name"]) for pod in self.pods(workflow)}

    def log(self, pod: str) -> str:
        """What a pod has said; why that cannot be told where it cannot."""
        try:
            return self.cluster.api.text(f"{_PODS}/{pod}/log?container=main")
        except ClusterError as fault:
            return f"(no log: {fault})"

    def scheduler_pods(self) -> list[Object]:
        """Pods of the scheduler that have not ended."""
        return [pod for pod in self._all("Pod") if has_labels(pod, _SCHEDULER) and phase_of(pod) not in POD_ENDED]

    def scheduler_log(self) -> str:
        """What all pods of the scheduler have said, those that ended too."""
        found = [pod for pod in self._all("Pod") if has_labels(pod, _SCHEDULER)]
        return "\n".join(self.log(pod["metadata"]["name"]) for pod in found)

    def holder(self) -> Object | None:
        """The scheduler's pod that holds the Lease; None while none does."""
        try:
            holder = self.store.get("Lease", NAMESPACE, LEASE)["spec"].get("holderIdentity") or ""
        except NotFound:
            return None
        uids = {f"{POD_HOLDER}{pod['metadata']['uid']}": pod for pod in self.scheduler_pods()}
        return uids.get(holder)

    def wait_for_scheduler(self, limit_s: float = LIMIT_S) -> None:
        """Wait until a scheduler that runs holds the Lease.

        Raises:
            ClusterError: None does, after ``limit_s``.
        """
        if not self.until(lambda: self.holder() is not None, limit_s):
            raise ClusterError(f"expected a scheduler to hold the Lease within {limit_s:.0f} s\n{self.scheduler_log()}")

    def configure(self, **settings: str) -> None:
        """Set the scheduler's settings to these and no others; a running one takes them over in its next round."""
        version = self.store.get("ConfigMap", NAMESPACE, CONFIG_MAP)
        self.store.replace({**version, "data": dict(settings)})

    def reset(self) -> None:
        """Take away all that tests have left: Workflows, their pods, settings, cordons; a scheduler decides again.

        Raises:
            ClusterError: Something stays; says what.
        """
        for workflow in self._jobs():
            with contextlib.suppress(NotFound):
                self.store.delete("Workflow", NAMESPACE, workflow["metadata"]["name"])
        for pod in self._held():
            self.cluster.api.delete(f"{_PODS}/{pod['metadata']['name']}?gracePeriodSeconds=1")
        for node in self.store.list("Node"):
            if node["spec"].get("unschedulable"):
                self.cluster.api.patch(f"{NODES}/{node['metadata']['name']}", {"spec": {"unschedulable": None}})
        if not self.until(lambda: not self._jobs() and not self._held()):
            left = [body["metadata"]["name"] for body in (*self._jobs(), *self._held())]
            raise ClusterError(f"expected every Workflow and pod of the tests to go, there still are {left}")
        if (self.store.get("ConfigMap", NAMESPACE, CONFIG_MAP).get("data") or {}) != dict(self.settings):
            self.configure(**self.settings)
        self.wait_for_scheduler()

    def gpus_held(self) -> int:
        """GPUs of pods in the namespace that have not ended."""
        containers = [row for pod in self._held() for row in pod["spec"]["containers"]]
        return sum(num_gpus((row.get("resources") or {}).get("limits")) for row in containers)

    def story(self, workflow: str) -> str:
        """All that is known of a Workflow, for whoever wants to know why something failed."""
        found = self.store.snapshot("Workflow").get(Key("Workflow", NAMESPACE, workflow), {})
        nodes = (found.get("status") or {}).get("nodes") or {}
        rows = [f"{row['displayName']} {row.get('phase')} {row.get('message') or ''}" for row in nodes.values()]
        said = [f"--- {name}\n{text[-3000:]}" for name, text in self.logs(workflow).items()]
        return "\n".join([*rows, *said, "--- scheduler", self.scheduler_log()[-4000:]])

    def _jobs(self) -> list[Object]:
        """Workflows that are no run of the scheduler."""
        return [body for body in self._all("Workflow") if CRON_LABEL not in (body["metadata"].get("labels") or {})]

    def _held(self) -> list[Object]:
        """Pods that are not the scheduler's and have not ended."""
        return [pod for pod in self._all("Pod") if not has_labels(pod, _SCHEDULER) and phase_of(pod) not in POD_ENDED]

    def _all(self, kind: str) -> list[Object]:
        """Everything of a kind in the namespace."""
        return [body for key, body in self.store.snapshot(kind).items() if key.namespace == NAMESPACE]


@contextlib.contextmanager
def installation(on: Cluster, settings: Mapping[str, str] = SETTINGS) -> Iterator[Installation]:
    """Voda on a cluster that is up; gone at the end of the block.

    Args:
        on: The cluster.
        settings: The scheduler's.
    """
    made = install(on, settings)
    try:
        yield made
    finally:
        try:
            uninstall(made)
        finally:
            made.store.close()


def install(on: Cluster, settings: Mapping[str, str] = SETTINGS) -> Installation:
    """Put Voda onto a cluster that is up, as ``voda install`` does, and wait until its scheduler decides."""
    overlay = write_overlay(on.home)
    wanted = documents(Wanted(overlay=str(overlay)))
    chosen = Chosen(kubeconfig=str(on.kubeconfig))
    api = open_api(chosen)
    store = open_cluster(chosen, scope=Scope(namespaces=(NAMESPACE,), everywhere=frozenset({"Pod"})))
    made = Installation(cluster=on, overlay=overlay, store=store, settings=settings)
    try:
        for _ in apply(api, wanted, Manner(is_forced=True)):
            pass
        made.configure(**settings)
        start_scheduler(api, wanted)
    finally:
        api.close()
    made.wait_for_scheduler()
    return made


def uninstall(made: Installation) -> None:
    """Take Voda off its cluster, jobs and all."""
    store = made.store
    with contextlib.suppress(NotFound):
        store.delete("CronWorkflow", NAMESPACE, "voda-scheduler")
    for workflow in store.list("Workflow", NAMESPACE):
        with contextlib.suppress(NotFound, Conflict):
            store.delete("Workflow", NAMESPACE, workflow["metadata"]["name"])
    for pod in store.list("Pod", NAMESPACE):
        made.cluster.api.delete(f"{_PODS}/{pod['metadata']['name']}?gracePeriodSeconds=1")
    for document in documents(Wanted(overlay=str(made.overlay))):
        if document["kind"] in CLUSTER_WIDE:
            resource = resource_for(document["kind"])
            made.cluster.api.delete(f"{resource.collection()}/{document['metadata']['name']}")
    made.cluster.api.wait_until_gone("/api/v1/namespaces", NAMESPACE, LIMIT_S)

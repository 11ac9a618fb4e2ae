"""A whole world of local mode as tests see it: engine, scheduler, jobs, and every process that belongs to it.

In: a folder for its state. Out: what the store says, and pids by kind, found through the pods' folders and ``/proc``.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from tests.e2e.rig import lives
from voda_flows.control.settings import configure
from voda_flows.local import up as local
from voda_flows.local.nodes import held_slots, node_of
from voda_flows.local.processes import named_by, parent_of
from voda_flows.local.store import LocalStore
from voda_flows.objects import POD_ENDED, WORKFLOW_ENDED, Object

ROOT = Path(__file__).resolve().parents[2]
LIFE = f"python {ROOT}/tests/e2e/train_life.py"
NAMESPACE = "default"
EVENT_LIMIT_S = 180.0  # three agents warm up at once on two cores that others use too
KINDS = ("worker", "driver", "agent", "pod", "engine", "scheduler")
_ROLE = {"driver": "driver", "agent": "worker", "scheduler": "scheduler"}
_LOOK_S = 0.5


@dataclass(frozen=True, kw_only=True)
class LocalWorld:
    """A world that is up.

    Attributes:
        home: folder of its state.
        store: what it knows.
    """

    home: Path
    store: LocalStore

    def submit(self, name: str, inputs: Mapping[str, str], deadline_s: int | None = None) -> str:
        """Submit a job; its Workflow's uid."""
        spec: Object = {
            "arguments": {"parameters": [{"name": key, "value": value} for key, value in inputs.items()]},
            "workflowTemplateRef": {"name": "voda-elastic-job"},
        }
        if deadline_s is not None:
            spec["activeDeadlineSeconds"] = deadline_s
        body = {
            "apiVersion": "argoproj.io/v1alpha1",
            "kind": "Workflow",
            "metadata": {"name": name, "namespace": NAMESPACE, "annotations": {"voda.dev/workdir": str(self.home)}},
            "spec": spec,
        }
        return str(self.store.create(body)["metadata"]["uid"])

    def phases(self) -> dict[str, str]:
        """Phase of every Workflow of jobs."""
        return {
            body["metadata"]["name"]: (body.get("status") or {}).get("phase") or ""
            for body in self.store.list("Workflow", NAMESPACE)
        }

    def have_ended(self) -> bool:
        """Whether all jobs have."""
        return all(phase in WORKFLOW_ENDED for phase in self.phases().values())

    def until(self, holds: Callable[[], bool], limit_s: float = EVENT_LIMIT_S) -> bool:
        """Wait for something to be so; looked at after each change, and twice a second; False when it never was."""
        end_s = time.monotonic() + limit_s
        while not (held := holds()) and time.monotonic() < end_s:
            self.store.wait(self.store.revision(), _LOOK_S)
        return held

    def pods(self, role: str = "") -> list[Object]:
        """Pods that have not ended, of any namespace."""
        found = self.store.list("Pod", labels={"voda.dev/role": role} if role else None)
        return [pod for pod in found if (pod.get("status") or {}).get("phase") not in POD_ENDED]

    def processes(self, kind: str) -> list[int]:
        """Pids of a kind (``KINDS``): a worker is a training rank, the child of its agent; a pod is what runs one."""
        if kind == "engine":
            pid = named_by(self.home / "engine.json")
            return [] if pid is None else [pid]
        if kind == "worker":
            return sorted(rank for agent in self.processes("agent") for rank in _children(agent))
        found = [parent_of(self.home / "pods" / pod["metadata"]["uid"]) for pod in self.pods(_ROLE.get(kind, ""))]
        parents = sorted(pid for pid in found if pid is not None)
        return parents if kind == "pod" else sorted(pid for parent in parents for pid in _children(parent))

    def orphans(self) -> list[int]:
        """Processes of pods of this world that have ended or are not there any more."""
        live = {pod["metadata"]["uid"] for pod in self.pods()}
        ours = {folder.name for folder in (self.home / "pods").glob("*")}
        marked = _marked()
        return sorted(pid for pid, uid in marked.items() if uid in ours - live)

    def slots_of_the_dead(self) -> list[str]:
        """Slots held by pods whose Workflow has ended or is gone."""
        live = {body["metadata"]["name"] for body in self.store.list("Workflow", NAMESPACE) if not _has_ended(body)}
        return sorted(
            f"{node_of(pod)}:{index}"
            for pod in self.pods()
            if pod["metadata"]["labels"].get("workflows.argoproj.io/workflow") not in live
            for index in held_slots(pod)
        )

    def root(self, uid: str) -> Path:
        """The folder of a job's checkpoints."""
        return self.home / "volumes" / "voda" / NAMESPACE / uid / "train"

    def up(self) -> None:
        """What a person does after the engine was killed."""
        local.up(self.home)

    def logs(self) -> str:
        """The ends of the logs of jobs' pods, for whoever wants to know why something failed."""
        texts = []
        for pod in self.store.list("Pod", NAMESPACE):
            log = self.home / "pods" / pod["metadata"]["uid"] / "main.log"
            if log.exists():
                texts.append(f"{pod['metadata']['name']}:\n{log.read_text(errors='replace')[-1500:]}")
        return "\n".join(texts)


@contextlib.contextmanager
def local_world(home: Path, nodes: str = "2x2", **settings: str) -> Iterator[LocalWorld]:
    """A world that is ended, with all its processes, at the end of the block; its files stay."""
    store = LocalStore(home)
    configure(store, {"decide_interval_s": "3", **settings}, where="a test's settings")
    local.up(home, local.read_nodes(nodes))
    try:
        yield LocalWorld(home=home, store=store)
    finally:
        local.down(home, drain_s=0.0)


def of_home(home: Path) -> list[int]:
    """Processes that still work for a home: they have it in their environment or command."""
    told = os.fsencode(home)
    found = []
    for path in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if (
                int(path.name) != os.getpid()
                and told in (path / "environ").read_bytes() + (path / "cmdline").read_bytes()
            ):
                found.append(int(path.name))
    return sorted(found)


def _has_ended(workflow: Object) -> bool:
    return (workflow.get("status") or {}).get("phase") in WORKFLOW_ENDED


def _children(pid: int) -> list[int]:
    try:
        found = [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except OSError:
        return []
    return [child for child in found if lives(child)]


def _marked() -> dict[int, str]:
    """Uid of its pod by pid, of every living process that has one."""
    found = {}
    for path in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            words = (path / "environ").read_bytes().split(b"\0")
            if uid := next((word[9:].decode() for word in words if word.startswith(b"VODA_POD=")), ""):
                found[int(path.name)] = uid
    return found

"""A whole elastic life with real training, scheduler and all, in both worlds: what its history reads like at the end.

In: a place where Voda is up, with three nodes of two GPUs. Out: the job's nodes in the order in which the UI draws
them. Nothing is assumed of names or texts, which are the template's: they are held against one another.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from time import monotonic

from scheduler_core.errors import NotFound, Unreachable
from tests.cluster.places import REPOSITORY
from voda_flows.objects import WORKFLOW_ENDED, WORKFLOW_LABEL, Key, Object, phase_of
from voda_flows.report.lives import JobLife, lives
from voda_flows.store import ObjectStore

LIFE = f"python {REPOSITORY}/tests/e2e/train_life.py"
#: Ten steps of 0.3 s an epoch on one GPU; each worker adds a row for every step.
SAMPLES, STEP_S = 120, 0.3
EPOCHS = 40
LIMIT_S = 420.0
LOOK_S = 1.0
#: Values of outputs that are decisions; all others are measured.
DECIDED = ("grant", "more", "state")


@dataclass(frozen=True, kw_only=True)
class Stead:
    """A place where Voda is up.

    Attributes:
        store: Its objects.
        namespace: Of the jobs.
        hold: Takes GPUs of a node, by a pod that is not a job's.
        free: Gives them back.
    """

    store: ObjectStore
    namespace: str
    hold: Callable[[str, int], None]
    free: Callable[[str], None]

    def submit(self, name: str, **parameters: str) -> None:
        """Submit a job; ``_`` stands for ``-`` in names."""
        given = {"command": f"{LIFE} {SAMPLES} {STEP_S}", **parameters}
        rows = [{"name": key.replace("_", "-"), "value": value} for key, value in given.items()]
        spec = {"workflowTemplateRef": {"name": "voda-elastic-job"}, "arguments": {"parameters": rows}}
        self.store.create({"apiVersion": "argoproj.io/v1alpha1", "kind": "Workflow",
                           "metadata": {"name": name, "namespace": self.namespace}, "spec": spec})  # fmt: skip

    def workflow(self, name: str) -> Object:
        """The Workflow, empty where the watch does not show it yet."""
        return self.store.snapshot("Workflow").get(Key("Workflow", self.namespace, name)) or {}

    def life(self, name: str) -> JobLife | None:
        """The life of a Workflow's job, None before it has one."""
        pods = [pod for pod in self.store.snapshot("Pod").values()
                if (pod["metadata"].get("labels") or {}).get(WORKFLOW_LABEL) == name]  # fmt: skip
        workflow = self.workflow(name)
        found = lives(workflow, pods) if workflow else []
        return found[0] if found else None

    def until(self, holds: Callable[[], bool], what: str) -> None:
        """Wait until something is so.

        Raises:
            TimeoutError: It never was.
        """
        deadline_s = monotonic() + LIMIT_S
        while not _is_so(holds):
            if monotonic() > deadline_s:
                raise TimeoutError(f"{self.namespace}: expected {what} within {LIMIT_S:.0f} s")
            self.store.wait(self.store.revision(), LOOK_S)

    def trains(self, name: str, size: int) -> None:
        """Wait until a job trains with so many workers."""

        def is_so() -> bool:
            life = self.life(name)
            return life is not None and life.phase == "Running" and life.size == size

        self.until(is_so, f"{name} to train on {size}")

    def ends(self, name: str) -> None:
        """Wait until a Workflow has ended."""
        self.until(lambda: phase_of(self.workflow(name)) in WORKFLOW_ENDED, f"{name} to end")


def _is_so(holds: Callable[[], bool]) -> bool:
    try:
        return holds()
    except (NotFound, Unreachable):  # a busy API server
        return False


def real_life(stead: Stead) -> list[str]:
    """A job that starts with one GPU, grows, is preempted for an urgent one, resumes, and is done; its history."""
    for node, gpus in (("n0", 1), ("n1", 2), ("n2", 2)):
        stead.hold(node, gpus)
    stead.submit("elastic", min_gpus="1", max_gpus="2", epochs=str(EPOCHS))
    stead.trains("elastic", 1)
    stead.free("n0")
    stead.trains("elastic", 2)
    stead.submit("urgent", min_gpus="2", max_gpus="2", epochs="1", priority="high")
    for name in ("urgent", "elastic"):
        stead.ends(name)
    return [line for name in ("urgent", "elastic") for line in history(stead.workflow(name))]


def history(workflow: Object) -> list[str]:
    """A Workflow's nodes from its root on, each before its children, indented, with how they ended."""
    nodes: Mapping[str, Object] = workflow["status"]["nodes"]
    return [f"Workflow {workflow['status']['phase']}", *_lines(nodes, workflow["metadata"]["name"], 1, set())]


def _lines(nodes: Mapping[str, Object], key: str, depth: int, seen: set[str]) -> Iterator[str]:
    if key in seen:
        return
    seen.add(key)
    node = nodes[key]
    outputs = [f"{each['name']}={_value(each)}" for each in (node.get("outputs") or {}).get("parameters") or ()]
    said = re.sub(r"[\d.]+", "#", node.get("message") or "")
    words = (node["displayName"], node["type"], node.get("templateName", ""), node["phase"], said, *outputs)
    yield "  " * depth + " ".join(word for word in words if word)
    for child in node.get("children") or ():
        yield from _lines(nodes, child, depth + 1, seen)


def _value(output: Object) -> str:
    return str(output.get("value")) if output["name"] in DECIDED else "..."

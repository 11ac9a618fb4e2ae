"""What the tests of real life on a cluster share: the users' own programs, small real jobs, strangers on GPUs.

In: an ``Installation``. Out: what ``argo`` and ``kubectl`` said, and what a job left on its volume.
"""

from __future__ import annotations

import contextlib
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from scheduler_core.errors import NotFound
from tests.cluster import programs
from tests.cluster.faults import ClusterError
from tests.cluster.installed import LIMIT_S, NAMESPACE, Installation
from tests.cluster.places import REPOSITORY
from tests.cluster.trial import PODS, pod
from voda_flows.control.explain import explain
from voda_flows.control.pods import gpus as gpus_of
from voda_flows.control.pods import has_ended, is_leaving
from voda_flows.control.settings import SettingsSource
from voda_flows.objects import WORKFLOW_LABEL, Key, Object
from voda_flows.workflows.tree import Tree, tree

#: A real elastic job: so many samples an epoch, twelve a step, seconds a step.
SAMPLES, STEP_S = 600, 0.05
LIFE = f"python {REPOSITORY}/tests/e2e/train_life.py {SAMPLES} {STEP_S}"
#: It goes on for as long as a test needs it.
LONG = "2000"
_PROGRAM_LIMIT_S = 120.0
_AWAY = "/api/v1/namespaces/default/pods"


def run(made: Installation, program: str, *words: str) -> str:
    """Run ``argo`` or ``kubectl`` in the namespace of the jobs, as a user does; what it said.

    Raises:
        ClusterError: It failed; with its words.
    """
    command = [programs.provide().path(program), "--kubeconfig", str(made.cluster.kubeconfig), "-n", NAMESPACE, *words]
    done = subprocess.run(command, capture_output=True, text=True, timeout=_PROGRAM_LIMIT_S, check=False)
    if done.returncode:
        raise ClusterError(f"{program} {' '.join(words)}: exit code {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout


def argo(made: Installation, *words: str) -> str:
    """Run ``argo``, see ``run``; the watch has seen then what that did to a Workflow."""
    said = run(made, "argo", *words)
    if words[0] in ("stop", "terminate", "suspend", "resume", "retry"):
        body = made.store.get("Workflow", NAMESPACE, words[1])
        written = int(body["metadata"]["resourceVersion"])
        assert made.until(lambda: int(made.workflow(words[1])["metadata"]["resourceVersion"]) >= written), words
    return said


def kubectl(made: Installation, *words: str) -> str:
    """Run ``kubectl``; see ``run``."""
    return run(made, "kubectl", *words)


@contextlib.contextmanager
def strangers(made: Installation, **gpus_by_node: int) -> Iterator[None]:
    """Pods of somebody else that hold GPUs, in another namespace; gone at the end of the block."""
    names = [f"stranger-{node}-{number}" for node, count in gpus_by_node.items() for number in range(count)]
    try:
        for name in names:
            made.cluster.api.post(_AWAY, pod(name, "sleep", "infinity", node=name.split("-")[1], gpus=1))
        for name in names:
            made.cluster.api.wait(_AWAY, name, lambda found: found["status"].get("phase") == "Running", LIMIT_S)
        yield
    finally:
        for name in names:
            made.cluster.api.delete(f"{_AWAY}/{name}?gracePeriodSeconds=0")
        for name in names:
            made.cluster.api.wait_until_gone(PODS, name, LIMIT_S)


@contextlib.contextmanager
def closed(installed: Installation, node: str, *, by_taint: bool = False) -> Iterator[None]:
    """A node that takes nothing new."""
    taint = "maintenance=soon:NoSchedule"
    kubectl(installed, *(("taint", "node", node, taint) if by_taint else ("cordon", node)))
    try:
        yield
    finally:
        kubectl(installed, *(("taint", "node", node, f"{taint}-") if by_taint else ("uncordon", node)))


def holders(made: Installation, workflow: str) -> list[str]:
    """Pods of a Workflow that are on a node and hold GPUs there, ended ones not."""
    return [
        str(found["metadata"]["name"])
        for key, found in made.store.snapshot("Pod").items()
        if key.namespace == NAMESPACE and (found["metadata"].get("labels") or {}).get(WORKFLOW_LABEL) == workflow
        if gpus_of(found) and found["spec"].get("nodeName") and not has_ended(found)
    ]


def freed_after_s(made: Installation, workflow: str, deed: Callable[[], object]) -> float:
    """Seconds from a deed to the moment at which no pod of a Workflow holds a GPU, grace periods included.

    Raises:
        ClusterError: Some still does after ``LIMIT_S``.
    """
    began_s = time.monotonic()
    deed()
    if not made.until(lambda: not holders(made, workflow)):
        raise ClusterError(f"{workflow}: expected its GPUs to be free, these hold some: {holders(made, workflow)}")
    return time.monotonic() - began_s


def trains(made: Installation, workflow: str, size: int = 0, beyond: int = 0) -> None:
    """Wait until a Workflow's only job trains (with so many workers, and has come so far, hundredths of an epoch).

    Raises:
        ClusterError: It never does.
    """
    made.until_life(
        workflow,
        lambda life: life.phase == "Running" and life.size >= max(1, size) and life.done > beyond,
    )


def queued_again(made: Installation, workflow: str, segment: int) -> None:
    """Wait until a Workflow's only job waits at the gate of a segment.

    Raises:
        ClusterError: It never does.
    """
    made.until_life(workflow, lambda life: life.phase == "Queued" and life.segments[-1].number == segment)


def explained(made: Installation, workflow: str) -> str:
    """What ``voda explain`` says of a job; nothing before it has reached the queue and after its end."""
    settings = SettingsSource(made.store, NAMESPACE).changed()
    assert settings is not None
    try:
        return "\n".join(explain(made.store, settings, workflow, namespace=NAMESPACE))
    except NotFound:
        return ""


def nodes(made: Installation, workflow: str) -> Tree:
    """The nodes of a Workflow."""
    return tree(made.workflow(workflow))


def of_template(made: Installation, workflow: str, template: str) -> list[Object]:
    """Its nodes that come from a template, in the order of their start."""
    found = [node for node in nodes(made, workflow).nodes.values() if node.get("templateName") == template]
    return sorted(found, key=lambda node: (node.get("startedAt") or "", node["name"]))


def root(made: Installation, workflow: str, job: str = "train") -> Path:
    """The folder of a job's checkpoints."""
    uid = made.store.get("Workflow", NAMESPACE, workflow)["metadata"]["uid"]
    return made.volume / NAMESPACE / str(uid) / job


def driver_says(made: Installation, workflow: str) -> list[str]:
    """The lines with allocation documents in the logs of a Workflow's drivers, by age of the driver."""
    found = [made.log(each["metadata"]["name"]) for each in made.pods(workflow, "driver")]
    return [line for text in found for line in text.splitlines() if "document" in line]


def gone(made: Installation, workflow: str) -> bool:
    """Whether a Workflow is not there any more."""
    return Key("Workflow", NAMESPACE, workflow) not in made.store.snapshot("Workflow")


def live_pods(made: Installation, workflow: str) -> list[Object]:
    """Pods of a Workflow that neither have ended nor were told to."""
    return [found for found in made.pods(workflow) if not has_ended(found) and not is_leaving(found)]

"""What nodes, jobs and workers use at one moment: GPU slots, CPU, memory, and samples a second as drivers report them.

In: a snapshot, pods, and what the world's meter says of them. Out: frozen values for ``voda top``. Pure but for
``Gauge``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from voda_flows.cli import snapshot
from voda_flows.cli.snapshot import NodeView, Snapshot
from voda_flows.control.reports import DriverStatus, Reports
from voda_flows.objects import POD_ENDED, WORKFLOW_LABEL, Object, phase_of
from voda_flows.report.jobs import Named
from voda_flows.report.lives import JobLife
from voda_flows.world import Reading, Used, World


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """What something uses.

    Attributes:
        name: Of the node, the job, or the worker.
        phase: Of the job or the pod; of a node, whether it takes new pods.
        node: The worker's node.
        gpus: GPU slots held.
        gpus_of: GPU slots there are (a node), or asked for (a job).
        used: CPU and memory of its processes.
        samples_per_s: As its driver reported, None where none did.
    """

    name: str
    phase: str
    node: str = ""
    gpus: int
    gpus_of: str = ""
    used: Used
    samples_per_s: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Top:
    """All of it: nodes by name, jobs by submission, and the pods of each job."""

    now: Snapshot
    nodes: tuple[Load, ...]
    jobs: tuple[Load, ...]
    pods: tuple[tuple[Load, ...], ...]


class Gauge:
    """Measures a world again and again; one thread uses it.

    Args:
        world: The world.
        namespace: Of the jobs; None for all.
        meant: Which jobs are shown.
    """

    def __init__(self, world: World, namespace: str | None, meant: Callable[[Named], bool]) -> None:
        self._world = world
        self._namespace = namespace
        self._meant = meant
        self._reports = Reports(fetch=world.fetch)
        self._meter = world.meter()

    def take(self) -> Top:
        """Look now; CPU is of the time since the last look."""
        now = snapshot.take(self._world, self._namespace, self._meant)
        pods = [pod for pod in self._world.whole.list("Pod") if phase_of(pod) not in POD_ENDED]
        return top(now, pods, self._reports.pull(_drivers(pods)), self._meter.read())

    def close(self) -> None:
        """Let go of what it asks drivers with."""
        self._reports.close()


def top(now: Snapshot, pods: Iterable[Object], said: Mapping[str, DriverStatus], used: Reading) -> Top:
    """Put it together.

    Args:
        now: Nodes and jobs.
        pods: Pods that have not ended.
        said: What drivers last said, by uid.
        used: What pods use.
    """
    there = list(pods)
    on_node = {node.name: [pod for pod in there if _node(pod) == node.name] for node in now.nodes}
    of_job = {life.id: [pod for pod in there if _is_of(pod, life)] for life in now.lives}
    return Top(
        now=now,
        nodes=tuple(_node_load(node, used.of(on_node[node.name])) for node in now.nodes),
        jobs=tuple(_job(life, of_job[life.id], said, used) for life in now.lives),
        pods=tuple(tuple(_pod(pod, used) for pod in of_job[life.id]) for life in now.lives),
    )


def _node_load(node: NodeView, used: Used) -> Load:
    """A node's load."""
    return Load(
        name=node.name,
        phase="Ready" if node.ready else "Closed",
        gpus=len(node.holders) - node.holders.count(""),
        gpus_of=str(len(node.holders)),
        used=used,
    )


def _job(life: JobLife, pods: list[Object], said: Mapping[str, DriverStatus], used: Reading) -> Load:
    """A job's load; a driver that trains says how fast."""
    speeds = [said[uid].samples_per_s for uid in map(_uid, pods) if uid in said]
    return Load(
        name=life.label,
        phase=life.phase,
        gpus=life.gpus,
        gpus_of=life.asks,
        used=used.of(pods),
        samples_per_s=speeds[0] if speeds else None,
    )


def _pod(pod: Object, used: Reading) -> Load:
    """A pod's load."""
    labels = pod["metadata"].get("labels") or {}
    return Load(
        name=labels.get("voda.dev/worker") or labels.get("voda.dev/role") or pod["metadata"]["name"],
        phase=phase_of(pod) or "Pending",
        node=_node(pod),
        gpus=snapshot.gpus_held(pod),
        used=used.of([pod]),
    )


def _drivers(pods: Iterable[Object]) -> dict[str, str]:
    """Addresses of drivers by the uids of their pods."""
    return {
        _uid(pod): pod["status"]["podIP"]
        for pod in pods
        if (pod["metadata"].get("labels") or {}).get("voda.dev/role") == "driver"
        and (pod.get("status") or {}).get("podIP")
    }


def _is_of(pod: Object, life: JobLife) -> bool:
    """Whether a pod is of a job."""
    meta = pod["metadata"]
    labels = meta.get("labels") or {}
    return (meta["namespace"], labels.get(WORKFLOW_LABEL), labels.get("voda.dev/job")) == (
        life.namespace,
        life.workflow,
        life.name,
    )


def _node(pod: Object) -> str:
    """The node that a pod is bound to, empty before."""
    return str((pod.get("spec") or {}).get("nodeName") or "")


def _uid(pod: Object) -> str:
    """A pod's uid."""
    return str(pod["metadata"]["uid"])

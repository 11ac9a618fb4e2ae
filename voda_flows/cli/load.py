"""What nodes, jobs and workers use at one moment: GPU slots, CPU, memory, and samples a second as drivers report them.

In: a snapshot, pods, and what ``/proc`` said at two moments. Out: frozen values for ``voda top``. Pure but for
``Meter``.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from voda_flows.cli import snapshot
from voda_flows.cli.snapshot import NodeView, Snapshot
from voda_flows.control.reports import DriverStatus, Reports
from voda_flows.local.store import LocalStore
from voda_flows.local.usage import Usage, usage_by_pod
from voda_flows.objects import POD_ENDED, WORKFLOW_LABEL, Object, phase_of
from voda_flows.report.jobs import Named
from voda_flows.report.lives import JobLife


@dataclass(frozen=True, slots=True, kw_only=True)
class Used:
    """What processes were seen to use.

    Attributes:
        cpu_percent: Of one core, over the last interval; None before there was one.
        memory_bytes: Held by them.
        processes: How many there are.
    """

    cpu_percent: float | None
    memory_bytes: int
    processes: int


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """What pods used at a moment (of the monotonic clock)."""

    at_s: float
    by_pod: Mapping[str, Usage] = field(default_factory=dict)

    def percent_since(self, before: Reading, uids: Iterable[str]) -> float | None:
        """CPU of pods since another reading, in percent of one core; a pod that is new counts from its start."""
        passed_s = self.at_s - before.at_s
        if passed_s <= 0 or not before.at_s:
            return None
        used_s = sum(
            self.by_pod.get(uid, Usage()).cpu_s - before.by_pod.get(uid, self.by_pod.get(uid, Usage())).cpu_s
            for uid in uids
        )
        return max(0.0, 100.0 * used_s / passed_s)


class Meter:
    """Measures a world again and again; one thread uses it.

    Args:
        store: The world.
        namespace: Of the jobs; None for all.
        meant: Which jobs are shown.
    """

    def __init__(self, store: LocalStore, namespace: str | None, meant: Callable[[Named], bool]) -> None:
        self._store = store
        self._namespace = namespace
        self._meant = meant
        self._reports = Reports()
        self._before = Reading(at_s=0.0)

    def take(self) -> Top:
        """Look now; CPU is of the time since the last look."""
        now = snapshot.take(self._store, self._namespace, self._meant)
        pods = [pod for pod in self._store.list("Pod") if phase_of(pod) not in POD_ENDED]
        reading = Reading(at_s=time.monotonic(), by_pod=usage_by_pod())
        said = self._reports.pull(_drivers(pods))
        before, self._before = self._before, reading
        return top(now, pods, said, (before, reading))

    def close(self) -> None:
        """Let go of what it asks drivers with."""
        self._reports.close()


def top(
    now: Snapshot, pods: Iterable[Object], said: Mapping[str, DriverStatus], readings: tuple[Reading, Reading]
) -> Top:
    """Put it together.

    Args:
        now: Nodes and jobs.
        pods: Pods that have not ended.
        said: What drivers last said, by uid.
        readings: What processes used before, and now.
    """
    there = list(pods)
    on_node = {node.name: [pod for pod in there if _node(pod) == node.name] for node in now.nodes}
    of_job = {life.id: [pod for pod in there if _is_of(pod, life)] for life in now.lives}
    return Top(
        now=now,
        nodes=tuple(_node_load(node, on_node[node.name], readings) for node in now.nodes),
        jobs=tuple(_job(life, of_job[life.id], said, readings) for life in now.lives),
        pods=tuple(tuple(_pod(pod, readings) for pod in of_job[life.id]) for life in now.lives),
    )


def _node_load(node: NodeView, pods: list[Object], readings: tuple[Reading, Reading]) -> Load:
    """A node's load."""
    return Load(
        name=node.name,
        phase="Ready" if node.ready else "Closed",
        gpus=len(node.holders) - node.holders.count(""),
        gpus_of=str(len(node.holders)),
        used=_used(pods, readings),
    )


def _job(
    life: JobLife, pods: list[Object], said: Mapping[str, DriverStatus], readings: tuple[Reading, Reading]
) -> Load:
    """A job's load; a driver that trains says how fast."""
    speeds = [said[uid].samples_per_s for uid in map(_uid, pods) if uid in said]
    return Load(
        name=life.label,
        phase=life.phase,
        gpus=life.gpus,
        gpus_of=life.asks,
        used=_used(pods, readings),
        samples_per_s=speeds[0] if speeds else None,
    )


def _pod(pod: Object, readings: tuple[Reading, Reading]) -> Load:
    """A pod's load."""
    labels = pod["metadata"].get("labels") or {}
    slots = (pod["metadata"].get("annotations") or {}).get("voda.dev/slots", "")
    return Load(
        name=labels.get("voda.dev/worker") or labels.get("voda.dev/role") or pod["metadata"]["name"],
        phase=phase_of(pod) or "Pending",
        node=_node(pod),
        gpus=len([slot for slot in slots.split(",") if slot.strip()]),
        used=_used([pod], readings),
    )


def _used(pods: list[Object], readings: tuple[Reading, Reading]) -> Used:
    """What pods use together."""
    before, now = readings
    uids = [_uid(pod) for pod in pods]
    used = sum((now.by_pod.get(uid, Usage()) for uid in uids), Usage())
    percent = now.percent_since(before, uids)
    return Used(cpu_percent=percent, memory_bytes=used.memory_bytes, processes=used.processes)


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

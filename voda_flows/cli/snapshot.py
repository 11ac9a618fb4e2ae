"""The whole world at one moment, as people look at it: slots and who holds them, jobs, queue. Pure but for `take`."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from voda_flows.config import DEFAULT_NAMESPACE, Settings
from voda_flows.local.store import LocalStore
from voda_flows.objects import GPU, POD_ENDED, Object, phase_of
from voda_flows.report import jobs
from voda_flows.report.history import decisions, history
from voda_flows.report.lives import JobLife

_DECISIONS = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeView:
    """A node and its slots.

    Attributes:
        name: Its name.
        holders: For each slot, the label of the job that holds it, empty when free.
        ready: Whether it takes new pods.
        labels: Its labels.
    """

    name: str
    holders: tuple[str, ...]
    ready: bool = True
    labels: Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """What there is.

    Attributes:
        now_s: When it was taken.
        nodes: By name.
        lives: Jobs in order of submission.
        decisions: The scheduler's last rounds in a line each, newest last.
    """

    now_s: float
    nodes: tuple[NodeView, ...]
    lives: tuple[JobLife, ...]
    decisions: tuple[str, ...] = ()

    @property
    def clock(self) -> str:
        """The time of day."""
        return time.strftime("%H:%M:%S", time.localtime(self.now_s))

    @property
    def waiting(self) -> tuple[JobLife, ...]:
        """Jobs in the queue, in the order in which they are to be served."""
        return tuple(life for life in self.lives if life.phase == "Queued")


def all_of(_one: jobs.Named) -> bool:
    """Every job is meant."""
    return True


def take(store: LocalStore, namespace: str | None, meant: Callable[[jobs.Named], bool] = all_of) -> Snapshot:
    """Look at the world now.

    Args:
        store: The world.
        namespace: Of the jobs; None for all. Nodes show those of all namespaces.
        meant: Whether a Workflow's jobs are.
    """
    everyone = jobs.every(store, None)
    lives = [life for one in everyone if namespace in (None, one.workflow["metadata"]["namespace"]) and meant(one)
             for life in one.lives]  # fmt: skip
    return Snapshot(
        now_s=time.time(),
        nodes=node_views(store.list("Node"), store.list("Pod"), [life for one in everyone for life in one.lives]),
        lives=tuple(sorted(lives, key=lambda life: (life.submitted_s, life.id))),
        decisions=decisions(history(store, DEFAULT_NAMESPACE), _DECISIONS),
    )


def node_views(nodes: Iterable[Object], pods: Iterable[Object], lives: Iterable[JobLife]) -> tuple[NodeView, ...]:
    """Nodes with the holders of their slots.

    Args:
        nodes: Node objects.
        pods: Pod objects of all namespaces.
        lives: Jobs of all namespaces, for their labels.

    Returns:
        One view per node, by name. A pod that wrote down no slots takes the lowest free ones.
    """
    label_by_pod = {held.pod: life.label for life in lives for held in life.holding if held.pod}
    running = [pod for pod in pods if phase_of(pod) not in POD_ENDED]
    return tuple(
        _node_view(node, running, label_by_pod)
        for node in sorted(nodes, key=lambda body: str(body["metadata"]["name"]))
    )


def _node_view(node: Object, pods: list[Object], label_by_pod: Mapping[str, str]) -> NodeView:
    """One node."""
    name = node["metadata"]["name"]
    count = int(((node.get("status") or {}).get("allocatable") or {}).get(GPU, 0))
    holders = [""] * count
    for pod in pods:
        if (pod.get("spec") or {}).get("nodeName") != name:
            continue
        text = (pod["metadata"].get("annotations") or {}).get("voda.dev/slots", "")
        for slot in (int(part) for part in text.split(",") if part.strip()):
            if slot < count:
                holders[slot] = label_by_pod.get(pod["metadata"]["name"], pod["metadata"]["name"])
    return NodeView(
        name=name,
        holders=tuple(holders),
        ready=not (node.get("spec") or {}).get("unschedulable", False),
        labels=node["metadata"].get("labels") or {},
    )


def in_order(lives: Iterable[JobLife], settings: Settings) -> tuple[JobLife, ...]:
    """Waiting jobs by priority class, then by submission: the order in which the scheduler looks at them."""

    def rank(life: JobLife) -> tuple[int, float, str]:
        text = life.asked.get("priority", "normal")
        value = settings.priority_classes.get(text)
        number = value if value is not None else int(text) if text.lstrip("-").isdigit() else 0
        return -number, life.submitted_s, life.id

    return tuple(sorted((life for life in lives if life.phase == "Queued"), key=rank))

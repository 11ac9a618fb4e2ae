"""The whole world at one moment, as people look at it: slots and who holds them, jobs, queue. Pure but for `take`."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from scheduler_core.errors import Forbidden
from voda_flows.config import Settings
from voda_flows.control.settings import settings
from voda_flows.objects import POD_ENDED, WORKFLOW_LABEL, Object, num_gpus, phase_of
from voda_flows.report import jobs
from voda_flows.report.history import decisions, history, short_name
from voda_flows.report.lives import JobLife
from voda_flows.world import World

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


def take(world: World, namespace: str | None, meant: Callable[[jobs.Named], bool] = all_of) -> Snapshot:
    """Look at the world now.

    Args:
        world: The world.
        namespace: Of the jobs; None for all. Nodes show those of all namespaces.
        meant: Whether a Workflow's jobs are.

    Raises:
        Forbidden: One may not see nodes, or the pods of all namespaces.
    """
    everyone = _everyone(world, namespace)
    lives = [life for one in everyone if namespace in (None, one.workflow["metadata"]["namespace"]) and meant(one)
             for life in one.lives]  # fmt: skip
    nodes, pods = world.whole.list("Node"), world.whole.list("Pod")
    return Snapshot(
        now_s=time.time(),
        nodes=node_views(nodes, pods, [life for one in everyone for life in one.lives]),
        lives=tuple(sorted(lives, key=lambda life: (life.submitted_s, life.id))),
        decisions=decisions(history(world.whole, world.scheduler_namespace), _DECISIONS),
    )


def nodes_now(world: World) -> tuple[NodeView, ...]:
    """Nodes with the holders of their slots; where one may not see jobs, their pods' labels name them.

    Raises:
        Forbidden: One may not see nodes, or the pods of all namespaces.
    """
    try:
        everyone = _everyone(world, world.namespace)
    except Forbidden:
        everyone = []
    lives = [life for one in everyone for life in one.lives]
    return node_views(world.whole.list("Node"), world.whole.list("Pod"), lives)


def settings_of(world: World) -> Settings:
    """The scheduler's settings.

    Raises:
        InvalidValue: Somebody wrote a setting that is none.
        Forbidden: One may not read them.
    """
    return settings(world.whole, world.scheduler_namespace)


def _everyone(world: World, namespace: str | None) -> list[jobs.Named]:
    """The jobs of all namespaces; where one may not see those of others, of one's own."""
    try:
        return jobs.every(world.whole, None)
    except Forbidden:
        return jobs.every(world.store, namespace)


def node_views(nodes: Iterable[Object], pods: Iterable[Object], lives: Iterable[JobLife]) -> tuple[NodeView, ...]:
    """Nodes with the holders of their slots.

    Args:
        nodes: Node objects.
        pods: Pod objects of all namespaces.
        lives: Jobs whose labels are known; a pod of another job is called by its labels.

    Returns:
        One view per node, by name. A pod that wrote down no slots takes the lowest free ones.
    """
    label_by_pod = {(life.namespace, held.pod): life.label for life in lives for held in life.holding if held.pod}
    running = sorted((pod for pod in pods if phase_of(pod) not in POD_ENDED), key=_birth)
    return tuple(
        _node_view(node, running, label_by_pod)
        for node in sorted(nodes, key=lambda body: str(body["metadata"]["name"]))
    )


def _node_view(node: Object, pods: list[Object], label_by_pod: Mapping[tuple[str, str], str]) -> NodeView:
    """One node."""
    name = node["metadata"]["name"]
    there = [pod for pod in pods if (pod.get("spec") or {}).get("nodeName") == name]
    holders = [""] * num_gpus((node.get("status") or {}).get("allocatable"))
    for pod in sorted(there, key=lambda each: not _written(each)):
        written = _written(pod)
        free = [slot for slot, holder in enumerate(holders) if not holder]
        for slot in written or free[: gpus_held(pod)]:
            if slot < len(holders):
                holders[slot] = label_by_pod.get(_place(pod)) or _label(pod)
    return NodeView(
        name=name,
        holders=tuple(holders),
        ready=_takes_pods(node),
        labels=node["metadata"].get("labels") or {},
    )


def gpus_held(pod: Object) -> int:
    """GPUs that a pod holds: the slots that it wrote down, else those that its containers ask for."""
    containers = (pod.get("spec") or {}).get("containers") or ()
    return len(_written(pod)) or sum(num_gpus((each.get("resources") or {}).get("limits")) for each in containers)


def _written(pod: Object) -> list[int]:
    """The slots that a pod wrote down; on a cluster nobody does."""
    text = (pod["metadata"].get("annotations") or {}).get("voda.dev/slots", "")
    return [int(part) for part in text.split(",") if part.strip()]


def _label(pod: Object) -> str:
    """What a pod's job is called by its labels, else the pod's own name."""
    labels = pod["metadata"].get("labels") or {}
    if "voda.dev/job" not in labels or WORKFLOW_LABEL not in labels:
        return str(pod["metadata"]["name"])
    return short_name(f"{labels[WORKFLOW_LABEL]}/{labels['voda.dev/job']}")


def _place(pod: Object) -> tuple[str, str]:
    """Namespace and name."""
    return pod["metadata"].get("namespace") or "default", pod["metadata"]["name"]


def _birth(pod: Object) -> tuple[str, str]:
    """The order in which pods came."""
    return pod["metadata"].get("creationTimestamp") or "", pod["metadata"]["name"]


def _takes_pods(node: Object) -> bool:
    """Whether a node takes new pods: it is not cordoned, and says of itself that it is ready where it says anything."""
    conditions = (node.get("status") or {}).get("conditions") or ()
    is_ready = all(each.get("status") == "True" for each in conditions if each.get("type") == "Ready")
    return is_ready and not (node.get("spec") or {}).get("unschedulable", False)


def in_order(lives: Iterable[JobLife], settings: Settings) -> tuple[JobLife, ...]:
    """Waiting jobs by priority class, then by submission: the order in which the scheduler looks at them."""

    def rank(life: JobLife) -> tuple[int, float, str]:
        text = life.asked.get("priority", "normal")
        value = settings.priority_classes.get(text)
        number = value if value is not None else int(text) if text.lstrip("-").isdigit() else 0
        return -number, life.submitted_s, life.id

    return tuple(sorted((life for life in lives if life.phase == "Queued"), key=rank))

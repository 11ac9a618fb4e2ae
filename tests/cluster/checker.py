"""What must hold on a cluster at every moment, held against all that its API server has told.

``Recorder`` keeps every version of every Pod and Workflow, in short; ``judge``, which is pure, plays them again in the
order in which the cluster made them (etcd numbers all changes in one row) and says where the laws were broken: GPUs
beyond what a node has, a GPU promised twice, a Workflow that ended twice, progress that went back. It shares with the
scheduler only how a Workflow's nodes are read, not how GPUs are counted from them.
"""

from __future__ import annotations

import http.client
import threading
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Self

from tests.cluster.api import Api, RefusedError
from tests.cluster.faults import ClusterError
from voda_flows.control.jobs import find_jobs
from voda_flows.control.pods import PodKey, gpus, key_of_pod
from voda_flows.objects import POD_ENDED, WORKFLOW_ENDED, Object, owner_uids, phase_of
from voda_flows.report.lives import lives
from voda_flows.workflows.packed import nodes_of

if TYPE_CHECKING:
    from types import TracebackType

PODS = "/api/v1/pods"
WORKFLOWS = "/apis/argoproj.io/v1alpha1/workflows"
#: A watch is opened anew so often: so long it may take to end.
_WATCH_S = 4.0
_AGAIN_S = 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """A worker's place, by whom it was promised to.

    Attributes:
        key: What its pod is for.
        owner: Uid of its Workflow.
        node: Where.
        gpus: How many.
    """

    key: PodKey
    owner: str
    node: str
    gpus: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Pod:
    """A version of a pod.

    Attributes:
        name: ``namespace/name``.
        key: What it is for.
        owners: Uids of whom it belongs to.
        node: Where it is bound, empty before.
        gpus: What it asks for.
        has_ended: Whether its processes are gone.
    """

    name: str
    key: PodKey
    owners: tuple[str, ...]
    node: str
    gpus: int
    has_ended: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Workflow:
    """A version of a Workflow.

    Attributes:
        name: ``namespace/name``.
        phase: Its phase.
        promised: Places of workers of open segments that have not ended, by the answers of its gates.
        fraction: Part done as ``voda`` shows it, by job; None where it shows ``-``, then what it showed before counts.
        drivers: What drivers' nodes say of it, for whoever wants to know why.
    """

    name: str
    phase: str
    promised: tuple[Place, ...]
    fraction: Mapping[str, float | None]
    drivers: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One change of the cluster.

    Attributes:
        version: Its number in the order of all.
        uid: Of what changed.
        now: What it is since then, None where it is gone.
    """

    version: int
    uid: str
    now: Pod | Workflow | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """Where laws were broken, in words; nothing where they held.

    Attributes:
        over: Nodes with more GPUs held by pods than they have.
        twice: Nodes with more GPUs held or promised than they have.
        back: Times that a job's progress went back.
        ends: Phases in which each Workflow ended, in order, by name: more than one where it ended again.
        held: GPUs that pods hold at the end, by pod.
        changes: How many changes were looked at.
    """

    over: tuple[str, ...]
    twice: tuple[str, ...]
    back: tuple[str, ...]
    ends: Mapping[str, tuple[str, ...]]
    held: Mapping[str, int]
    changes: int


def judge(changes: Iterable[Change], gpus_by_node: Mapping[str, int]) -> Verdict:
    """Play changes again, in their order, and look after each.

    Args:
        changes: In any order; the same one may be among them twice.
        gpus_by_node: What nodes have.
    """
    play = _Play(gpus_by_node)
    ordered = sorted(changes, key=lambda change: change.version)
    for change in ordered:
        play.take(change)
    return Verdict(
        over=tuple(play.over),
        twice=tuple(play.twice),
        back=tuple(play.back),
        ends={name: tuple(phases) for name, phases in play.ends.items()},
        held={pod.name: pod.gpus for pod in play.holders()},
        changes=len(ordered),
    )


@dataclass(slots=True)
class _Play:
    """The cluster at one moment, and what was found until then."""

    gpus_by_node: Mapping[str, int]
    pods: dict[str, Pod] = field(default_factory=dict)
    workflows: dict[str, Workflow] = field(default_factory=dict)
    over: list[str] = field(default_factory=list)
    twice: list[str] = field(default_factory=list)
    back: list[str] = field(default_factory=list)
    ends: dict[str, list[str]] = field(default_factory=dict)

    def take(self, change: Change) -> None:
        before = self.workflows.get(change.uid)
        if change.now is None:
            self.pods.pop(change.uid, None)
            self.workflows.pop(change.uid, None)
        elif isinstance(change.now, Pod):
            self.pods[change.uid] = change.now
        else:
            self.workflows[change.uid] = _with_known(change.now, before)
            self._compare(before, self.workflows[change.uid])
        self._count(change.version)

    def holders(self) -> list[Pod]:
        """Pods that hold GPUs."""
        return [pod for pod in self.pods.values() if pod.node and pod.gpus and not pod.has_ended]

    def _compare(self, before: Workflow | None, now: Workflow) -> None:
        phase = before.phase if before else ""
        if now.phase in WORKFLOW_ENDED and now.phase != phase:
            self.ends.setdefault(now.name, []).append(now.phase)
        for job, fraction in before.fraction.items() if before else ():
            share = now.fraction.get(job) or 0.0
            if share < (fraction or 0.0):
                told = f" ({before.drivers} -> {now.drivers})" if before and now.drivers else ""
                self.back.append(f"{now.name} {job}: {fraction:.4f} -> {share:.4f}{told}")

    def _count(self, version: int) -> None:
        held: Counter[str] = Counter()
        for pod in self.holders():
            held[pod.node] += pod.gpus
        promised = Counter(held)
        # A place is its pod's from the moment that this is bound to it; once it has ended it is nobody's.
        used = {(owner, pod.key) for pod in self.pods.values() if pod.node or pod.has_ended for owner in pod.owners}
        for workflow in self.workflows.values():
            for place in workflow.promised:
                if (place.owner, place.key) not in used:
                    promised[place.node] += place.gpus
        _note(self.over, held, self.gpus_by_node, version)
        _note(self.twice, promised, self.gpus_by_node, version)


def _note(found: list[str], taken: Counter[str], gpus_by_node: Mapping[str, int], version: int) -> None:
    for node, count in sorted(taken.items()):
        if count > gpus_by_node.get(node, 0):
            found.append(f"{node}: {count} of {gpus_by_node.get(node, 0)} GPUs at version {version}")


class Recorder:
    """Records from its own threads for as long as its block lasts.

    Args:
        api: The API server. It may be gone for a while: nothing is written then.

    Attributes:
        gaps: How often versions were forgotten before they were seen, so that one may have been missed.
    """

    def __init__(self, api: Api) -> None:
        self._api = api
        self._over = threading.Event()
        self._lock = threading.Lock()
        self._changes: list[Change] = []
        self._faults: list[Exception] = []
        self.gaps = 0
        self._threads = [
            threading.Thread(target=self._run, args=(path,), name=f"recorder {path}", daemon=True)
            for path in (PODS, WORKFLOWS)
        ]

    def changes(self) -> list[Change]:
        """What was recorded until now."""
        with self._lock:
            return list(self._changes)

    def __enter__(self) -> Self:
        """Begin."""
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Look once more, and no more.

        Raises:
            Exception: Why it could not look all along: what it has seen proves nothing then.
        """
        self._over.set()
        for thread in self._threads:
            thread.join()
        if self._faults and error is None:
            raise self._faults[0]

    def _run(self, path: str) -> None:
        try:
            self._follow(path)
        except Exception as fault:  # noqa: BLE001 - told at the end, by the thread that asks for a verdict
            self._faults.append(fault)

    def _follow(self, path: str) -> None:
        known: set[str] = set()
        version = ""
        while not self._over.is_set():
            try:
                version = version or self._list(path, known)
                for kind, body in self._api.events(f"{path}?watch=1", version, _WATCH_S):
                    version = body["metadata"]["resourceVersion"]
                    self._keep(body, known, is_gone=kind == "DELETED")
            except RefusedError as refused:
                if refused.status == http.client.GONE:
                    version = self._catch_up(path, known, version)
                self._over.wait(_AGAIN_S)
            except ClusterError:
                self._over.wait(_AGAIN_S)
        self._list(path, known)

    def _catch_up(self, path: str, known: set[str], seen: str) -> str:
        """What was there at each version since; a server that has just started has watched none of them itself.

        Returns:
            The version that was seen last.
        """
        while not self._over.is_set():
            try:
                newest = int(self._api.get(f"{path}?limit=1")["metadata"]["resourceVersion"])
                for version in range(int(seen) + 1, newest + 1):
                    self._list(f"{path}?resourceVersion={version}&resourceVersionMatch=Exact", known)
                    seen = str(version)
                return seen
            except RefusedError as refused:
                if refused.status == http.client.GONE:  # nobody knows them any more
                    with self._lock:
                        self.gaps += 1
                    return ""
                self._over.wait(_AGAIN_S)
            except ClusterError:
                self._over.wait(_AGAIN_S)
        return seen

    def _list(self, path: str, known: set[str]) -> str:
        """All that is there, and what of it is not there any more; the version of that."""
        listed = self._api.get(path)
        version = str(listed["metadata"]["resourceVersion"])
        gone = known - {body["metadata"]["uid"] for body in listed["items"]}
        with self._lock:
            self._changes += [Change(version=int(version), uid=uid, now=None) for uid in sorted(gone)]
        known -= gone
        for body in listed["items"]:
            self._keep(body, known)
        return version

    def _keep(self, body: Object, known: set[str], *, is_gone: bool = False) -> None:
        metadata = body["metadata"]
        now = None if is_gone else summary(body)
        (known.discard if is_gone else known.add)(metadata["uid"])
        with self._lock:
            self._changes.append(Change(version=int(metadata["resourceVersion"]), uid=metadata["uid"], now=now))


def summary(body: Object) -> Pod | Workflow:
    """A version of a pod or a Workflow in short."""
    metadata = body["metadata"]
    name = f"{metadata['namespace']}/{metadata['name']}"
    # Lists leave out what all their items are.
    if "containers" in (body.get("spec") or {}):
        return Pod(
            name=name,
            key=key_of_pod(body),
            owners=owner_uids(body),
            node=body["spec"].get("nodeName") or "",
            gpus=gpus(body),
            has_ended=phase_of(body) in POD_ENDED,
        )
    return Workflow(
        name=name,
        phase=phase_of(body),
        promised=tuple(_promised(body)),
        fraction=_fractions(body) if body.get("status") else {},
        drivers=tuple(_drivers(body)),
    )


def _fractions(workflow: Object) -> dict[str, float | None]:
    """Part done of each job; None where nobody knows."""
    return {life.name: None if life.share == "-" else life.fraction for life in lives(workflow, ())}


def _with_known(now: Workflow, before: Workflow | None) -> Workflow:
    """A Workflow with what was shown last of the jobs of which nobody knows how far they are."""
    last = before.fraction if before else {}
    return replace(now, fraction={job: last.get(job) if part is None else part for job, part in now.fraction.items()})


def _drivers(workflow: Object) -> Iterator[str]:
    """Phase and progress of each driver's node, by the time of its start."""
    found = [node for node in nodes_of(workflow).values() if node.get("templateName") == "driver"]
    for node in sorted(found, key=lambda node: str(node.get("startedAt", ""))):
        yield f"{node['id'].rpartition('-')[2]} {node.get('phase')} {node.get('progress')}"


def _promised(workflow: Object) -> Iterator[Place]:
    """Places that the open gates' answers gave away and whose workers have not ended."""
    for job in find_jobs(workflow):
        for granted in job.workers:
            if not granted.node_ended:
                key = PodKey(
                    namespace=job.asked.namespace,
                    workflow=job.asked.workflow,
                    job=job.asked.name,
                    segment=str(job.segment),
                    role="worker",
                    worker=granted.worker.id,
                )
                owner = workflow["metadata"]["uid"]
                yield Place(key=key, owner=owner, node=granted.worker.node, gpus=granted.worker.gpus)

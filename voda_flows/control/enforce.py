"""The Enforcer: each action of a plan as one guarded write.

In: an action decided on the last observation. Out: a merge-patch that carries the version of the object it was decided
on, so that it either does exactly what was meant or raises Conflict and the next round looks again. The one exception
is a second action on the same object in one round: it is guarded by the answer to the first.
"""

from __future__ import annotations

import base64
import logging
import secrets
from collections.abc import Callable, Collection, Iterable, Mapping
from datetime import UTC, datetime

from scheduler_core.errors import Conflict, NotFound, VodaError
from scheduler_core.model import plan
from scheduler_core.model.job import WorkerPhase
from scheduler_core.model.plan import Action, NewWorker
from voda_flows.control import clock, pods
from voda_flows.control.observe import StoreObserver
from voda_flows.control.view import JobView
from voda_flows.control.why import given, with_why
from voda_flows.objects import COMPLETED_LABEL, Object, format_time
from voda_flows.store import ObjectStore
from voda_flows.wire import AllocationDocument, DocumentWorker, document_text, encode, gate_workers_text
from voda_flows.workflows.packed import nodes_of, nodes_patch

log = logging.getLogger(__name__)

_KEY_BYTES = 32
#: Of a pod's node: whether Argo has read what the pod handed out.
_IS_READ = "taskResultSynced"
#: How often words are put on a Workflow that others write on too.
_TRIES = 5


class StoreEnforcer:
    """Changes the world through an object store.

    Args:
        store: Where the objects are.
        observer: Knows the objects that the plan was made from, and takes note of what we write.
        clock: Seconds since the epoch, going on evenly.
        why: Says of a job, by id, why it got or lost GPUs; empty where nobody knows.
    """

    def __init__(
        self,
        store: ObjectStore,
        observer: StoreObserver,
        clock: Callable[[], float] = clock.now_s,
        why: Callable[[str], str] = lambda _: "",
    ) -> None:
        self._store = store
        self._observer = observer
        self._clock = clock
        self._why = why

    def enforce(self, action: Action) -> None:
        """See ``scheduler_core.model.ports.Enforcer``."""
        view = self._observer.views.get(action.job_id)
        if view is None:
            raise NotFound(f"job {action.job_id!r}: expected it in the last observation; it has ended meanwhile")
        try:
            self._apply(view, action)
        except (Conflict, NotFound):
            raise
        except VodaError as fault:  # one object that cannot be written must not keep the others from being served
            raise Conflict(f"job {view.id!r}: {fault}") from fault
        log.info("job=%s %s", view.id, _words(action))

    def _apply(self, view: JobView, action: Action) -> None:
        match action:
            case plan.Grant():
                self._make_key(view)
                said = with_why(given(action.workers), self._why(view.id))
                self._complete(view, _start_gate(view), _granted(action.workers), said)
            case plan.Grow():
                grown = {"workers": gate_workers_text(action.workers), "more": "yes"}
                said = with_why(given(action.workers, more=True), self._why(view.id))
                self._complete(view, _grow_gate(view), grown, said)
            case plan.Release():
                no_more = {"workers": "[]", "more": "no"}
                self._complete(view, _grow_gate(view), no_more, "no more workers: its driver has ended")
            case plan.Publish():
                self._write_document(view, action.generation, action.worker_ids, stop=None)
                said = with_why("gives its GPUs back in place", self._why(view.id))
                self._say(view, _dropped(view, action.worker_ids), said)
            case plan.Stop():
                published = [worker.id for worker in view.document.workers] if view.document else []
                self._write_document(view, action.generation, published, stop="checkpoint")
                driver = pods.node_id(view.driver) if view.driver else ""
                self._say(view, [driver], with_why(action.reason, self._why(view.id)))
            case plan.Evict():
                self._delete_worker(view, action)
            case plan.Abandon():
                self._abandon(view, action)
            case plan.Refuse():
                self._patch_node(view, _start_gate(view), _ended("Failed", self._now()) | {"message": action.reason})
            case plan.Announce():
                self._patch_node(view, _start_gate(view), {"message": action.message})

    def _complete(self, view: JobView, gate: str, outputs: Mapping[str, str], said: str) -> None:
        """Answer a gate: Argo goes on when the suspended node has succeeded."""
        answers = [{"name": name, "value": value} for name, value in outputs.items()]
        answered = _ended("Succeeded", self._now()) | {"outputs": {"parameters": answers}, "message": said}
        self._patch_node(view, gate, answered)

    def _say(self, view: JobView, nodes: Iterable[str], text: str) -> None:
        """Put words on nodes of pods; no action fails for them.

        Nothing is decided by them, so what they are written on need not be as it was seen: the pods' progress changes
        it all the time. Where somebody is quicker it is read again.
        """
        wanted = [node for node in nodes if node]
        for tries_left in reversed(range(_TRIES)) if wanted else ():
            try:
                self._write_words(view.workflow, wanted, text)
            except VodaError as fault:
                if tries_left and isinstance(fault, Conflict):
                    continue
                log.info("job=%s message=%r not written: %s", view.id, text, fault)
            return

    def _write_words(self, seen: Object, nodes: Iterable[str], text: str) -> None:
        """Write on a Workflow as it is now; a node must be there, since a patch would make half of one that is gone."""
        metadata = seen["metadata"]
        body = self._store.get("Workflow", metadata["namespace"], metadata["name"])
        there = nodes_of(body) if body["metadata"]["uid"] == metadata["uid"] else {}
        change = nodes_patch(body, {node: {"message": text} for node in nodes if node in there})
        version = body["metadata"]["resourceVersion"]
        answer = self._store.merge_patch(
            "Workflow", metadata["namespace"], metadata["name"], change, resource_version=version
        )
        if version == self._observer.current(seen)["metadata"]["resourceVersion"]:
            self._observer.wrote(answer)  # nothing in it that was not seen: what follows goes on from there

    def _patch_node(self, view: JobView, node: str, change: Object) -> None:
        self._patch(view.workflow, nodes_patch(self._observer.current(view.workflow), {node: change}))

    def _write_document(self, view: JobView, generation: int, workers: Iterable[str], *, stop: str | None) -> None:
        """Write the next generation of the allocation document for the very driver pod that was seen."""
        if view.driver is None or view.job is None:
            raise Conflict(f"job {view.id!r}: expected its driver's pod, it is gone")
        spec = view.job.spec
        document = AllocationDocument(
            job=view.id,
            driver_uid=view.driver_uid,
            segment=view.nodes.segment,
            generation=generation,
            min_workers=spec.min_gpus // spec.gpus_per_worker,
            workers=tuple(self._document_worker(view, worker_id) for worker_id in workers),
            stop=stop,
        )
        self._patch(view.driver, {"metadata": {"annotations": {pods.ALLOCATION: document_text(document)}}})

    def _document_worker(self, view: JobView, worker_id: str) -> DocumentWorker:
        """A worker as the document names it; one whose pod is gone stays as it was last named."""
        pod = view.pod_by_worker.get(worker_id)
        for worker in view.job.workers if view.job and pod else ():
            if worker.id == worker_id and worker.address:
                return DocumentWorker(
                    id=worker.id,
                    role=worker.role.value,
                    address=worker.address,
                    node=worker.node,
                    slots=worker.gpus,
                )
        for known in view.document.workers if view.document else ():
            if known.id == worker_id:
                return known
        raise Conflict(f"job {view.id!r}: expected an address of worker {worker_id}, its pod has none")

    def _delete_worker(self, view: JobView, action: plan.Evict) -> None:
        """Delete a worker's pod.

        Argo makes the pod of a node that is still pending anew, so such a node is ended first.
        """
        pod = view.pod_by_worker.get(action.worker_id)
        if pod is None:
            raise NotFound(f"job {view.id!r}: expected a pod of worker {action.worker_id}, there is none")
        if pods.worker_phase(pod) is WorkerPhase.PENDING:
            for granted in view.nodes.workers:
                if granted.worker.id == action.worker_id and granted.node and not granted.node_ended:
                    self._end_node(view, granted.node, action.reason, pod)
        self._delete_pod(pod)

    def _abandon(self, view: JobView, action: plan.Abandon) -> None:
        """End the node of a pod of the segment's own, and the pod where there is one."""
        is_driver = action.role == "driver"
        node = view.nodes.driver if is_driver else view.nodes.checkpoint
        pod = view.driver if is_driver else view.checkpoint
        if not node:
            raise Conflict(f"job {view.id!r}: expected its {action.role} to wait, it has ended meanwhile")
        self._end_node(view, node, action.reason, pod)
        if pod is not None and not pods.has_ended(pod):
            self._delete_pod(pod)

    def _end_node(self, view: JobView, node: str, reason: str, pod: Object | None) -> None:
        """Write a node's end, with what its pod said of itself.

        Argo goes by the pod as long as it sees it, finds the node pending again, and makes the pod anew when that is
        gone, without end. So it no longer sees it, and what the pod handed out counts as read: then a node is over.
        """
        why = pods.why_pending(pod) if pod else ""
        ended = _ended("Error", self._now()) | {"message": f"{reason}: {why}" if why else reason}
        if _IS_READ in nodes_of(self._observer.current(view.workflow)).get(node, {}):
            ended[_IS_READ] = True
        if pod is not None:
            self._patch(pod, _seen_by_argo(False))
        try:
            self._patch_node(view, node, ended)
        except Conflict:  # it may be well by the time that this is tried again
            if pod is not None:
                self._patch(pod, _seen_by_argo(True))
            raise

    def _delete_pod(self, pod: Object) -> None:
        metadata = self._observer.current(pod)["metadata"]
        self._store.delete(
            "Pod",
            metadata["namespace"],
            metadata["name"],
            uid=metadata["uid"],
            version=metadata["resourceVersion"],
        )

    def _make_key(self, view: JobView) -> None:
        """The job's own key, before its first pods need it; owned by the Workflow, so that it goes with it."""
        metadata = view.workflow["metadata"]
        key = base64.b64encode(secrets.token_hex(_KEY_BYTES).encode()).decode()
        owner = {"apiVersion": "argoproj.io/v1alpha1", "kind": "Workflow"}
        namespace, name = view.nodes.asked.namespace, f"voda-key-{metadata['uid']}"
        body: Object = {
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {
                "name": name,
                "namespace": namespace,
                "ownerReferences": [owner | {"name": metadata["name"], "uid": metadata["uid"]}],
            },
            "type": "Opaque",
            "data": {"key": key},
        }
        try:
            self._store.get("Secret", namespace, name)
        except NotFound:
            self._store.create(body)

    def _patch(self, seen: Object, change: Object) -> None:
        """One guarded patch of an object as it was seen."""
        body = self._observer.current(seen)
        metadata = body["metadata"]
        answer = self._store.merge_patch(
            body["kind"],
            metadata.get("namespace") or "default",
            metadata["name"],
            change,
            resource_version=metadata["resourceVersion"],
        )
        self._observer.wrote(answer)

    def _now(self) -> str:
        return format_time(datetime.fromtimestamp(self._clock(), UTC))


def _granted(workers: tuple[NewWorker, ...]) -> dict[str, str]:
    return {"grant": "given", "workers": gate_workers_text(workers)}


def _start_gate(view: JobView) -> str:
    return _open(view, "start", view.nodes.gate)


def _grow_gate(view: JobView) -> str:
    return _open(view, "grow", view.nodes.grow_gate)


def _open(view: JobView, kind: str, gate: str) -> str:
    """A gate's id; it must be there."""
    if not gate:
        raise Conflict(f"job {view.id!r}: expected an open {kind} gate, it was answered meanwhile")
    return gate


def _dropped(view: JobView, kept: Collection[str]) -> list[str]:
    """The nodes of workers that the next document drops, though they train."""
    published = {worker.id for worker in view.document.workers} if view.document else set()
    training = {worker.id for worker in (view.job.workers if view.job else ()) if worker.phase is WorkerPhase.READY}
    gone = (published & training) - set(kept)
    return [row.node for row in view.nodes.workers if row.worker.id in gone and not row.node_ended]


def _seen_by_argo(is_seen: bool) -> Object:
    """The patch of a pod that Argo's controller, which watches those that are not completed, is to see or not."""
    return {"metadata": {"labels": {COMPLETED_LABEL: "false" if is_seen else "true"}}}


def _ended(phase: str, at: str) -> Object:
    return {"phase": phase, "finishedAt": at}


def _words(action: Action) -> str:
    """An action as one line of the log."""
    fields = {name: value for name, value in encode(action).items() if name != "job_id"}
    return " ".join(f"{name}={value if isinstance(value, int) else repr(value)}" for name, value in fields.items())

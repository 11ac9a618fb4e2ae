"""The Observer: objects of the store and what drivers say, joined into the core's ``Observation``.

What a job's Workflow says is read again only when the Workflow changed. The answer to each of our own writes is laid
over what the store shows until the store shows that version or a later one, so an observation is never older than our
last write.
"""

from __future__ import annotations

import logging
import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from scheduler_core.errors import InvalidValue
from scheduler_core.model.job import Job, JobPhase, WorkerFailure
from scheduler_core.model.observation import Observation
from voda_flows.config import Settings
from voda_flows.control import clock, pods
from voda_flows.control.clock import Sightings
from voda_flows.control.cluster import OtherGpus, cluster_of, gpus_by_type
from voda_flows.control.jobs import JobNodes, find_jobs
from voda_flows.control.reports import DriverStatus, Reports
from voda_flows.control.request import Limits
from voda_flows.control.view import JobView, job_of, pods_of, requested
from voda_flows.control.volumes import Claims
from voda_flows.objects import Key, Object, key_of
from voda_flows.store import ObjectStore

if TYPE_CHECKING:  # what fits tables is heavy, and who only looks needs none
    from voda_flows.control.learning import Learning

log = logging.getLogger(__name__)


class StoreObserver:
    """Looks at the world through an object store; used by one thread.

    Args:
        store: Where the objects are.
        settings: Topology levels, limits, queues.
        reports: Asks the drivers.
        clock: Seconds since the epoch, going on evenly.
        claims: Knows the claims that jobs name; None where nobody checks them, as in local mode, which has none.
    """

    def __init__(
        self,
        store: ObjectStore,
        settings: Settings,
        reports: Reports,
        clock: Callable[[], float] = clock.now_s,
        claims: Claims | None = None,
    ) -> None:
        self._store = store
        self._settings = settings
        self._reports = reports
        self._clock = clock
        self._claims = claims
        self._learning: Learning | None = None
        self._written: dict[Key, Object] = {}
        self._parsed: dict[str, tuple[str, list[JobNodes]]] = {}
        self._views: dict[str, JobView] = {}
        self._sightings = Sightings()
        self._open: frozenset[str] = frozenset()

    def learn_by(self, learning: Learning) -> None:
        """From now on report rows are read too, and observations carry what is known of speeds and costs."""
        self._learning = learning

    @property
    def views(self) -> Mapping[str, JobView]:
        """The jobs of the last observation by id, with the objects behind them."""
        return self._views

    def observe(self) -> Observation:
        """See ``scheduler_core.model.ports.Observer``."""
        now_s = self._clock()
        workflows, all_pods = self._all("Workflow"), self._all("Pod")
        found = [(workflow, nodes) for workflow in workflows for nodes in self._jobs(workflow)]
        pods_by_key = pods.by_key(pods.of_workflows(all_pods, {workflow["metadata"]["name"] for workflow, _ in found}))
        views = [pods_of(nodes, workflow, pods_by_key) for workflow, nodes in found]
        self._forget({pods.uid(workflow) for workflow in workflows})
        nodes, levels = self._all("Node"), self._settings.topology_levels
        empty = cluster_of(nodes, OtherGpus(), levels)
        self._open = frozenset(node.name for node in empty.nodes if node.schedulable)
        limits = Limits(
            settings=self._settings,
            gpus_by_type=gpus_by_type(empty),
            claim_fault=lambda namespace, name: self._claim_fault(namespace, name, len(nodes)),
        )
        said = self._said(views)
        self._views = {view.id: self._judged(view, limits, said, now_s) for view in views}
        self._sightings.end_look(now_s)
        # Only now is it known whose requests are legal: the pods of the others count as foreign.
        cluster = cluster_of(nodes, other_gpus(all_pods, self._views.values()), levels)
        observation = Observation(
            now_s=now_s,
            cluster=cluster,
            jobs=tuple(view.job for view in self._views.values() if view.job is not None),
            queues=self._settings.queues,
            refused={view.id: view.refusal for view in self._views.values() if view.refusal and view.nodes.gate_open},
        )
        if self._learning is None:
            return observation
        heard = {view.id: said[view.driver_uid] for view in self._views.values() if view.driver_uid in said}
        return self._learning.filled(observation, heard)

    def name_of(self, job_id: str) -> str:
        """What people call a live job, ``<workflow>/<job-name>``; empty where there is none."""
        view = self._views.get(job_id)
        return f"{view.nodes.asked.workflow}/{view.nodes.asked.given_name}" if view else ""

    def wrote(self, answer: Object) -> None:
        """Take note of the answer to one of our own writes."""
        self._written[key_of(answer)] = answer

    def current(self, seen: Object) -> Object:
        """An object as it stands after our own writes since it was seen."""
        return _newer(seen, self._written.get(key_of(seen)))

    def _said(self, views: Iterable[JobView]) -> dict[str, DriverStatus]:
        """What the drivers last said, by uid; with their new report rows where somebody learns from them."""
        asked = _asked_drivers(views)
        if self._learning is None:
            return self._reports.pull(asked)
        driver_by_job = {view.id: view.driver_uid for view in views if view.driver_uid in asked}
        return self._reports.pull(asked, self._learning.rows_read(driver_by_job))

    def _claim_fault(self, namespace: str, name: str, num_nodes: int) -> str:
        return self._claims.fault(namespace, name, num_nodes) if self._claims else ""

    def _all(self, kind: str) -> list[Object]:
        """Every object of a kind; where the store is behind our own write, that."""
        shown = self._store.snapshot(kind)
        for key in [key for key in self._written if key.kind == kind]:
            if key not in shown or _newer(shown[key], self._written[key]) is shown[key]:
                del self._written[key]
        return [self._written.get(key, body) for key, body in shown.items()]

    def _jobs(self, workflow: Object) -> list[JobNodes]:
        """The jobs of a Workflow; read again when it changed. One that cannot be read has none, and that is logged."""
        uid, version = pods.uid(workflow), workflow["metadata"].get("resourceVersion") or ""
        known = self._parsed.get(uid)
        if known is None or known[0] != version:
            try:
                known = (version, find_jobs(workflow))
            except (InvalidValue, KeyError, TypeError, ValueError) as fault:
                log.warning("workflow=%s unreadable=%r", workflow["metadata"].get("name"), str(fault))
                known = (version, [])
            self._parsed[uid] = known
        return known[1]

    def _forget(self, live_uids: set[str]) -> None:
        for gone in [uid for uid in self._parsed if uid not in live_uids]:
            del self._parsed[gone]

    def _judged(self, view: JobView, limits: Limits, said: Mapping[str, DriverStatus], now_s: float) -> JobView:
        """The view with the core's value, or with the reason why its request is refused."""
        status = said.get(view.driver_uid, DriverStatus())
        try:
            spec = requested(view, limits)
            job = job_of(view, spec, status, now_s=now_s, segments_limit=self._settings.segments_limit)
        except InvalidValue as fault:
            return replace(view, refusal=str(fault))
        return replace(view, job=self._by_our_clock(job, now_s))

    def _by_our_clock(self, job: Job, now_s: float) -> Job:
        """The job with the moments from which its limits are counted as this process has seen them."""
        seen, segment = self._sightings, (job.id, job.segment)
        failures = tuple(self._failure(job.id, failure, now_s) for failure in job.failures)
        if job.granted_s is None:
            return replace(job, failures=failures)
        driver_ended_s = job.driver_ended_s and seen.since_s((*segment, "driver"), job.driver_ended_s, now_s)
        checkpoint_s = job.checkpoint_s and seen.since_s((*segment, "checkpoint"), job.checkpoint_s, now_s)
        is_over = job.phase is JobPhase.BETWEEN and driver_ended_s is not None
        return replace(
            job,
            failures=failures,
            checkpoint_s=checkpoint_s,
            stalled=is_over and now_s - (driver_ended_s or now_s) >= self._settings.start_limit_s,
            granted_s=seen.since_s(segment, job.granted_s, now_s),
            driver_ended_s=driver_ended_s,
            workers=tuple(
                replace(
                    worker,
                    since_s=seen.since_s((*segment, worker.id), worker.since_s, now_s),
                    done_s=worker.done_s and seen.since_s((*segment, worker.id, "done"), worker.done_s, now_s),
                    # No stamp says since when: since this process first saw it.
                    left_s=worker.left_s and seen.since_s((*segment, worker.id, "left"), math.inf, now_s),
                    unplaced_s=seen.since_s((*segment, worker.id, "unplaced"), math.inf, now_s)
                    if worker.unplaced_s and worker.node not in self._open
                    else 0.0,
                )
                for worker in job.workers
            ),
        )

    def _failure(self, job_id: str, failure: WorkerFailure, now_s: float) -> WorkerFailure:
        """A worker's failure when we saw it; how long it had lived stays as others measured it."""
        ended_s = self._sightings.since_s((job_id, failure.worker, "failed"), failure.ended_s, now_s)
        lived_s = max(0.0, failure.ended_s - failure.started_s)
        return replace(failure, started_s=ended_s - lived_s, ended_s=ended_s)


def other_gpus(all_pods: Iterable[Object], views: Iterable[JobView]) -> OtherGpus:
    """GPUs by node held by pods that are no worker of a live job's current segment.

    A worker pod of an ended segment or Workflow is on its way out, and so is any pod that was told to go; the pods of
    a job whose request is refused are foreign, because nobody plans with them.
    """
    shown = list(views)
    ours = {pods.uid(pod) for view in shown if view.job for pod in view.pod_by_worker.values()}
    refused = {pods.uid(pod) for view in shown if not view.job for pod in view.pod_by_worker.values()}
    foreign: Counter[str] = Counter()
    leaving: Counter[str] = Counter()
    for pod in all_pods:
        if pods.has_ended(pod):
            continue
        node, gpus, uid = pods.node_of(pod), pods.gpus(pod), pods.uid(pod)
        if not node or not gpus or uid in ours:
            continue
        goes = pods.is_leaving(pod) or (pods.key_of_pod(pod).role == "worker" and uid not in refused)
        (leaving if goes else foreign)[node] += gpus
    return OtherGpus(foreign=dict(foreign), leaving=dict(leaving))


def is_changing(jobs: Iterable[Job]) -> bool:
    """Whether a driver is about to acknowledge a document: it says so over HTTP, and no object changes by it."""
    return any(job.generation > job.acknowledged and job.phase in (JobPhase.RUNNING, JobPhase.STOPPING) for job in jobs)


def _asked_drivers(views: Iterable[JobView]) -> dict[str, str]:
    """Drivers that train by a document, by uid, with their addresses."""
    return {
        view.driver_uid: pods.address(view.driver)
        for view in views
        if view.driver is not None and view.document is not None and pods.is_running(view.driver)
        if pods.address(view.driver)
    }


def _newer(one: Object, other: Object | None) -> Object:
    """Whichever has the higher version, the first where they are equal or the second is another object."""
    if other is None or pods.uid(one) != pods.uid(other):
        return one
    return other if _version(other) > _version(one) else one


def _version(body: Object) -> int:
    """A resourceVersion as a number; Kubernetes orders them so for objects of one kind."""
    text = str(body["metadata"].get("resourceVersion") or "0")
    return int(text) if text.isdigit() else 0

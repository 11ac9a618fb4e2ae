"""Workflows go on: each one that changed is given to the pure engine (``argo``), and what comes of it is committed.

A Workflow's new status and its new pods are one commit, guarded by the Workflow's version: where somebody else changed
it meanwhile (a gate was completed, say), nothing is written and it is looked at again.
"""

from __future__ import annotations

import copy
import logging
from collections import defaultdict
from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import datetime, timedelta

from scheduler_core.errors import Conflict, InvalidValue, NotFound
from voda_flows.local import logs
from voda_flows.local.argo import Advance, TemplateSource, advance
from voda_flows.local.kubelet import END
from voda_flows.local.store import LocalStore
from voda_flows.local.trouble import is_trouble
from voda_flows.objects import CRON_LABEL, POD_ENDED, WORKFLOW_ENDED, WORKFLOW_LABEL, Key, Object, format_time, phase_of

Place = tuple[str, str]
"""(namespace, name) of a Workflow."""
Versions = tuple[str, ...]
GoOn = Callable[[Object, Mapping[str, Object], TemplateSource, datetime], Advance]

log = logging.getLogger("voda.local.workflows")


class Workflows:
    """The Workflows of one home, and what of them was dealt with at which version."""

    def __init__(self, store: LocalStore, go_on: GoOn = advance) -> None:
        self.store = store
        self._go_on = go_on
        self._done: dict[str, Versions] = {}
        self._again: dict[str, datetime] = {}
        self._settled: tuple[dict[Key, Object], dict[Key, Object]] = ({}, {})

    def advance(self, now: datetime) -> set[Place]:
        """Advance every Workflow that changed, or whose time has come.

        Returns:
            Those that have not taken note of their pods yet, since somebody else changed them meanwhile.
        """
        workflows, pods = self.store.snapshot("Workflow"), self.store.snapshot("Pod")
        due = self.due()
        if self._settled[0] is workflows and self._settled[1] is pods and (due is None or now < due):
            return set()  # what changed in the store is none of theirs
        pods_by_place: dict[Place, dict[str, Object]] = defaultdict(dict)
        for key, pod in pods.items():
            name = (pod["metadata"].get("labels") or {}).get(WORKFLOW_LABEL)
            pods_by_place[(key.namespace, name or "")][key.name] = pod
        unseen = {
            (key.namespace, key.name)
            for key, workflow in workflows.items()
            if not self._look(key, workflow, pods_by_place[(key.namespace, key.name)], now)
        }
        self._forget({workflow["metadata"]["uid"] for workflow in workflows.values()})
        self._settled = ({}, {}) if unseen else (workflows, pods)
        return unseen

    def look_again(self) -> None:
        """Look at every Workflow in the next round, whatever was known of it."""
        self._done.clear()
        self._settled = ({}, {})

    def due(self) -> datetime | None:
        """When the next Workflow is to be looked at though nothing changes."""
        return min(self._again.values(), default=None)

    def has_open(self) -> bool:
        """Whether a Workflow of a user has not ended; runs of cron workflows wait for no limit of theirs."""
        return any(
            phase_of(workflow) not in WORKFLOW_ENDED and CRON_LABEL not in (workflow["metadata"].get("labels") or {})
            for workflow in self.store.snapshot("Workflow").values()
        )

    def _look(self, key: Key, workflow: Object, pods: Mapping[str, Object], now: datetime) -> bool:
        """Deal with one Workflow; false where that has to be repeated."""
        metadata = workflow["metadata"]
        if "deletionTimestamp" in metadata:
            return self._delete(key, workflow, pods)
        uid = metadata["uid"]
        versions = (metadata["resourceVersion"], *(pod["metadata"]["resourceVersion"] for pod in pods.values()))
        due = self._again.get(uid)
        if self._done.get(uid) == versions and (due is None or now < due):
            return True
        self._again.pop(uid, None)
        step = self._next(workflow, pods, now)
        try:
            is_kept = self._commit(key, workflow, step)
        except InvalidValue as error:  # a pod of it that cannot be
            is_kept = self._commit(key, workflow, _in_error(workflow, pods, str(error), now))
        if not is_kept:
            return False
        if step.is_expired:
            self._expire(key, workflow)
        if step.again_s is not None:
            self._again[uid] = now + timedelta(seconds=step.again_s)
        self._done[uid] = versions
        return True

    def _expire(self, key: Key, workflow: Object) -> None:
        """Delete a Workflow whose time after its end is over; one that was started again meanwhile stays."""
        metadata = workflow["metadata"]
        with suppress(Conflict, NotFound):
            self.store.delete(*key, uid=metadata["uid"], version=metadata["resourceVersion"])
            log.info("workflow=%s/%s has had its time, it goes", key.namespace, key.name)

    def _next(self, workflow: Object, pods: Mapping[str, Object], now: datetime) -> Advance:
        """The Workflow's next state; one that cannot be dealt with ends there, and disturbs no other."""
        try:
            return self._go_on(workflow, pods, self._template, now)
        except Exception as error:
            if is_trouble(error):
                raise  # the store's, not the Workflow's: the round is repeated
            log.exception(
                "workflow=%s/%s cannot go on", workflow["metadata"]["namespace"], workflow["metadata"]["name"]
            )
            return _in_error(workflow, pods, f"{type(error).__name__}: {error}", now)

    def _commit(self, key: Key, workflow: Object, step: Advance) -> bool:
        try:
            if step.workflow != workflow or step.create:
                new = self.store.commit(replace=step.workflow, create=step.create)
                phase = phase_of(new)
                if phase != phase_of(workflow):
                    log.info("workflow=%s/%s phase=%s", key.namespace, key.name, phase)
        except (Conflict, NotFound):
            return False
        for name in step.end:
            self._end_pod(key.namespace, name)
        for name in step.delete:
            self._delete_pod(key.namespace, name)
        return True

    def _delete(self, key: Key, workflow: Object, pods: Mapping[str, Object]) -> bool:
        """Delete a Workflow's pods, and the Workflow once there is none left."""
        for name in pods:
            self._delete_pod(key.namespace, name)
        if not pods:
            logs.forget(self.store.home, workflow["metadata"]["uid"])  # first: who sees it gone finds nothing of it
            self.store.remove(key, uid=workflow["metadata"]["uid"])
            log.info("workflow=%s/%s removed", key.namespace, key.name)
        return True

    def _end_pod(self, namespace: str, name: str) -> None:
        """Have a pod's processes ended; the pod stays, with its log."""
        with suppress(NotFound):
            self.store.merge_patch("Pod", namespace, name, {"metadata": {"annotations": {END: "true"}}})

    def _delete_pod(self, namespace: str, name: str) -> None:
        try:
            self.store.delete("Pod", namespace, name)
        except NotFound:
            return

    def _template(self, namespace: str, name: str) -> Object | None:
        return self.store.snapshot("WorkflowTemplate").get(Key("WorkflowTemplate", namespace, name))

    def _forget(self, uids: set[str]) -> None:
        for uid in self._done.keys() - uids:
            del self._done[uid]
            self._again.pop(uid, None)


def _in_error(workflow: Object, pods: Mapping[str, Object], message: str, now: datetime) -> Advance:
    """A Workflow that goes no further, with the reason; what still runs of it is deleted."""
    new, stamp = copy.deepcopy(workflow), format_time(now)
    new["status"] = {
        "startedAt": stamp,
        **(new.get("status") or {}),
        "phase": "Error",
        "message": message,
        "finishedAt": stamp,
        "conditions": [{"type": "Completed", "status": "True"}],
    }
    live = tuple(name for name, pod in pods.items() if phase_of(pod) not in POD_ENDED)
    return Advance(workflow=new, create=(), delete=live, again_s=None)

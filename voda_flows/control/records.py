"""What the scheduler leaves behind: each decision on disk for replay, and the recent ones for people.

``<folder>/<number>/observation.json`` and ``decision.json`` hold what was seen, what was wanted before, and what was
decided and done, enough to decide again offline. The ConfigMap ``voda-history`` holds the last rows, newest last, for
``voda watch`` and ``voda explain``; both are bounded.
"""

from __future__ import annotations

import json
import logging
import shutil
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from scheduler_core.errors import Conflict, NotFound
from scheduler_core.model.decision import CycleResult, DecisionKind
from scheduler_core.model.params import Params
from scheduler_core.model.plan import Announce
from scheduler_core.model.target import Target
from voda_flows.config import Settings
from voda_flows.control.lease import EPOCH, Lease
from voda_flows.objects import Object
from voda_flows.report.history import HISTORY_MAP, ROWS
from voda_flows.store import ObjectStore
from voda_flows.wire import encode, to_json

log = logging.getLogger(__name__)

#: Where records go, if set; else ``records`` under VODA_HOME, else nowhere.
FOLDER_VARIABLE = "VODA_RECORDS"
#: A ConfigMap holds 1 MB at most.
_HISTORY_BYTES = 500_000


def records_folder(environment: Mapping[str, str]) -> Path | None:
    """The folder for records, None where none is configured."""
    if environment.get(FOLDER_VARIABLE):
        return Path(environment[FOLDER_VARIABLE])
    return Path(environment["VODA_HOME"]) / "records" if environment.get("VODA_HOME") else None


class Records:
    """Writes down what happened; a disk that is full or a conflict is logged and stops nothing.

    Args:
        store: Where the history is.
        settings: Namespace and bounds.
        folder: Where records go, None for nowhere.
        lease: Who writes the history; one that was taken over meanwhile writes no more.
    """

    def __init__(self, store: ObjectStore, settings: Settings, folder: Path | None, lease: Lease | None = None) -> None:
        self._store = store
        self._settings = settings
        self._folder = folder
        self._lease = lease
        self._fault = ""

    def keep(self, result: CycleResult, before: Target, params: Params) -> bool:
        """Keep a round in which something was decided or done.

        Args:
            result: The round.
            before: The target that it started from.
            params: What it was decided with.

        Returns:
            Whether there was anything to keep.
        """
        fault = result.fault or result.decision.fault
        repeated = fault == self._fault
        self._fault = fault
        row = history_row(result)
        decided = result.decision.kind not in (DecisionKind.KEPT, DecisionKind.FENCED)
        if not (decided or row["actions"] or row["conflicts"] or (fault and not repeated)):
            return False
        self._write(result, {"before": encode(before), "params": encode(params)})
        self._append(row)
        return True

    def _write(self, result: CycleResult, start: Mapping[str, Any]) -> None:
        """The record on disk; the oldest go when there are too many."""
        if self._folder is None:
            return
        try:
            present = sorted(int(path.name) for path in self._folder.iterdir()) if self._folder.is_dir() else []
            number = present[-1] + 1 if present else 1
            place = self._folder / f"{number:08d}"
            place.mkdir(parents=True)
            (place / "observation.json").write_text(to_json(result.observation) + "\n", encoding="utf-8")
            (place / "decision.json").write_text(_decision_text(result, start) + "\n", encoding="utf-8")
            self._forget(self._folder, present)
        except (OSError, ValueError) as fault:
            log.warning("record=lost folder=%s fault=%r", self._folder, str(fault))

    def _forget(self, folder: Path, present: list[int]) -> None:
        """Take away the oldest where they are too many, or too old."""
        too_many = max(0, len(present) + 1 - self._settings.records)
        oldest_s = time.time() - self._settings.records_age_s
        for place, number in enumerate(present):
            old = folder / f"{number:08d}"
            if place >= too_many and old.stat().st_mtime >= oldest_s:
                return
            shutil.rmtree(old, ignore_errors=True)

    def _append(self, row: Mapping[str, Any]) -> None:
        namespace = self._settings.namespace
        try:
            found = self._store.get("ConfigMap", namespace, HISTORY_MAP)
            self._check_epoch(found)
            rows = [*json.loads((found.get("data") or {}).get(ROWS) or "[]"), row]
            change = {"data": {ROWS: bounded(rows, self._settings.history_rows)}}
            version = found["metadata"]["resourceVersion"]
            self._store.merge_patch("ConfigMap", namespace, HISTORY_MAP, change, resource_version=version)
        except NotFound:
            metadata = {"name": HISTORY_MAP, "namespace": namespace}
            data = {ROWS: bounded([row], self._settings.history_rows)}
            self._store.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data})
        except (Conflict, ValueError) as fault:
            log.warning("history=lost fault=%r", str(fault))

    def fence(self, lease: Lease) -> None:
        """Tell older holders of the Lease that the history is not theirs any more."""
        namespace = self._settings.namespace
        try:
            found = self._store.get("ConfigMap", namespace, HISTORY_MAP)
        except NotFound:
            metadata = {"name": HISTORY_MAP, "namespace": namespace, "annotations": {EPOCH: str(lease.epoch)}}
            self._store.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {ROWS: "[]"}})
            return
        lease.confirm()
        lease.fence([found])

    def _check_epoch(self, found: Object) -> None:
        epoch = int((found["metadata"].get("annotations") or {}).get(EPOCH) or 0)
        if self._lease is not None and epoch > self._lease.epoch:
            raise Conflict(f"ConfigMap {HISTORY_MAP}: expected epoch {self._lease.epoch} at most, got {epoch}")


def history_row(result: CycleResult) -> dict[str, Any]:
    """A round as one row of the history; words on gates are no actions, they tell places in the queue."""
    decision, target = result.decision, result.decision.target
    names = {job.id: _name(job.spec.workflow, job.spec.name) for job in result.observation.jobs}
    actions = [
        {"job": names.get(action.job_id, action.job_id), **encode(action)}
        for action in result.done
        if not isinstance(action, Announce)
    ]
    return {
        "time_s": result.observation.now_s,
        "decision": target.decision,
        "kind": decision.kind.value,
        "policy": target.policy,
        "gpus": {names[job_id]: gpus for job_id, gpus in target.allocation.gpus_by_job.items() if job_id in names},
        "disturbed": [names.get(job_id, job_id) for job_id in decision.disturbed],
        "actions": actions,
        "queued": {
            names.get(action.job_id, action.job_id): action.message
            for action in result.done
            if isinstance(action, Announce)
        },
        "conflicts": {names.get(job_id, job_id): why for job_id, why in result.conflicts.items()},
        "fault": result.fault or decision.fault,
    }


def bounded(rows: list[Any], count: int) -> str:
    """The newest rows as JSON: at most so many, and small enough for a ConfigMap."""
    rows = rows[-count:]
    text = json.dumps(rows, separators=(",", ":"))
    while len(text) > _HISTORY_BYTES and rows:
        rows = rows[len(rows) // 4 + 1 :]
        text = json.dumps(rows, separators=(",", ":"))
    return text


def _decision_text(result: CycleResult, start: Mapping[str, Any]) -> str:
    """What it started from, and what was decided, planned and done."""
    body = {
        **start,
        "time_s": result.observation.now_s,
        "decision": encode(result.decision),
        "plan": encode(result.plan),
        "done": encode(result.done),
        "conflicts": encode(result.conflicts),
        "fault": result.fault,
    }
    return json.dumps({"version": 1, **body}, sort_keys=True, separators=(",", ":"))


def _name(workflow: str, job: str) -> str:
    return f"{workflow}/{job}"

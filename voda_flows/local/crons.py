"""Cron workflows in the store: does what ``cron.py`` decides."""

from __future__ import annotations

import logging
from contextlib import suppress
from datetime import datetime

from scheduler_core.errors import Conflict, InvalidValue, NotFound
from voda_flows.local.cron import USED, CronStep, cron_step, reference, used_schedules
from voda_flows.local.store import LocalStore
from voda_flows.objects import CRON_LABEL, Key, Object

log = logging.getLogger("voda.local.cron")


class Crons:
    """The CronWorkflows of one home."""

    def __init__(self, store: LocalStore) -> None:
        self.store = store
        self.due: datetime | None = None

    def tick(self, now: datetime) -> None:
        """Start what is due; ``due`` tells when to look again though nothing changes."""
        again = []
        for key, cron in self.store.snapshot("CronWorkflow").items():
            try:
                step = cron_step(cron, self._children(key), now)
                self._do(key, cron, step)
            except (InvalidValue, ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
                # A document that is no cron workflow at all disturbs no other.
                self._record(key, {"conditions": [{"type": "SpecError", "status": "True", "message": str(error)}]})
                continue
            again.append(step.again)
        self.due = min(again, default=None)

    def _children(self, cron: Key) -> list[Object]:
        return [
            workflow
            for key, workflow in self.store.snapshot("Workflow").items()
            if key.namespace == cron.namespace
            and (workflow["metadata"].get("labels") or {}).get(CRON_LABEL) == cron.name
        ]

    def _do(self, key: Key, cron: Object, step: CronStep) -> None:
        _say_clock(key, cron, step)
        for name in step.terminate:
            with suppress(NotFound):
                self.store.merge_patch("Workflow", key.namespace, name, {"spec": {"shutdown": "Terminate"}})
        for name in step.delete:
            with suppress(NotFound):
                self.store.delete("Workflow", key.namespace, name)
        active = list(step.status["active"])
        if step.create is not None:
            with suppress(Conflict):  # one that exists was started by somebody for this very time
                active.append(reference(self.store.create(step.create)))
                log.info("cron=%s/%s start workflow=%s", key.namespace, key.name, step.create["metadata"]["name"])
            self._note_schedules(key, cron)
        self._record(key, {"clockTurnedBack": None, **step.status, "active": active, "conditions": None})

    def _note_schedules(self, key: Key, cron: Object) -> None:
        """Note with which schedules it ran, as Argo does: ticks of others were not missed."""
        with suppress(NotFound):
            self.store.merge_patch(*key, {"metadata": {"annotations": {USED: used_schedules(cron)}}})

    def _record(self, key: Key, status: Object) -> None:
        with suppress(NotFound):
            self.store.merge_patch(*key, {"status": status})


def _say_clock(key: Key, cron: Object, step: CronStep) -> None:
    """Say once that the clock was put back, and what that means."""
    turned = step.status.get("clockTurnedBack")
    before = (cron.get("status") or {}).get("clockTurnedBack") or {}
    if turned and turned["times"] != before.get("times"):
        log.warning(
            "cron=%s/%s the clock was put back to %s: times of day up to %s are not run again, periods go on",
            key.namespace, key.name, turned["since"], turned["until"],
        )  # fmt: skip

"""Old Workflows go: which of those that have ended are too old or too many, and their deletion.

A deleted Workflow goes as one that somebody deletes: with its pods, their folders and logs. Checkpoints and reports on
the volume stay, and so do the scheduler's records. Runs of cron workflows are left to these workflows' own limits.
"""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta

from scheduler_core.errors import Conflict, InvalidValue, NotFound
from voda_flows.config import CONFIG_MAP, DEFAULT_NAMESPACE, Settings
from voda_flows.local.store import LocalStore
from voda_flows.objects import CRON_LABEL, WORKFLOW_ENDED, Key, Object, format_time, parse_time, phase_of

LOOK_S = 60.0
"""How often is looked; each time a bounded number goes, so that no round is long."""
AT_ONCE = 50
DAY_S = 86_400.0
LONGEST_S = 36_500 * DAY_S

log = logging.getLogger("voda.local.prune")


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What may be kept.

    Attributes:
        number: Ended Workflows at most.
        age_s: Seconds after its end at most.
    """

    number: int
    age_s: float


def beyond(workflows: Iterable[Object], limits: Limits, now: datetime) -> list[Key]:
    """The ended Workflows that go, those that ended first at the head; never one that has not ended.

    Args:
        workflows: All Workflows.
        limits: What may be kept.
        now: The moment.
    """
    ended = sorted(
        (_end(body), body["metadata"]["namespace"], body["metadata"]["name"])
        for body in workflows
        if has_ended(body) and CRON_LABEL not in (body["metadata"].get("labels") or {})
    )
    oldest = format_time(now - timedelta(seconds=limits.age_s))
    too_many = max(0, len(ended) - limits.number)
    return [
        Key("Workflow", namespace, name)
        for number, (end, namespace, name) in enumerate(ended)
        if number < too_many or end < oldest
    ]


def has_ended(workflow: Object) -> bool:
    """Whether it has ended, and nobody has deleted it yet."""
    return phase_of(workflow) in WORKFLOW_ENDED and "deletionTimestamp" not in workflow["metadata"]


def _end(workflow: Object) -> str:
    """When it ended, as text of one form, so that texts are ordered as moments are."""
    for text in ((workflow.get("status") or {}).get("finishedAt"), workflow["metadata"].get("creationTimestamp")):
        with suppress(InvalidValue):
            return format_time(parse_time(text or ""))
    return ""


class Pruning:
    """Deletes old Workflows of one home now and then.

    Args:
        store: Where they are.
        clock: Seconds on a clock that never goes back.
    """

    def __init__(self, store: LocalStore, clock: Callable[[], float] = time.monotonic) -> None:
        self.store = store
        self._clock = clock
        self._next_s = -math.inf

    def is_due(self) -> bool:
        """Whether it is time to look."""
        return self._clock() >= self._next_s

    def turn(self, now: datetime) -> None:
        """Delete what is beyond the limits, if it is time to look."""
        if not self.is_due():
            return
        limits = self._limits()
        chosen = beyond(self.store.snapshot("Workflow").values(), limits, now) if limits else []
        for key in chosen[:AT_ONCE]:
            workflow = self.store.snapshot("Workflow").get(key)
            if workflow is not None and has_ended(workflow):
                self._delete(key, workflow)
        if len(chosen) <= AT_ONCE:
            self._next_s = self._clock() + LOOK_S

    def _delete(self, key: Key, workflow: Object) -> None:
        # Guarded by its version: one that was started again meanwhile (`voda retry`) stays.
        with suppress(Conflict, NotFound):
            self.store.delete(*key, uid=workflow["metadata"]["uid"], version=workflow["metadata"]["resourceVersion"])
            log.info("workflow=%s/%s is old, it goes", key.namespace, key.name)

    def _limits(self) -> Limits | None:
        """The settings as they stand; bad ones are said by whoever decides by them, and prune nothing."""
        try:
            data = self.store.get("ConfigMap", DEFAULT_NAMESPACE, CONFIG_MAP).get("data") or {}
            settings = Settings.from_strings(data)
        except NotFound:
            settings = Settings()
        except InvalidValue:
            return None
        return Limits(number=settings.keep_workflows, age_s=min(settings.keep_days * DAY_S, LONGEST_S))

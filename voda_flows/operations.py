"""What people do to Workflows, done in a store: the pure ``local/argo/operate.py`` on documents as they are kept.

In: the store and a Workflow as it was read; each change is guarded by its uid and its version, and worked out anew
where somebody else was first. The command line calls these; local mode's engine, or Argo's controller, does the rest.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime

from scheduler_core.errors import Conflict, NotFound
from voda_flows.local.argo import operate
from voda_flows.objects import Object, seconds
from voda_flows.store import ObjectStore
from voda_flows.workflows.packed import is_packed, with_open_nodes, with_packed_nodes

Clock = Callable[[], datetime]


def _wall_clock() -> datetime:
    return datetime.now(UTC)


def suspend(store: ObjectStore, workflow: Object) -> Object:
    """Start nothing new of a Workflow; what runs goes on.

    Raises:
        Conflict: It has ended.
        NotFound: It is gone.
    """
    return _change(store, workflow, operate.suspend)


def resume(store: ObjectStore, workflow: Object, now: Clock = _wall_clock) -> Object:
    """Let a Workflow go on, and complete every open gate with its defaults.

    Args:
        store: Where it is.
        workflow: As it was read.
        now: The clock by which its limits are judged.

    Raises:
        Conflict: It has ended.
        InvalidValue: A gate has an output without value and default.
        NotFound: It is gone.
    """
    return _change(store, workflow, lambda found: operate.resume(found, now()))


def terminate(store: ObjectStore, workflow: Object) -> Object:
    """End a Workflow at once, without its exit handler.

    Raises:
        Conflict: It has ended.
        NotFound: It is gone.
    """
    return _change(store, workflow, operate.terminate)


def retry(
    store: ObjectStore,
    workflow: Object,
    now: Clock = _wall_clock,
    *,
    busy_s: float = 0.0,
    sleep: Callable[[float], None] = time.sleep,
) -> Object:
    """Run a Workflow again from where it failed: the pods that failed are deleted, then it goes on.

    Args:
        store: Where it is.
        workflow: As it was read.
        now: The clock by which its limits are judged.
        busy_s: One that ended less than so many seconds ago is left alone until then.
        sleep: How to wait.

    Raises:
        Conflict: It did not fail.
        NotFound: It is gone.
    """

    def again(found: Object) -> Object:
        ended_s = seconds((found.get("status") or {}).get("finishedAt")) or 0.0
        sleep(min(busy_s, max(0.0, ended_s + busy_s - now().timestamp())))
        retried = operate.retry(found, now())
        for name in retried.delete:
            with suppress(NotFound):
                store.delete("Pod", found["metadata"]["namespace"], name)
        return retried.workflow

    return _change(store, workflow, again)


def resubmit(store: ObjectStore, workflow: Object) -> Object:
    """Create a new Workflow of the same spec; gives it as it is kept."""
    return store.create(operate.resubmit(workflow))


def _change(store: ObjectStore, workflow: Object, change: Callable[[Object], Object]) -> Object:
    """Change a Workflow's document as it is now, until nobody else was first; packed nodes are packed again."""
    metadata = workflow["metadata"]
    while True:
        found = store.get("Workflow", metadata["namespace"], metadata["name"])
        if found["metadata"]["uid"] != metadata["uid"]:
            raise NotFound(f"Workflow {metadata['name']}: expected the one with uid {metadata['uid']}, another one "
                           "has its name now; look at it first")  # fmt: skip
        opened = with_open_nodes(found)
        changed = change(opened)
        if changed == opened:
            return found
        with suppress(Conflict):
            return store.replace(with_packed_nodes(changed) if is_packed(found) else changed)

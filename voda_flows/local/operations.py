"""What people do to Workflows, done in the store: the pure ``argo/operate.py`` on documents as they are kept.

In: the store and a Workflow as it was read; each change is guarded by its uid and its version, and worked out anew
where somebody else was first. The command line calls these; the engine does the rest.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from datetime import datetime

from scheduler_core.errors import Conflict, NotFound
from voda_flows.local.argo import operate
from voda_flows.local.clock import EvenClock
from voda_flows.local.store import LocalStore
from voda_flows.objects import Object


def suspend(store: LocalStore, workflow: Object) -> Object:
    """Start nothing new of a Workflow; what runs goes on.

    Raises:
        Conflict: It has ended.
        NotFound: It is gone.
    """
    return _change(store, workflow, operate.suspend)


def resume(store: LocalStore, workflow: Object) -> Object:
    """Let a Workflow go on, and complete every open gate with its defaults.

    Raises:
        Conflict: It has ended.
        InvalidValue: A gate has an output without value and default.
        NotFound: It is gone.
    """
    return _change(store, workflow, lambda found: operate.resume(found, _now(store)))


def terminate(store: LocalStore, workflow: Object) -> Object:
    """End a Workflow at once, without its exit handler.

    Raises:
        Conflict: It has ended.
        NotFound: It is gone.
    """
    return _change(store, workflow, operate.terminate)


def retry(store: LocalStore, workflow: Object) -> Object:
    """Run a Workflow again from where it failed: the pods that failed are deleted, then it goes on.

    Raises:
        Conflict: It did not fail.
        NotFound: It is gone.
    """

    def again(found: Object) -> Object:
        retried = operate.retry(found, _now(store))
        for name in retried.delete:
            with suppress(NotFound):
                store.delete("Pod", found["metadata"]["namespace"], name)
        return retried.workflow

    return _change(store, workflow, again)


def resubmit(store: LocalStore, workflow: Object) -> Object:
    """Create a new Workflow of the same spec; gives it as it is kept."""
    return store.create(operate.resubmit(workflow))


def _change(store: LocalStore, workflow: Object, change: Callable[[Object], Object]) -> Object:
    """Change a Workflow's document as it is now, until nobody else was first."""
    metadata = workflow["metadata"]
    while True:
        found = store.get("Workflow", metadata["namespace"], metadata["name"])
        if found["metadata"]["uid"] != metadata["uid"]:
            raise NotFound(f"Workflow {metadata['name']}: expected the one with uid {metadata['uid']}, another one "
                           "has its name now; look at it first")  # fmt: skip
        changed = change(found)
        if changed == found:
            return found
        with suppress(Conflict):
            return store.replace(changed)


def _now(store: LocalStore) -> datetime:
    """The moment by which the engine judges limits."""
    return EvenClock(store.home / "clock.json").now()

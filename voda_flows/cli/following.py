"""Staying with Workflows until they have ended: waiting, for ``wait`` and ``submit --wait``.

Ends are seen in the store as soon as they are committed; nothing is polled.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence

from scheduler_core.errors import NotFound
from voda_flows.cli import output
from voda_flows.objects import WORKFLOW_ENDED, Object
from voda_flows.store import ObjectStore

_LOOK_S = 1.0
TIMED_OUT = 5


def wait(store: ObjectStore, workflows: Sequence[Object], *, timeout_s: float | None = None) -> int:
    """Wait until Workflows have ended, saying so for each on stderr.

    Args:
        store: Where they are.
        workflows: The Workflows, known by uid.
        timeout_s: How long at most, None for ever.

    Returns:
        0 when all succeeded, 1 when one failed (or was deleted), 5 when the time was over first.
    """
    end_s = None if timeout_s is None else time.monotonic() + timeout_s
    left, failed = {body["metadata"]["uid"]: body for body in workflows}, False
    for _ in changes(store):
        for uid, body in list(left.items()):
            phase, message = _phase_and_message(store, body)
            if phase in WORKFLOW_ENDED:
                name = body["metadata"]["name"]
                why = f"see `voda get {name}`" if message.startswith("child ") else message  # which names a node only
                output.story(f"{name} {phase}" + (f": {why}" if why else ""))
                failed = failed or phase != "Succeeded"
                del left[uid]
        if not left:
            return int(failed)
        if end_s is not None and time.monotonic() >= end_s:
            names = ", ".join(body["metadata"]["name"] for body in left.values())
            output.story(f"error: expected {names} to end within {timeout_s:g} s, not yet")
            return TIMED_OUT
    return int(failed)


def changes(store: ObjectStore, *, look_s: float = _LOOK_S) -> Iterator[int]:
    """The store's revision now, after every change, and at least every ``look_s`` seconds."""
    revision = store.revision()
    while True:
        yield revision
        revision = store.wait(revision, look_s)


def has_ended(store: ObjectStore, body: Object) -> bool:
    """Whether a Workflow has ended (or is gone)."""
    return _phase_and_message(store, body)[0] in WORKFLOW_ENDED


def _phase_and_message(store: ObjectStore, body: Object) -> tuple[str, str]:
    """Phase and message of a Workflow now; one that was deleted counts as failed."""
    meta = body["metadata"]
    try:
        found = store.get("Workflow", meta["namespace"], meta["name"])
    except NotFound:
        return "Error", "deleted"
    if found["metadata"]["uid"] != meta["uid"]:
        return "Error", "deleted"
    status = found.get("status") or {}
    return status.get("phase") or "Pending", status.get("message") or ""

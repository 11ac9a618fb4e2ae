"""How jobs that do not end well end in local mode, and what is left of them: for the tests and for the figures.

In: a world that is up. Out: an ``Ending``, a plain value. Each job is one worker on one slot.
"""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass, replace

from tests.e2e.job_record import last_words, verdicts
from tests.e2e.local_world import LIFE, NAMESPACE, ROOT, LocalWorld
from voda_flows.objects import POD_ENDED, WORKFLOW_ENDED, Object

FOREVER = f"{LIFE} 1200 0.02"
LEAVE_S = 90.0  # a pod's time to end by itself is 60 s
DELETE_LIMIT_S = 120


@dataclass(frozen=True, slots=True, kw_only=True)
class Ending:
    """What is there after a job.

    Attributes:
        phase: its Workflow's, ``""`` where that is gone.
        message: the Workflow's.
        segments: what the checkpoint step made of its segments.
        pods: its pods that have not ended; all of them where the Workflow is gone.
        slots: slots that they hold.
        processes: its processes.
        secrets: its keys; they stay with the Workflow.
    """

    phase: str
    message: str
    segments: tuple[str, ...]
    pods: tuple[str, ...] = ()
    slots: tuple[str, ...] = ()
    processes: tuple[int, ...] = ()
    secrets: tuple[str, ...] = ()


def always_fails(world: LocalWorld, retry_limit: int) -> Ending:
    """A job whose script raises before it joins anything, with a retry limit; the message is its checkpoint step's."""
    uid = world.submit("broken", {"command": f"{FOREVER} raises", "retry-limit": str(retry_limit)})
    world.until(lambda: _phase(world, "broken") in WORKFLOW_ENDED)
    return replace(_ending(world, "broken", uid), message=last_words(world.root(uid)))


def ends(world: LocalWorld) -> str:
    """A job that trains to its end; returns its name."""
    world.submit("whole", {"command": f"{LIFE} 10 0.02", "epochs": "3"})
    world.until(lambda: _phase(world, "whole") in WORKFLOW_ENDED)
    return "whole"


def hangs(world: LocalWorld, deadline_s: int, how: str) -> Ending:
    """A job with a deadline whose script stands still: before it joins (``hangs``), or in a step (``hangs-training``).

    The latter is asked to write a checkpoint, never does, and is killed when its pods' grace period is over.
    """
    uid = world.submit("hung", {"command": f"{FOREVER} {how}"}, deadline_s)
    world.until(lambda: _phase(world, "hung") in WORKFLOW_ENDED)
    return _ending(world, "hung", uid)


def is_deleted(world: LocalWorld) -> Ending:
    """A job that is deleted by ``voda delete`` while it trains."""
    uid = world.submit("unwanted", {"command": FOREVER, "epochs": "1000", "checkpoint-steps": "10"})
    world.until(lambda: any(world.root(uid).glob("segment-0/step-*/manifest.json")))
    subprocess.run(
        [sys.executable, "-m", "voda_flows.cli", "delete", "unwanted"],
        env={**os.environ, "VODA_HOME": str(world.home), "PYTHONPATH": str(ROOT)},
        stdout=subprocess.DEVNULL,
        check=True,
        timeout=DELETE_LIMIT_S,
    )
    return _ending(world, "unwanted", uid)


def _ending(world: LocalWorld, name: str, uid: str) -> Ending:
    """What is there when everything that was on its way out has had the time to go."""
    world.until(lambda: not (_pods(world, name) or world.orphans()), LEAVE_S)
    found = [body for body in world.store.list("Workflow", NAMESPACE) if body["metadata"]["name"] == name]
    status = (found[0].get("status") or {}) if found else {}
    secrets = [body["metadata"]["name"] for body in world.store.list("Secret", NAMESPACE)] if not found else []
    return Ending(
        phase=status.get("phase", ""),
        message=status.get("message", ""),
        segments=tuple(verdicts(world.root(uid))),
        pods=tuple(_pods(world, name)),
        slots=tuple(world.slots_of_the_dead()),
        processes=tuple(world.orphans()),
        secrets=tuple(secret for secret in secrets if uid in secret),
    )


def _phase(world: LocalWorld, name: str) -> str:
    return world.phases().get(name, "")


def _pods(world: LocalWorld, name: str) -> list[str]:
    """Names of a job's pods that are still at something; an ended one stays for its log while its Workflow does."""
    gone = name not in world.phases()
    labelled = world.store.list("Pod", NAMESPACE, {"workflows.argoproj.io/workflow": name})
    return sorted(pod["metadata"]["name"] for pod in labelled if gone or not _has_ended(pod))


def _has_ended(pod: Object) -> bool:
    return (pod.get("status") or {}).get("phase") in POD_ENDED

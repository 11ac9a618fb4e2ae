"""Jobs that have ended for good, remembered: what was read of them once is not read again.

A Workflow that has ended, and whose pods have too, says the same for ever. Its jobs and the head of its document (all
that a list of jobs shows) are kept as a memo in the state, so that looking at a thousand of them costs little.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from dataclasses import asdict, fields, replace
from typing import Any

from voda_flows.local.memos import Memos
from voda_flows.local.store import LocalStore
from voda_flows.objects import POD_ENDED, WORKFLOW_ENDED, Object, phase_of
from voda_flows.report.lives import Holding, JobLife, Segment
from voda_flows.store import ObjectStore

_REVISION = 2
"""To be raised whenever lives are read from the same documents in another way."""
_METADATA = ("name", "namespace", "uid", "labels", "creationTimestamp")
_STATUS = ("phase", "message", "progress", "startedAt", "finishedAt")


def memos(store: ObjectStore) -> Memos | None:
    """The memos of jobs, in the form that these lines of code write; None where the store keeps none."""
    if not isinstance(store, LocalStore):
        return None
    shape = [
        _REVISION,
        *((field.name, str(field.type)) for kind in (JobLife, Segment, Holding) for field in fields(kind)),
    ]
    return Memos(store, hashlib.sha256(repr(shape).encode()).hexdigest()[:16])


def is_settled(workflow: Object, pods: Iterable[Object]) -> bool:
    """Whether nothing about it changes any more."""
    ended = phase_of(workflow) in WORKFLOW_ENDED
    return ended and all(phase_of(pod) in POD_ENDED for pod in pods)


def text_of(workflow: Object, lives: Iterable[JobLife]) -> str:
    """A Workflow's head and its jobs, as a memo."""
    head = {
        "kind": workflow["kind"],
        "metadata": {name: workflow["metadata"][name] for name in _METADATA if name in workflow["metadata"]},
        "status": {name: workflow["status"][name] for name in _STATUS if name in workflow["status"]},
    }
    return json.dumps({"workflow": head, "lives": [asdict(_brief(life)) for life in lives]}, separators=(",", ":"))


def read(text: str) -> tuple[Object, tuple[JobLife, ...]]:
    """The Workflow's head and its jobs."""
    found = json.loads(text)
    return found["workflow"], tuple(map(_life, found["lives"]))


def _brief(life: JobLife) -> JobLife:
    """A job without what its checkpoint steps told: in local mode, the only one with memos, there are the files."""
    return replace(life, segments=tuple(replace(segment, record="") for segment in life.segments))


def _life(row: dict[str, Any]) -> JobLife:
    return JobLife(**{**row, "segments": tuple(map(_segment, row["segments"]))})


def _segment(row: dict[str, Any]) -> Segment:
    return Segment(**{**row, "holdings": tuple(map(_holding, row["holdings"]))})


def _holding(row: dict[str, Any]) -> Holding:
    return Holding(**{**row, "slots": tuple(row["slots"])})

"""Logs of pods that are gone while their Workflow is still there: its evicted workers, its earlier tries.

A deleted pod's log goes from its own folder to ``<home>/logs/<workflow uid>/<pod uid>.log``, with what is known of the
pod beside it; it goes when the Workflow goes. The kubelet puts it there, ``voda logs`` reads it.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterable
from pathlib import Path

from voda_flows.local.launch import pod_folder
from voda_flows.objects import Object

KEPT = ("name", "namespace", "uid", "labels", "annotations", "creationTimestamp")


def keep(home: Path, pod: Object, workflow_uid: str) -> None:
    """Put a pod's log aside; nothing happens where it has none, or where that is done already."""
    uid = pod["metadata"]["uid"]
    log, folder = pod_folder(home, uid) / "main.log", home / "logs" / workflow_uid
    if not log.exists():
        return
    folder.mkdir(parents=True, exist_ok=True)
    metadata = {name: pod["metadata"][name] for name in KEPT if name in pod["metadata"]}
    (folder / f"{uid}.json").write_text(json.dumps({"kind": "Pod", "metadata": metadata}))
    log.rename(folder / f"{uid}.log")


def kept(home: Path, workflow_uid: str) -> list[Object]:
    """The pods of a Workflow whose logs were put aside, as documents with their metadata only."""
    found = []
    for file in sorted((home / "logs" / workflow_uid).glob("*.json")):
        try:
            found.append(dict(json.loads(file.read_text())))
        except ValueError:  # cut off by a full disk
            continue
    return found


def log_path(home: Path, workflow_uid: str, pod_uid: str) -> Path:
    """Where a pod's log is: in its folder, or put aside."""
    aside = home / "logs" / workflow_uid / f"{pod_uid}.log"
    return aside if aside.exists() else pod_folder(home, pod_uid) / "main.log"


def forget(home: Path, workflow_uid: str) -> None:
    """Take away the logs of a Workflow that is gone."""
    shutil.rmtree(home / "logs" / workflow_uid, ignore_errors=True)


def sweep(home: Path, workflow_uids: Iterable[str]) -> None:
    """Take away the logs of all Workflows but these: what is left where a Workflow was lost with its database."""
    folder, known = home / "logs", set(workflow_uids)
    for left in folder.iterdir() if folder.is_dir() else ():
        if left.name not in known:
            shutil.rmtree(left, ignore_errors=True)

"""Pods as processes: starting what is bound, telling the store how each fares, ending what is deleted.

Acts on folders and processes; what it sees it gives back as merge-patches of the Pod, for the engine to write. All of
it can be repeated, by this engine or by the next: a pod's folder says whether it has begun, lives or has ended.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

from scheduler_core.errors import Unreachable
from voda_flows.local import pod as parent
from voda_flows.local.argo.assess import missing_output
from voda_flows.local.clock import EvenClock
from voda_flows.local.launch import Launch, downward_files, main_container, pod_folder
from voda_flows.local.nodes import node_of
from voda_flows.local.processes import is_held, kill_marked, parent_of, parents_in, tell
from voda_flows.objects import POD_ENDED, Object, format_time

OUTPUTS, PROGRESS = "voda.dev/outputs", "voda.dev/progress"
LOST = "pod's process was lost"
LATE = "Pod was active on the node longer than the specified deadline"
LIFE_CHECK_S = 0.5
"""How often it is made sure that the parent of a running pod is still there."""
PROBE_LIMIT_S = 0.05
FILE_TIME_NS = 20_000_000
AGENT_PORT = 7070
ADDRESS_TRIES = 4096
START_LIMIT_S = 10.0
"""A parent process that has not begun by then is started again (the folder's lock keeps it to one)."""


class _Watched:
    """What is remembered of a pod between two looks; nothing that could not be found out again."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.start, self.exit, self.progress = folder / "start.json", folder / "exit.json", folder / "progress"
        self.child: subprocess.Popen[bytes] | None = None
        self.started_s = self.checked_s = -math.inf
        self.progress_seen: tuple[int, str] = (0, "")
        self.told = False
        self.downward: dict[Path, bytes] = {}

    def has_child(self) -> bool:
        """Whether a parent process that this engine started is there."""
        return self.child is not None and self.child.poll() is None


class Pods:
    """The pods of one home.

    Args:
        home: Folder of local mode's state.
        clock: The engine's clock, by which pods' starts and ends are written down.
    """

    def __init__(self, home: Path, clock: EvenClock) -> None:
        self.home = home
        self.clock = clock
        self._watched: dict[str, _Watched] = {}
        self._ending: list[subprocess.Popen[bytes]] = []

    def has_begun(self, uid: str) -> bool:
        """Whether a pod's process was started; one that shows no sign of it for long is to be started again."""
        watched = self._of(uid)
        return watched.start.exists() or time.monotonic() - watched.started_s < START_LIMIT_S

    def has_failed_to_begin(self, uid: str) -> bool:
        """Whether a pod's process was started and shows no sign of it for so long that it is to be started again."""
        watched = self._of(uid)
        return watched.started_s > -math.inf and not self.has_begun(uid)

    def start(self, pod: Object, launch: Launch) -> None:
        """Start a bound pod that has not begun; the lock on its folder makes sure that it runs once."""
        watched = self._of(pod["metadata"]["uid"])
        for path in (watched.folder, *launch.folders, *(path.parent for path in launch.files)):
            path.mkdir(parents=True, exist_ok=True)
        for path, content in launch.files.items():
            _write_private(path, content)
        spec = {**launch.spec, "clock_s": self.clock.offset_s}
        _write_private(watched.folder / "pod.json", json.dumps(spec).encode())
        with (watched.folder / "parent.log").open("ab") as log:
            watched.child = subprocess.Popen(
                [sys.executable, "-S", "-E", parent.__file__, str(watched.folder)],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=log,
                cwd=watched.folder,
                start_new_session=True,
            )
        watched.started_s = time.monotonic()

    def look(self, pod: Object) -> Object:
        """How a bound pod fares: the merge-patch that its document needs, empty where nothing is new."""
        try:
            return self._look(pod, self._of(pod["metadata"]["uid"]))
        except (KeyError, TypeError, ValueError) as error:
            # Its own files cannot be read: nobody knows how it ended, and it disturbs no other.
            return self._lost(pod, f"{LOST}: its records are broken ({error})")

    def _look(self, pod: Object, watched: _Watched) -> Object:
        if watched.exit.exists():
            return _with_progress(pod, _ended(pod, watched.folder), watched)
        if not watched.start.exists():
            return {}
        if self._is_lost(watched):
            # It may have ended between the two looks.
            return self._look(pod, watched) if watched.exit.exists() else self._lost(pod, LOST)
        patch = {} if pod["status"].get("phase") == "Running" else _running(watched.folder)
        if not _is_ready(pod) and _answers(pod):
            patch = _with_ready(pod, patch)
        return _with_progress(pod, patch, watched)

    def end(self, pod: Object) -> bool:
        """Ask a pod to end, once; true where it has no process any more and its end is recorded."""
        watched = self._of(pod["metadata"]["uid"])
        if node_of(pod) is None or pod["status"].get("phase") in POD_ENDED:
            return True
        if not watched.told:
            watched.told = tell(watched.folder, signal.SIGTERM)
        return not (watched.has_child() or watched.start.exists() or is_held(watched.folder / "lock"))

    def refresh(self, pod: Object) -> None:
        """Write the downward-API files anew where the pod's document says something else than they do."""
        uid = pod["metadata"]["uid"]
        written = self._of(uid).downward
        for path, content in downward_files(pod, self.home).items():
            if written.get(path) != content and path.parent.exists():
                _write_private(path, content)
                written[path] = content

    def rest(self, uid: str) -> None:
        """Think no more of a pod whose end is recorded."""
        watched = self._watched.pop(uid, None)
        if watched is not None and watched.child is not None:
            self._ending.append(watched.child)
        self._ending = [child for child in self._ending if child.poll() is None]

    def sweep(self, known: Iterable[str]) -> list[str]:
        """End and take away what belongs to no pod that is known: an engine was killed at it, or the state is older.

        Returns:
            Their uids.
        """
        folder, uids = self.home / "pods", set(known)
        left = [path for path in folder.iterdir() if path.name not in uids] if folder.is_dir() else []
        parents = parents_in(self.home) if left else {}
        for path in left:
            if path in parents:
                with suppress(ProcessLookupError):
                    os.kill(parents[path], signal.SIGKILL)
            kill_marked(path.name)
            shutil.rmtree(path, ignore_errors=True)
        return [path.name for path in left]

    def forget(self, uid: str) -> None:
        """Take away what a pod left: its folder, its log."""
        self.rest(uid)
        shutil.rmtree(pod_folder(self.home, uid), ignore_errors=True)

    def _of(self, uid: str) -> _Watched:
        if uid not in self._watched:
            self._watched[uid] = _Watched(pod_folder(self.home, uid))
        return self._watched[uid]

    def _is_lost(self, watched: _Watched) -> bool:
        if watched.child is not None and not watched.has_child():
            # Ours has ended; where it was one too many, another one runs the pod.
            return not is_held(watched.folder / "lock")
        now_s = time.monotonic()
        if now_s - watched.checked_s < LIFE_CHECK_S:
            return False
        watched.checked_s = now_s
        return parent_of(watched.folder) is None

    def _lost(self, pod: Object, message: str) -> Object:
        kill_marked(pod["metadata"]["uid"])
        status = {"phase": "Failed", "reason": "Lost", "message": message, "conditions": _conditions(pod, ready=False)}
        return {"status": status}


def is_free(address: str) -> bool:
    """Whether an agent could listen at an address of this machine."""
    with socket.socket() as probe:
        try:
            probe.bind((address, AGENT_PORT))
        except OSError:
            return False
    return True


def choose_address(uid: str, used: Iterable[str], is_free: Callable[[str], bool] = is_free) -> str:
    """An address of the loopback network for a pod: none of those in use, and none where an agent listens.

    Args:
        uid: The pod's; it picks where the search begins, so that two homes on one machine hardly meet.
        used: Addresses of other pods.
        is_free: Whether an agent could listen there.

    Raises:
        Unreachable: There is none, as on systems whose loopback network is 127.0.0.1 alone.
    """
    taken, start = set(used), int.from_bytes(hashlib.sha256(uid.encode()).digest()[:4], "big")
    for step in range(ADDRESS_TRIES):
        number = (start + step) % (253 * 256 * 254)
        address = f"127.{1 + number // (256 * 254)}.{number // 254 % 256}.{1 + number % 254}"
        if address not in taken and is_free(address):
            return address
    raise Unreachable(
        f"expected a free address for a pod (127.x.x.x, port {AGENT_PORT}), found none among {ADDRESS_TRIES}\n"
        "local mode needs a system where all of 127.0.0.0/8 is the machine's own, as on Linux"
    )


def _write_private(path: Path, content: bytes) -> None:
    """Write a file that only its owner may read, so that readers see the old content or the new one."""
    partial = path.with_name(f".{path.name}.partial")
    partial.touch(0o600)
    partial.write_bytes(content)
    partial.replace(path)


def _is_ready(pod: Object) -> bool:
    conditions = pod["status"].get("conditions") or ()
    return any(condition["type"] == "Ready" and condition["status"] == "True" for condition in conditions)


def _conditions(pod: Object, *, ready: bool) -> list[Object]:
    """The pod's conditions with the one that says whether it is ready."""
    others = [entry for entry in pod["status"].get("conditions") or () if entry["type"] != "Ready"]
    stamp = format_time(datetime.now(UTC))
    return [*others, {"type": "Ready", "status": "True" if ready else "False", "lastTransitionTime": stamp}]


def _with_ready(pod: Object, patch: Object) -> Object:
    old = patch.get("status") or pod["status"]
    containers = [{**container, "ready": True} for container in old.get("containerStatuses", ())]
    new = {"conditions": _conditions(pod, ready=True), "containerStatuses": containers}
    return {**patch, "status": {**patch.get("status", {}), **new}}


def _answers(pod: Object) -> bool:
    """Whether the pod's readiness probe succeeds; one that has none is ready as soon as it runs."""
    probe = main_container(pod).get("readinessProbe")
    if not probe:
        return True
    port = (probe.get("tcpSocket") or {}).get("port", AGENT_PORT)
    try:
        socket.create_connection((pod["status"]["podIP"], int(port)), PROBE_LIMIT_S).close()
    except OSError:
        return False
    return True


def _with_progress(pod: Object, patch: Object, watched: _Watched) -> Object:
    try:
        changed_ns = watched.progress.stat().st_mtime_ns
    except FileNotFoundError:
        return patch
    if changed_ns != watched.progress_seen[0]:
        # File times are coarse: what was written just now may be written again within the same tick.
        settled = time.time_ns() - changed_ns > FILE_TIME_NS
        watched.progress_seen = (changed_ns if settled else 0, watched.progress.read_text().strip())
    text = watched.progress_seen[1]
    known = (pod["metadata"].get("annotations") or {}).get(PROGRESS)
    if text == known or not re.fullmatch(r"\d+/\d+", text):
        return patch
    annotations = (patch.get("metadata") or {}).get("annotations", {})
    return {**patch, "metadata": {"annotations": {**annotations, PROGRESS: text}}}


def _running(folder: Path) -> Object:
    started = json.loads((folder / "start.json").read_text())["startedAt"]
    container = {"name": "main", "ready": False, "restartCount": 0, "state": {"running": {"startedAt": started}}}
    status = {"phase": "Running", "message": None, "startTime": started, "containerStatuses": [container]}
    return {"status": status}


def _ended(pod: Object, folder: Path) -> Object:
    """The patch that records the end which a pod's process wrote."""
    started = json.loads((folder / "start.json").read_text())["startedAt"]
    end = json.loads((folder / "exit.json").read_text())
    # As on a cluster, where Argo's own container fails then.
    has_failed = int(end["exitCode"]) or end["reason"] or missing_output(pod, end["outputs"])
    code, words = int(end["exitCode"]), f": {end['message']}" if end["message"] else ""
    terminated = {
        "exitCode": code,
        "reason": "Error" if code else "Completed",
        "startedAt": started,
        "finishedAt": end["finishedAt"],
        **({"message": end["message"]} if end["message"] else {}),
    }
    state = {"name": "main", "ready": False, "restartCount": 0, "state": {"terminated": terminated}}
    status = {
        "phase": "Failed" if has_failed else "Succeeded",
        "message": f"Error (exit code {code}){words}" if code else None,
        "startTime": started,
        "containerStatuses": [state],
        "conditions": _conditions(pod, ready=False),
        **({"reason": end["reason"], "message": LATE} if end["reason"] else {}),
    }
    outputs = {**end["outputs"], "exitCode": str(code)}
    return {"status": status, "metadata": {"annotations": {OUTPUTS: json.dumps(outputs)}}}

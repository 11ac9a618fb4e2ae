"""What pods of a cluster print, through the API server: at once, or as it grows.

The server says of every line when it was written, so lines of several pods are in order. A log that is followed is read
by a thread of its own; where its connection breaks, it goes on behind the last line that it has. That such a connection
comes to its end, or is late to, says nothing of the log: when its pod has ended, what is behind the last line is asked
for once as a whole. What was deleted with its pod is gone, and is said to be.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from scheduler_core.errors import Forbidden, InvalidValue, NotFound, VodaError
from voda_flows.kube.api import Api
from voda_flows.kube.resources import Resource, resource_of
from voda_flows.kube.transport import AnswerLost, NotSent, Stream
from voda_flows.objects import NODE_ENDED, Key, Object, seconds
from voda_flows.workflows.packed import nodes_of
from voda_flows.world import Line

_LOG: Final = Resource(kind="Pod", plural="pods/log")
#: Pause before a log is asked for again: its container is not started yet, or its connection broke.
_AGAIN_S: Final = 0.5
#: How long the end of a log is waited for once its pod has ended.
_END_S: Final = 10.0
_NODE_ID: Final = "workflows.argoproj.io/node-id"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Place:
    """Whose log it is."""

    key: Key
    container: str

    @property
    def path(self) -> str:
        return f"{resource_of('Pod').path(self.key)}/log"

    def query(self, **more: str) -> dict[str, str]:
        return {"container": self.container, "timestamps": "true", **more}


@dataclass(slots=True, kw_only=True)
class KubeLogs:
    """``Logs`` of a cluster.

    Attributes:
        api: The API server.
        remarks: What could not be read, and why.
    """

    api: Api
    remarks: list[str]
    _streams: list[FollowedLog] = field(default_factory=list, init=False)
    _missed: set[str] = field(default_factory=set, init=False)

    def gone(self, workflow: Object, there: Sequence[Object]) -> Sequence[Object]:
        """See ``Logs.gone``: none; what went with its pod is said once."""
        ids = {(pod["metadata"].get("annotations") or {}).get(_NODE_ID) for pod in there}
        try:
            nodes = nodes_of(workflow)
        except InvalidValue:
            return ()
        missing = {
            key: str(node.get("displayName") or node.get("name"))
            for key, node in nodes.items()
            if node.get("type") == "Pod"
            and node.get("phase") in NODE_ENDED
            and node.get("finishedAt")
            and key not in ids
            if node.get("phase") not in ("Skipped", "Omitted") and key not in self._missed
        }
        if missing:
            self._missed |= missing.keys()
            names = ", ".join(sorted(missing.values()))
            self.remarks.append(
                f"{workflow['metadata']['name']}: the output of {names} is gone with its pod (deleted); archived logs "
                "(archiveLogs), where there are any, are in Argo's artifact repository"
            )
        return ()

    def open(self, workflow: Object, pod: Object, *, tail: int | None, follow: bool) -> WholeLog | FollowedLog:  # noqa: ARG002 - a pod is enough
        """See ``Logs.open``."""
        meta = pod["metadata"]
        place = _Place(key=Key("Pod", meta["namespace"], meta["name"]), container=_container(pod))
        lines = {} if tail is None else {"tailLines": str(tail)}
        if not follow:
            return WholeLog(self.api, place, lines, self.remarks)
        self._streams.append(FollowedLog(self.api, place, lines, self.remarks))
        return self._streams[-1]

    def is_over(self) -> bool:
        """See ``Logs.is_over``: others may write there at any time."""
        return False

    def close(self) -> None:
        """See ``Logs.close``."""
        for stream in self._streams:
            stream.close()


class WholeLog:
    """``PodLog`` that is read once, as it is now."""

    def __init__(self, api: Api, place: _Place, lines: Mapping[str, str], remarks: list[str]) -> None:
        self._api = api
        self._place = place
        self._lines = lines
        self._remarks = remarks

    def read(self, *, last: bool) -> list[Line]:  # noqa: ARG002 - it is as it is now
        """See ``PodLog.read``."""
        try:
            query = self._place.query(**self._lines)
            answer = self._api.ask(_LOG, self._place.key, self._place.path, query, is_text=True)
        except (InvalidValue, NotFound):  # its container is not started; or it was deleted just now
            return []
        except Forbidden:
            raise
        except VodaError as wrong:  # its node is lost, or its log is
            self._remarks.append(f"{self._place.key.name}: its output cannot be read: {wrong}")
            return []
        return [timed_line(text) for text in answer.body.split(b"\n") if text]


class FollowedLog:
    """``PodLog`` that is read as it grows, by a thread of its own."""

    def __init__(self, api: Api, place: _Place, lines: Mapping[str, str], remarks: list[str]) -> None:
        self._api = api
        self._place = place
        self._lines = dict(lines)
        self._remarks = remarks
        self._new: deque[Line] = deque()
        self._stream: Stream | None = None
        self._last = ""
        self._behind = ""
        self._closed, self._over = threading.Event(), threading.Event()
        self._is_whole = False
        self._thread = threading.Thread(target=self._run, name=f"log-{place.key.name}", daemon=True)
        self._thread.start()

    def read(self, *, last: bool) -> list[Line]:
        """See ``PodLog.read``; of an ended pod the rest is waited for, and what the connection missed is asked for."""
        if last and not self._is_whole:
            self._over.wait(_END_S)
            self.close()
            self._thread.join(_END_S)
            self._read_rest()
        found = []
        while self._new:
            found.append(self._new.popleft())
        return found

    def close(self) -> None:
        """Nothing more is wanted of it."""
        self._closed.set()
        if self._stream is not None:
            self._stream.close()

    def _read_rest(self) -> None:
        """What is behind the last line of a log that grows no more."""
        self._is_whole, self._behind = True, self._last
        since = {"sinceTime": self._last} if self._last else self._lines
        try:
            answer = self._api.ask(_LOG, self._place.key, self._place.path, self._place.query(**since), is_text=True)
        except (InvalidValue, NotFound):  # its container never started; or its pod was deleted
            return
        except VodaError as wrong:
            self._remarks.append(f"{self._place.key.name}: the end of its output cannot be read: {wrong}")
            return
        for text in answer.body.split(b"\n"):
            self._take(text)

    def _run(self) -> None:
        """Read until the container has ended, or the log is gone."""
        try:
            while not self._closed.is_set() and not self._is_read():
                self._closed.wait(_AGAIN_S)
        except VodaError as wrong:
            self._remarks.append(f"{self._place.key.name}: its output cannot be followed: {wrong}")
        finally:
            self._over.set()

    def _is_read(self) -> bool:
        """One connection; whether the log has come to its end."""
        since = {"sinceTime": self._last} if self._last else self._lines
        self._behind = self._last
        try:
            query = self._place.query(follow="true", **since)
            self._stream = self._api.follow(_LOG, self._place.key, self._place.path, query)
            for text in self._stream.lines():
                self._take(text)
        except (InvalidValue, NotSent, AnswerLost):  # not started yet; or cut off
            return False
        except NotFound:
            return True
        return True

    def _take(self, text: bytes) -> None:
        """Note a line, unless it was there before the connection broke: those come first, up to the newest that we had.

        On one connection stamps may stand still or go back: what a program writes to its two outputs is stamped apart.
        """
        stamp = text.partition(b" ")[0].decode(errors="replace")
        is_stamped = seconds(stamp) is not None
        if not text or (self._behind and is_stamped and stamp <= self._behind):
            return
        if is_stamped:
            self._behind, self._last = "", max(self._last, stamp)
        self._new.append(timed_line(text))


def timed_line(text: bytes) -> Line:
    """A line with the time that stands before it, as the API server puts it there."""
    stamp, _, rest = text.decode(errors="replace").partition(" ")
    at_s = seconds(stamp)
    if at_s is None:
        return Line(text=text.decode(errors="replace"), from_s=0.0, until_s=float("inf"))
    return Line(text=rest.rstrip("\r"), from_s=at_s, until_s=at_s)


def _container(pod: Object) -> str:
    """The container that does the pod's work: Argo's ``main``, else the first that is not Argo's own."""
    names = [str(each.get("name")) for each in (pod.get("spec") or {}).get("containers") or ()]
    return "main" if "main" in names or not names else next((name for name in names if name != "wait"), names[0])

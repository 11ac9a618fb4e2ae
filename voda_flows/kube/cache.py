"""What is known of the objects of one kind: the last list, changed by a watch and by the answers to our own writes.

The two come on different connections, so a watch may tell of a version older than what we ourselves have written
since. Versions are compared (numbers, as API servers order them for the objects of one kind): an older one changes
nothing, and what is gone does not come back by old news.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable, Mapping

from voda_flows.objects import Key, Object, key_of

#: Objects that are gone, remembered for what may still be said of them: far more than go in the time that takes.
_REMEMBERED = 4096


class Changes:
    """Counts the changes of all caches of a store, and wakes whoever waits for one."""

    def __init__(self) -> None:
        self._count = 0
        self._changed = threading.Condition()

    def count(self) -> int:
        """How many there have been."""
        return self._count

    def add(self) -> None:
        """There was one."""
        with self._changed:
            self._count += 1
            self._changed.notify_all()

    def wait(self, since: int, timeout_s: float) -> int:
        """The count, as soon as it is higher than ``since`` or the time is over."""
        end_s = time.monotonic() + timeout_s
        with self._changed:
            self._changed.wait_for(lambda: self._count > since, timeout=max(0.0, end_s - time.monotonic()))
            return self._count


class Cache:
    """The objects of one kind; usable from all threads.

    Args:
        changes: Told of every change.
    """

    def __init__(self, changes: Changes) -> None:
        self._changes = changes
        self._lock = threading.Lock()
        self._objects: dict[Key, Object] = {}
        self._gone: dict[str, None] = {}  # uids, the newest last: they never come back
        self._listed: dict[str, int] = {}
        self._shown: dict[Key, Object] = {}
        self._is_shown = True

    def snapshot(self) -> Mapping[Key, Object]:
        """All objects by key in order of (namespace, name); the same mapping while nothing changes."""
        with self._lock:
            if not self._is_shown:
                self._shown = dict(sorted(self._objects.items()))
                self._is_shown = True
            return self._shown

    def listed(self, items: Iterable[Object], version: str, namespace: str = "") -> None:
        """Take over a list, of one namespace or of all; what we wrote after its moment stays as we wrote it."""
        new = {key_of(body): body for body in items}
        moment = _as_number(version)
        with self._lock:
            self._listed[namespace] = moment
            found = {key: body for key, body in new.items() if body["metadata"]["uid"] not in self._gone}
            for key, known in self._objects.items():
                is_elsewhere = bool(namespace) and key.namespace != namespace
                is_later = moment < _number(known) and key not in new
                if is_elsewhere or is_later or (key in found and not _is_newer(found[key], known)):
                    found[key] = known
            is_same = found.keys() == self._objects.keys() and all(found[key] is self._objects[key] for key in found)
            if not is_same:
                self._objects, self._is_shown = found, False
        if not is_same:
            self._changes.add()

    def heard(self, event: str, body: Object) -> None:
        """Take over what a watch tells: ``ADDED``, ``MODIFIED`` or ``DELETED``."""
        key = key_of(body)
        if event == "DELETED":
            self.deleted(key, body["metadata"]["uid"])
        else:
            with self._lock:
                changed = self._take(key, body)
            if changed:
                self._changes.add()

    def wrote(self, body: Object) -> None:
        """Take over the answer to a write of ours; it may come after the news that the object is gone."""
        key = key_of(body)
        with self._lock:
            moment = max(self._listed.get("", -1), self._listed.get(key.namespace, -1))
            is_over = key not in self._objects and 0 <= _number(body) <= moment  # a list since did not show it
            changed = not is_over and self._take(key, body)
        if changed:
            self._changes.add()

    def deleted(self, key: Key, uid: str) -> None:
        """Take note that an object is gone, by what a watch told or the answer to a deletion of ours."""
        with self._lock:
            self._gone[uid] = None
            if len(self._gone) > _REMEMBERED:
                del self._gone[next(iter(self._gone))]
            known = self._objects.get(key)
            changed = known is not None and known["metadata"]["uid"] == uid
            if changed:
                del self._objects[key]
                self._is_shown = False
        if changed:
            self._changes.add()

    def _take(self, key: Key, body: Object) -> bool:
        if body["metadata"]["uid"] in self._gone or not _is_newer(body, self._objects.get(key)):
            return False
        self._objects[key] = body
        self._is_shown = False
        return True


def _is_newer(body: Object, known: Object | None) -> bool:
    """Whether a document says more than what is known; where versions are no numbers, what comes later does."""
    if known is None:
        return True
    if body["metadata"].get("resourceVersion") == known["metadata"].get("resourceVersion"):
        return False
    new, old = _number(body), _number(known)
    return new > old or min(new, old) < 0


def _number(body: Object) -> int:
    return _as_number(str(body["metadata"].get("resourceVersion") or ""))


def _as_number(version: str) -> int:
    """A version as a number, -1 where it is none."""
    return int(version) if version.isascii() and version.isdigit() else -1

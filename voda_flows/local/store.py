"""The object store of this machine: ``ObjectStore`` on one SQLite file, for many processes at once.

One counter numbers all changes; an object's ``resourceVersion`` is the counter's value at its last change. What the
engine of local mode needs beyond the Protocol is here too: several writes as one (``commit``), removing what has ended
(``remove``) and reading a kind without parsing what has not changed (``snapshot``).
"""

from __future__ import annotations

import copy
import json
import sqlite3
import threading
import time
import uuid
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from pathlib import Path

from scheduler_core.errors import InvalidValue, NotFound
from voda_flows.local.database import Database
from voda_flows.objects import Key, Object, format_time, has_labels, key_of, merge_patch, owner_uids
from voda_flows.store import absent, another, json_text, moved, new_key, taken

ENDS_ITSELF = frozenset({"Pod", "Workflow"})
"""Kinds that have processes: their deletion is asked for, and done by the engine once these have ended."""

FIRST_LOOK_S, LAST_LOOK_S, QUIET_LOOK_S = 0.005, 0.02, 0.05
"""How often a waiting process looks for a change: at first, at rest, and where nothing has changed for ``QUIET_S``."""
QUIET_S = 1.0
ASK_S = 0.1
"""How often SQLite is asked though the file's time says that nothing changed: that costs 100 times what a look does."""


class LocalStore:
    """Objects in ``<home>/state.db``; an instance is usable from all threads."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.database = Database(home / "state.db")
        self._glances = threading.local()
        self._snapshots: dict[str, tuple[int, dict[Key, Object]]] = {}

    def get(self, kind: str, namespace: str, name: str) -> Object:
        """See ``ObjectStore.get``."""
        return self._row(self.database.connection(), Key(kind, namespace, name))[1]

    def list(self, kind: str, namespace: str | None = None, labels: Mapping[str, str] | None = None) -> list[Object]:
        """See ``ObjectStore.list``."""
        query, values = "SELECT body FROM objects WHERE kind = ?", [kind]
        if namespace is not None:
            query, values = f"{query} AND namespace = ?", [kind, namespace]
        with self.database.errors():
            rows = self.database.connection().execute(f"{query} ORDER BY namespace, name", values).fetchall()
        found = [json.loads(body) for (body,) in rows]
        return [body for body in found if has_labels(body, labels)] if labels else found

    def snapshot(self, kind: str) -> dict[Key, Object]:
        """All objects of a kind by key, in order of (namespace, name); for reading only: all of it is shared.

        Only what changed since the last call is read and parsed; where nothing did, it is the same dict. One thread may
        use it.
        """
        connection, (since, found) = self.database.connection(), self._snapshots.get(kind, (0, {}))
        with self.database.errors():
            connection.execute("BEGIN")  # one moment for both questions
            try:
                query = "SELECT namespace, name, version, body FROM objects WHERE kind = ? AND version > ?"
                changed = connection.execute(query, (kind, since)).fetchall()
                query = "SELECT count(*) FROM objects WHERE kind = ?"
                count = connection.execute(query, (kind,)).fetchone()[0]
                new = {**found, **{Key(kind, *row[:2]): json.loads(row[3]) for row in changed}}
                if len(new) != count:
                    query = "SELECT namespace, name FROM objects WHERE kind = ?"
                    there = {Key(kind, *row) for row in connection.execute(query, (kind,)).fetchall()}
                    new = {key: body for key, body in new.items() if key in there}
            finally:
                connection.execute("COMMIT")
        if not changed and len(new) == len(found):
            return found
        if new.keys() != found.keys():
            new = dict(sorted(new.items()))
        self._snapshots[kind] = max([since, *(row[2] for row in changed)]), new
        return new

    def create(self, body: Object) -> Object:
        """See ``ObjectStore.create``."""
        with self.database.write() as connection:
            return self._create(connection, body)

    def merge_patch(
        self, kind: str, namespace: str, name: str, patch: Object, *, resource_version: str | None = None
    ) -> Object:
        """See ``ObjectStore.merge_patch``."""
        key = Key(kind, namespace, name)
        guard = patch.get("metadata") or {}
        with self.database.write() as connection:
            version, old = self._row(connection, key)
            _check_guard(key, old, resource_version or guard.get("resourceVersion"), guard.get("uid"))
            new = _with_identity(key, merge_patch(old, patch), old)
            return old if new == old else self._write(connection, key, new, version)

    def replace(self, body: Object) -> Object:
        """See ``ObjectStore.replace``."""
        with self.database.write() as connection:
            return self._replace(connection, body)

    def delete(
        self, kind: str, namespace: str, name: str, *, uid: str | None = None, version: str | None = None
    ) -> None:
        """See ``ObjectStore.delete``; guarded by a version too where one is given."""
        key = Key(kind, namespace, name)
        with self.database.write() as connection:
            _, old = self._row(connection, key)
            _check_guard(key, old, version, uid)
            self._delete(connection, key, old)

    def remove(self, key: Key, *, uid: str) -> None:
        """Take away an object at once, and delete what it owns; nothing happens where it is gone already.

        For whoever knows that its processes have ended: the engine, for pods and workflows.
        """
        with self.database.write() as connection:
            try:
                _, old = self._row(connection, key)
            except NotFound:
                return
            if old["metadata"]["uid"] == uid:
                self._remove(connection, old)

    def commit(self, *, replace: Object, create: Iterable[Object] = ()) -> Object:
        """Replace one object and create others, all or nothing; of those to create, what exists stays as it is.

        Returns:
            The replaced object.

        Raises:
            NotFound: There is none to replace.
            Conflict: It has another version or uid; nothing was created.
        """
        with self.database.write() as connection:
            new = self._replace(connection, replace)
            for body in create:
                if not self._exists(connection, key_of(body)):
                    self._create(connection, body)
            return new

    def renew(self, kind: str, bodies: Iterable[Object]) -> None:
        """Make these and no others the objects of a kind, all or nothing."""
        with self.database.write() as connection:
            rows = connection.execute("SELECT body FROM objects WHERE kind = ?", (kind,)).fetchall()
            for (old,) in rows:
                self._remove(connection, json.loads(old))
            for body in bodies:
                self._create(connection, body)

    def revision(self) -> int:
        """See ``ObjectStore.revision``."""
        with self.database.errors():
            return int(self.database.connection().execute("SELECT revision FROM counter").fetchone()[0])

    def wait(self, since: int, timeout_s: float) -> int:
        """See ``ObjectStore.wait``; any commit is noticed within some 20 ms, after a quiet time within 50 ms."""
        revision = self.revision()
        return revision if revision > since else self.rest(since, timeout_s, FIRST_LOOK_S)

    def rest(self, since: int, timeout_s: float, look_s: float = QUIET_LOOK_S) -> int:
        """As ``wait``, for whoever does so all the time: what it costs is little, also where the time is short."""
        end_s = time.monotonic() + timeout_s
        while (revision := self.glance()) <= since and (left_s := end_s - time.monotonic()) > 0:
            look_s = min(look_s, self._longest_look_s())
            time.sleep(min(look_s, left_s))
            look_s *= 2
        return revision

    def _longest_look_s(self) -> float:
        is_quiet = time.monotonic() - self._glances.changed_s > QUIET_S
        return QUIET_LOOK_S if is_quiet else LAST_LOOK_S

    def glance(self) -> int:
        """The revision, or what it was at most ``ASK_S`` ago: two commits in one tick of file times look like one."""
        last, mark, now_s = self._glances, self.database.mark(), time.monotonic()
        if mark != getattr(last, "mark", None) or now_s - last.asked_s >= ASK_S:
            last.mark, last.asked_s, seen = mark, now_s, self.database.data_version()
            if seen != getattr(last, "seen", None):
                last.seen, last.revision, last.changed_s = seen, self.revision(), now_s
        return int(last.revision)

    def close(self) -> None:
        """Close this thread's connections."""
        self.database.close()

    def _row(self, connection: sqlite3.Connection, key: Key) -> tuple[int, Object]:
        with self.database.errors():
            row = connection.execute(
                "SELECT version, body FROM objects WHERE kind = ? AND namespace = ? AND name = ?", key
            ).fetchone()
        if row is None:
            raise absent(key)
        return int(row[0]), json.loads(row[1])

    def _exists(self, connection: sqlite3.Connection, key: Key) -> bool:
        query = "SELECT 1 FROM objects WHERE kind = ? AND namespace = ? AND name = ?"
        return connection.execute(query, key).fetchone() is not None

    def _create(self, connection: sqlite3.Connection, body: Object) -> Object:
        key, new = new_key(body), copy.deepcopy(body)
        if self._exists(connection, key):
            raise taken(key)
        metadata = new["metadata"]
        metadata["name"] = key.name
        if key.namespace:
            metadata["namespace"] = key.namespace
        else:
            metadata.pop("namespace", None)
        metadata.pop("deletionTimestamp", None)
        metadata["uid"] = str(uuid.uuid4())
        metadata["creationTimestamp"] = format_time(datetime.now(UTC))
        return self._write(connection, key, new, None)

    def _replace(self, connection: sqlite3.Connection, body: Object) -> Object:
        key, metadata = key_of(body), body["metadata"]
        version, old = self._row(connection, key)
        if not metadata.get("resourceVersion"):
            raise InvalidValue(f"{key}: expected the version it was read at, got none (at $.metadata.resourceVersion)")
        _check_guard(key, old, metadata["resourceVersion"], metadata.get("uid"))
        new = _with_identity(key, body, old)
        return old if new == old else self._write(connection, key, new, version)

    def _write(self, connection: sqlite3.Connection, key: Key, body: Object, version: int | None) -> Object:
        """Keep a body as the newest version; ``version`` is the one it follows, none for a new object."""
        revision = self._next_revision(connection)
        body["metadata"]["resourceVersion"] = str(revision)
        uid = body["metadata"]["uid"]
        text = json_text(key, body)
        with self.database.errors():
            if version is None:
                connection.execute("INSERT INTO objects VALUES (?, ?, ?, ?, ?, ?)", (*key, uid, revision, text))
            else:
                connection.execute("UPDATE objects SET version = ?, body = ? WHERE uid = ?", (revision, text, uid))
                connection.execute("DELETE FROM owners WHERE uid = ?", (uid,))
            rows = [(owner, uid) for owner in owner_uids(body)]
            connection.executemany("INSERT OR IGNORE INTO owners VALUES (?, ?)", rows)
        return body

    def _delete(self, connection: sqlite3.Connection, key: Key, old: Object) -> None:
        if key.kind not in ENDS_ITSELF:
            self._remove(connection, old)
        elif "deletionTimestamp" not in old["metadata"]:
            old["metadata"]["deletionTimestamp"] = format_time(datetime.now(UTC))
            self._write(connection, key, old, int(old["metadata"]["resourceVersion"]))

    def _remove(self, connection: sqlite3.Connection, old: Object) -> None:
        uid = old["metadata"]["uid"]
        self._next_revision(connection)
        query = (
            "SELECT objects.kind, namespace, name FROM owners JOIN objects USING (uid) "
            "WHERE owner_uid = ? ORDER BY 1, 2, 3"
        )
        with self.database.errors():
            owned = [Key(*row) for row in connection.execute(query, (uid,)).fetchall()]
            connection.execute("DELETE FROM objects WHERE uid = ?", (uid,))
            connection.execute("DELETE FROM owners WHERE uid = ? OR owner_uid = ?", (uid, uid))
            connection.execute("DELETE FROM memos WHERE uid = ?", (uid,))
        for other in owned:
            self._delete(connection, other, self._row(connection, other)[1])

    def _next_revision(self, connection: sqlite3.Connection) -> int:
        with self.database.errors():
            row = connection.execute("UPDATE counter SET revision = revision + 1 RETURNING revision").fetchone()
        return int(row[0])


def _check_guard(key: Key, old: Object, version: str | None, uid: str | None) -> None:
    found = old["metadata"]
    if uid is not None and uid != found["uid"]:
        raise another(key, uid, found["uid"])
    if version is not None and version != found["resourceVersion"]:
        raise moved(key, version, found["resourceVersion"])


def _with_identity(key: Key, body: Object, old: Object) -> Object:
    """The body with what no writer may change taken from the old one."""
    new = copy.deepcopy(body)
    for name in ("kind", "apiVersion"):
        if name in old:
            new[name] = old[name]
    if not isinstance(new.get("metadata"), dict):
        raise InvalidValue(f"{key}: expected an object, got {new.get('metadata')!r} (at $.metadata)")
    metadata = new["metadata"]
    for name in ("name", "namespace", "uid", "creationTimestamp", "deletionTimestamp", "resourceVersion"):
        metadata.pop(name, None)
        if name in old["metadata"]:
            metadata[name] = old["metadata"][name]
    return new

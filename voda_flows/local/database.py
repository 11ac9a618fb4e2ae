"""The SQLite file under local mode's object store: opening, schema versions, transactions, errors in our own words.

``PRAGMA user_version`` is the number of migrations that were applied. Journal mode is WAL with ``synchronous=NORMAL``:
what was committed survives a kill of any process; the last commits before a loss of power may be missing, the file
stays whole.
"""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from scheduler_core.errors import Unreachable, VodaError

BUSY_S = 10.0
"""How long a writer waits for others; each holds the lock for milliseconds."""

MIGRATIONS: tuple[str, ...] = (
    # 1: objects as JSON, and the one counter that numbers all changes.
    """
    CREATE TABLE objects (
        kind TEXT NOT NULL, namespace TEXT NOT NULL, name TEXT NOT NULL,
        uid TEXT NOT NULL UNIQUE, version INTEGER NOT NULL, body TEXT NOT NULL,
        PRIMARY KEY (kind, namespace, name)
    );
    CREATE TABLE counter (one INTEGER PRIMARY KEY CHECK (one = 1), revision INTEGER NOT NULL);
    INSERT INTO counter VALUES (1, 0);
    """,
    # 2: who owns whom, so that a deletion finds what goes with it without reading every object.
    """
    CREATE TABLE owners (owner_uid TEXT NOT NULL, uid TEXT NOT NULL, PRIMARY KEY (owner_uid, uid)) WITHOUT ROWID;
    INSERT OR IGNORE INTO owners
        SELECT json_extract(owner.value, '$.uid'), objects.uid
        FROM objects, json_each(objects.body, '$.metadata.ownerReferences') AS owner;
    """,
)


class Database:
    """Connections to one SQLite file, one for each thread; an instance is usable from all threads."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._local = threading.local()
        with self.errors():
            path.parent.mkdir(parents=True, exist_ok=True)
            self._migrate()

    def connection(self) -> sqlite3.Connection:
        """This thread's connection."""
        found: sqlite3.Connection | None = getattr(self._local, "connection", None)
        if found is None:
            found = self._local.connection = self._connect()
        return found

    def data_version(self) -> int:
        """A number that differs once another connection has committed; asked on a connection that never writes.

        Its cost is a look into shared memory, so it may be asked often.
        """
        watcher: sqlite3.Connection | None = getattr(self._local, "watcher", None)
        if watcher is None:
            watcher = self._local.watcher = self._connect()
        with self.errors():
            return int(watcher.execute("PRAGMA data_version").fetchone()[0])

    @contextmanager
    def write(self) -> Iterator[sqlite3.Connection]:
        """One transaction that writes: all of it is committed, or nothing."""
        connection = self.connection()
        with self.errors():
            connection.execute("BEGIN IMMEDIATE")
        try:
            yield connection
            with self.errors():
                connection.execute("COMMIT")
        except BaseException:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            raise

    def close(self) -> None:
        """Close this thread's connections; those of other threads close with them."""
        for name in ("connection", "watcher"):
            found: sqlite3.Connection | None = self._local.__dict__.pop(name, None)
            if found is not None:
                found.close()

    @contextmanager
    def errors(self) -> Iterator[None]:
        """Turns what SQLite and the file system say into errors that tell what to do."""
        try:
            yield
        except sqlite3.Error as error:
            raise self._explained(error) from error
        except OSError as error:
            raise VodaError(
                f"expected a folder for local state at {self.path.parent}, got {error.strerror or error}; "
                "give another one by --home or VODA_HOME"
            ) from error

    def _explained(self, error: sqlite3.Error) -> VodaError:
        said = str(error)
        if "locked" in said or "busy" in said:
            return Unreachable(
                f"{self.path}: expected other processes to let go within {BUSY_S:.0f} s, it is still locked; "
                "look for a stopped process that has it open (fuser), then try again"
            )
        if "readonly" in said or "unable to open" in said:
            return VodaError(
                f"{self.path}: expected a file one may write, got '{said}'; "
                "make it writable or give another folder by --home or VODA_HOME"
            )
        if "malformed" in said or "not a database" in said:
            return VodaError(
                f"{self.path}: expected Voda's state, got '{said}'; "
                "'voda down --purge' starts anew, or put a copy of the file back"
            )
        return VodaError(f"{self.path}: expected to read and write local state, got '{said}'")

    def _connect(self) -> sqlite3.Connection:
        with self.errors():
            connection = sqlite3.connect(self.path, timeout=BUSY_S, isolation_level=None, check_same_thread=False)
            connection.execute("PRAGMA synchronous = NORMAL")
            return connection

    def _migrate(self) -> None:
        connection = self.connection()
        if self._schema(connection) == len(MIGRATIONS):
            return
        connection.execute("PRAGMA journal_mode = WAL")
        with self.write():
            # Another process may have done it while this one waited for the lock.
            for number in range(self._schema(connection), len(MIGRATIONS)):
                for statement in MIGRATIONS[number].split(";"):
                    connection.execute(statement)
            connection.execute(f"PRAGMA user_version = {len(MIGRATIONS)}")

    def _schema(self, connection: sqlite3.Connection) -> int:
        found = int(connection.execute("PRAGMA user_version").fetchone()[0])
        if found > len(MIGRATIONS):
            raise VodaError(
                f"{self.path}: expected schema {len(MIGRATIONS)} or lower, got {found}: "
                "a newer Voda wrote it; upgrade this one or give another folder by --home"
            )
        return found

"""The SQLite file under local mode's object store: opening, schema versions, transactions, errors in our own words.

Journal mode is WAL with ``synchronous=NORMAL``: what was committed survives a kill of any process; the last commits
before a loss of power may be missing, the file stays whole. A file that lacks what was once in it (emptied, taken away,
without its log) is refused, because going on with less than was known would lose jobs without a word.
"""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path

from scheduler_core.errors import VodaError
from voda_flows.local import trouble
from voda_flows.local.migrations import MIGRATIONS

LOOKS = 3
"""A missing file is looked for so often: another process may be about to make or to remove it."""


class Database:
    """Connections to one SQLite file, one for each thread; an instance is usable from all threads."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._log = self._beside("-wal")
        self._local = threading.local()
        with self.errors():
            path.parent.mkdir(parents=True, exist_ok=True)
            self._refuse_less_than_was()
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

    def mark(self) -> tuple[int, int]:
        """Size and time of the write-ahead log: they differ after most commits, and cost hardly anything to look at."""
        try:
            found = self._log.stat()
        except FileNotFoundError:
            return 0, 0
        return found.st_size, found.st_mtime_ns

    @contextmanager
    def write(self) -> Iterator[sqlite3.Connection]:
        """One transaction that writes: all of it is committed, or nothing."""
        connection = self.connection()
        with self.errors():
            connection.execute("BEGIN IMMEDIATE")
            try:
                yield connection
                connection.execute("COMMIT")
            except BaseException:
                # A full disk ends the transaction by itself; what is wrong is told by the first error.
                with suppress(sqlite3.Error):
                    connection.execute("ROLLBACK")
                raise

    def check(self) -> None:
        """Read the file from end to end.

        Raises:
            VodaError: It is not whole.
        """
        with self.errors():
            found = self.connection().execute("PRAGMA quick_check(1)").fetchone()[0]
        if found != "ok":
            raise trouble.broken(self.path, str(found))

    def close(self) -> None:
        """Close this thread's connections; those of other threads close with them."""
        for name in ("connection", "watcher"):
            found: sqlite3.Connection | None = self._local.__dict__.pop(name, None)
            if found is not None:
                found.close()

    def errors(self) -> AbstractContextManager[None]:
        """Turns what SQLite and the file system say into errors that tell what to do."""
        return trouble.trouble(self.path)

    def _connect(self) -> sqlite3.Connection:
        with self.errors():
            connection = sqlite3.connect(
                self.path, timeout=trouble.BUSY_S, isolation_level=None, check_same_thread=False
            )
            connection.execute("PRAGMA synchronous = NORMAL")
            return connection

    def _refuse_less_than_was(self) -> None:
        """Refuse a file that has lost what was in it; what else lies in the home tells."""
        pods, log, shared = self.path.parent / "pods", *map(self._beside, ("-wal", "-shm"))
        size = self.path.stat().st_size if self.path.exists() else None
        if not size and pods.is_dir() and any(pods.iterdir()):
            found = "no file" if size is None else "an empty file"
            raise trouble.broken(self.path, f"{found}, beside pods that it should know")
        # SQLite makes the log before the index of it, and removes it after: only a hand leaves the index alone.
        if size and all(shared.exists() and not log.exists() for _ in range(LOOKS)):
            raise VodaError(
                f"{log}: expected it beside {shared.name}, it is not there: the last changes are missing\n"
                f"put it back; or remove {shared} to go on without them; or start anew with 'voda down --purge'"
            )

    def _beside(self, ending: str) -> Path:
        return self.path.with_name(self.path.name + ending)

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

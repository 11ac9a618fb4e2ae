"""The schema of local mode's state, as the list of steps that made it: a file of any earlier version is taken on.

``PRAGMA user_version`` of a file is the number of steps it has been through. A step is never changed once it was
released; what changes the schema is a new one at the end. All that are due are one transaction: an upgrade that is
killed has not happened.
"""

from __future__ import annotations

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
    # 3: changes since a version are found without a look at what did not change; what readers made of an object that
    # changes no more is kept, so that a thousand ended Workflows need not be read to be listed.
    """
    CREATE INDEX changes ON objects (kind, version);
    CREATE INDEX owned ON owners (uid);
    CREATE TABLE memos (
        uid TEXT NOT NULL PRIMARY KEY, version INTEGER NOT NULL, form TEXT NOT NULL, text TEXT NOT NULL
    ) WITHOUT ROWID;
    """,
)

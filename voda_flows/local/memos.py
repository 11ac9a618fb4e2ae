"""What readers have made of objects that change no more, kept beside them: it is not made again each time.

A memo is for one version of one object, in a form that its reader names; with another version or form it is none. It
goes with its object. Losing one costs a little time, so nothing is said where it cannot be written.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import suppress

from scheduler_core.errors import VodaError
from voda_flows.local.store import LocalStore
from voda_flows.objects import Object

_VALID = "memos.uid = objects.uid AND memos.version = objects.version AND memos.form = ?"


class Memos:
    """The memos of one form.

    Args:
        store: Where the objects are.
        form: Names what the text is; readers of another form do not see it.
    """

    def __init__(self, store: LocalStore, form: str) -> None:
        self._store = store
        self._form = form

    def texts(self, kind: str, namespace: str | None = None) -> list[str]:
        """The memos of a kind's objects, in no order."""
        where, values = ("AND namespace = ?", (namespace,)) if namespace is not None else ("", ())
        query = f"SELECT text FROM memos JOIN objects ON {_VALID} WHERE kind = ? {where}"  # noqa: S608 - our own words
        return [text for (text,) in self._rows(query, (self._form, kind, *values))]

    def others(self, kind: str, namespace: str | None = None) -> list[Object]:
        """The objects of a kind that have no memo, and whose owners have none."""
        where, values = ("AND namespace = ?", (namespace,)) if namespace is not None else ("", ())
        query = (
            f"SELECT body FROM objects WHERE kind = ? {where} AND NOT EXISTS (SELECT 1 FROM memos WHERE {_VALID}) "  # noqa: S608 - our own words
            "AND NOT EXISTS (SELECT 1 FROM owners JOIN memos ON memos.uid = owners.owner_uid AND memos.form = ? "
            "WHERE owners.uid = objects.uid)"
        )
        return [json.loads(body) for (body,) in self._rows(query, (kind, *values, self._form, self._form))]

    def keep(self, texts: Mapping[tuple[str, int], str]) -> None:
        """Keep texts by (uid, version); where that cannot be, they are made again next time."""
        if not texts:
            return
        rows = [(uid, version, self._form, text) for (uid, version), text in texts.items()]
        with suppress(VodaError), self._store.database.write() as connection:
            connection.executemany("INSERT OR REPLACE INTO memos VALUES (?, ?, ?, ?)", rows)

    def _rows(self, query: str, values: tuple[str, ...]) -> list[tuple[str]]:
        with self._store.database.errors():
            return self._store.database.connection().execute(query, values).fetchall()

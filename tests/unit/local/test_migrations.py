"""A state that any earlier version wrote is taken on whole; one of a later version is refused and left as it is."""

from __future__ import annotations

import json
import signal
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from scheduler_core.errors import NotFound, VodaError
from tests.unit.local.disks import voda
from voda_flows.local.migrations import MIGRATIONS
from voda_flows.local.store import LocalStore
from voda_flows.objects import Key

FIRST = Path(__file__).with_name("state_1.sql")
SCHEMA = "SELECT type, name, tbl_name, sql FROM sqlite_master WHERE name NOT LIKE 'sqlite_%' ORDER BY 1, 2"


def state_of(home: Path, schema: int) -> Path:
    """A state of an earlier schema: the first one's, taken through so many steps."""
    home.mkdir(exist_ok=True)
    path = home / "state.db"
    with sqlite3.connect(path) as connection:
        connection.executescript(FIRST.read_text())
        for number in range(1, schema):
            connection.executescript(MIGRATIONS[number])
        connection.execute(f"PRAGMA user_version = {schema}")
    connection.close()
    return path


def asked(path: Path, query: str) -> list[tuple[object, ...]]:
    """What a file answers, looked at without Voda."""
    connection = sqlite3.connect(path)
    try:
        return connection.execute(query).fetchall()
    finally:
        connection.close()


@pytest.mark.parametrize("schema", range(1, len(MIGRATIONS) + 1))
def test_state_of_any_schema_is_taken_on(tmp_path: Path, schema: int) -> None:
    """Every object stays as it was, in a file that has the form of one made new; owners and versions go on."""
    path = state_of(tmp_path / "old", schema)
    before = asked(path, "SELECT * FROM objects ORDER BY uid")
    revision = asked(path, "SELECT revision FROM counter")[0][0]
    store = LocalStore(tmp_path / "old")
    LocalStore(tmp_path / "new").close()

    assert asked(path, SCHEMA) == asked(tmp_path / "new" / "state.db", SCHEMA)
    assert asked(path, "PRAGMA user_version") == [(len(MIGRATIONS),)]
    assert asked(path, "SELECT * FROM objects ORDER BY uid") == before
    assert store.revision() == revision
    assert [body["metadata"]["name"] for body in store.snapshot("Workflow").values()] == ["old"]
    workflow = store.get("Workflow", "default", "old")
    store.remove(Key("Workflow", "default", "old"), uid=workflow["metadata"]["uid"])
    with pytest.raises(NotFound):
        store.get("Secret", "default", "voda-key-old")


def test_upgrade_that_is_killed_has_not_happened(tmp_path: Path) -> None:
    """Whoever is killed in the middle of an upgrade leaves the old schema, and the next one upgrades."""
    path = state_of(tmp_path, 1)
    code = (
        "import os, pathlib, signal, sys\n"
        "from voda_flows.local import database\n"
        "class Steps(tuple):\n"
        "    def __getitem__(self, number):\n"
        "        if number == len(self) - 1: os.kill(os.getpid(), signal.SIGKILL)\n"
        "        return tuple.__getitem__(self, number)\n"
        "database.MIGRATIONS = Steps(database.MIGRATIONS)\n"
        "database.Database(pathlib.Path(sys.argv[1]))\n"
    )
    ended = subprocess.run([sys.executable, "-c", code, str(path)], check=False)

    assert ended.returncode == -signal.SIGKILL
    assert asked(path, "PRAGMA user_version") == [(1,)]
    assert asked(path, "SELECT name FROM sqlite_master WHERE name = 'owners'") == []
    assert len(LocalStore(tmp_path).list("Pod")) == 1


def test_state_of_a_later_version_is_left_as_it_is(tmp_path: Path) -> None:
    """A newer schema is refused with what to do, exit 1, and not a byte of it changes."""
    LocalStore(tmp_path).close()
    path = tmp_path / "state.db"
    connection = sqlite3.connect(path)
    connection.execute(f"PRAGMA user_version = {len(MIGRATIONS) + 1}")
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    connection.close()
    before = path.read_bytes()

    with pytest.raises(VodaError, match="a newer Voda wrote it; upgrade this one"):
        LocalStore(tmp_path)
    for verb in ("up", "list"):
        said = voda(tmp_path, verb)
        assert (said.code, "a newer Voda wrote it" in said.err) == (1, True)
    assert path.read_bytes() == before


def test_released_steps_do_not_change() -> None:
    """The fixture is the first step's schema, with objects that this version still reads."""
    connection = sqlite3.connect(":memory:")
    connection.executescript(MIGRATIONS[0])
    fresh = connection.execute(SCHEMA).fetchall()
    connection.close()
    connection = sqlite3.connect(":memory:")
    connection.executescript(FIRST.read_text())
    kinds = [kind for (kind,) in connection.execute("SELECT kind FROM objects ORDER BY kind")]
    bodies = [json.loads(body) for (body,) in connection.execute("SELECT body FROM objects")]

    assert [row[:3] for row in connection.execute(SCHEMA)] == [row[:3] for row in fresh]
    assert kinds == ["ConfigMap", "Node", "Pod", "Secret", "Workflow"]
    assert all(body["metadata"]["uid"] for body in bodies)
    connection.close()

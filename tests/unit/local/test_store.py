"""The SQLite store: laws under many writers, schema versions, and what it says when the file is in trouble."""

from __future__ import annotations

import json
import multiprocessing
import os
import sqlite3
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scheduler_core.errors import Conflict, NotFound, Unreachable, VodaError
from voda_flows.local import trouble
from voda_flows.local.memos import Memos
from voda_flows.local.store import LocalStore
from voda_flows.objects import Key, Object, merge_patch

KEYS = st.sampled_from(["a", "b", "c", "d"])
SCALARS = st.none() | st.booleans() | st.integers() | st.text(max_size=3)
JSON = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=4), max_leaves=12
)


def counter() -> Object:
    """An object that counts."""
    return {"kind": "ConfigMap", "metadata": {"name": "c"}, "data": {"n": 0}}


@given(target=JSON, patch=JSON)
def test_merge_patch_is_rfc_7386(target: Any, patch: Any) -> None:
    """The result is the patch where it is no object; else its keys decide one by one and the others stay.

    Both inputs stay as they were, and a patch applied twice is as good as once.
    """
    before = json.dumps([target, patch])
    merged = merge_patch(target, patch)

    if isinstance(patch, dict):
        base = target if isinstance(target, dict) else {}
        assert {key: merged[key] for key in merged if key not in patch} == {
            key: base[key] for key in base if key not in patch
        }
        for key, value in patch.items():
            assert (key not in merged) if value is None else (merged[key] == merge_patch(base.get(key), value))
    else:
        assert merged == patch
    assert json.dumps([target, patch]) == before
    assert merge_patch(merged, patch) == merged


@pytest.mark.parametrize(
    ("target", "patch", "merged"),
    [
        ({"a": "b"}, {"a": "c"}, {"a": "c"}),
        ({"a": "b"}, {"b": "c"}, {"a": "b", "b": "c"}),
        ({"a": "b"}, {"a": None}, {}),
        ({"a": "b", "b": "c"}, {"a": None}, {"b": "c"}),
        ({"a": ["b"]}, {"a": "c"}, {"a": "c"}),
        ({"a": "c"}, {"a": ["b"]}, {"a": ["b"]}),
        ({"a": {"b": "c"}}, {"a": {"b": "d", "c": None}}, {"a": {"b": "d"}}),
        ({"a": [{"b": "c"}]}, {"a": [1]}, {"a": [1]}),
        (["a", "b"], ["c", "d"], ["c", "d"]),
        ({"a": "b"}, ["c"], ["c"]),
        ({"a": "foo"}, None, None),
        ({"a": "foo"}, "bar", "bar"),
        ({"e": None}, {"a": 1}, {"e": None, "a": 1}),
        ([1, 2], {"a": "b", "c": None}, {"a": "b"}),
        ({}, {"a": {"bb": {"ccc": None}}}, {"a": {"bb": {}}}),
    ],
)
def test_merge_patch_agrees_with_the_table_of_the_rfc(target: Any, patch: Any, merged: Any) -> None:
    """The fifteen examples in appendix A of RFC 7386."""
    assert merge_patch(target, patch) == merged


@settings(max_examples=25, deadline=None)
@given(documents=st.lists(st.dictionaries(KEYS, JSON, max_size=4), min_size=1, max_size=6))
def test_patches_end_where_the_pure_law_says(tmp_path_factory: pytest.TempPathFactory, documents: list[Any]) -> None:
    """A store that takes patches one by one holds what merging them one by one gives."""
    store = LocalStore(tmp_path_factory.mktemp("home"))
    expected: Any = {}
    store.create({"kind": "ConfigMap", "metadata": {"name": "c"}})
    for patch in documents:
        expected = merge_patch(expected, patch)
        store.merge_patch("ConfigMap", "default", "c", {"data": patch})

    assert store.get("ConfigMap", "default", "c").get("data") == expected
    store.close()


def count_up(home: Path, times: int) -> None:
    """Raise the counter that often by compare-and-swap."""
    store = LocalStore(home)
    for _ in range(times):
        while True:
            found = store.get("ConfigMap", "default", "c")
            found["data"]["n"] += 1
            try:
                store.replace(found)
            except Conflict:
                continue
            break


def test_compare_and_swap_loses_no_update(tmp_path: Path) -> None:
    """Two processes that count by compare-and-swap get the sum of both; each change is a version of its own."""
    store = LocalStore(tmp_path)
    first = int(store.create(counter())["metadata"]["resourceVersion"])
    context = multiprocessing.get_context("spawn")
    writers = [context.Process(target=count_up, args=(tmp_path, 100)) for _ in range(2)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()

    assert [writer.exitcode for writer in writers] == [0, 0]
    made = store.get("ConfigMap", "default", "c")
    assert made["data"] == {"n": 200}
    assert int(made["metadata"]["resourceVersion"]) == first + 200


def test_commit_of_another_process_ends_a_wait(tmp_path: Path) -> None:
    """It is noticed when it comes, not when the time is over (an hour would be beyond any test's limit)."""
    store = LocalStore(tmp_path)
    store.create(counter())
    code = (
        "import sys, pathlib; from voda_flows.local.store import LocalStore\n"
        "store = LocalStore(pathlib.Path(sys.argv[1])); sys.stdin.readline()\n"
        "store.merge_patch('ConfigMap', 'default', 'c', {'data': {'n': 1}})"
    )
    with subprocess.Popen([sys.executable, "-c", code, str(tmp_path)], stdin=subprocess.PIPE, text=True) as writer:
        assert writer.stdin is not None
        since = store.revision()
        writer.stdin.write("go\n")
        writer.stdin.flush()

        assert store.wait(since, 3600) > since


def test_waiting_hardly_asks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever waits at rest looks at the time of a file; SQLite is asked every tenth of a second at most."""
    store, asked = LocalStore(tmp_path), list[int]()
    ask = store.database.data_version

    def counted() -> int:
        asked.append(1)
        return ask()

    monkeypatch.setattr(store.database, "data_version", counted)
    start_s = time.monotonic()
    store.wait(store.revision(), 1.0)
    took_s = time.monotonic() - start_s

    assert 1 <= len(asked) <= took_s / 0.1 + 2


def test_snapshot_reads_what_changed_only(tmp_path: Path) -> None:
    """Unchanged objects are the same values, an unchanged kind is the same dict; what is gone is gone, in order."""
    store, other = LocalStore(tmp_path), LocalStore(tmp_path)
    for name in ("b", "a"):
        store.create({"kind": "ConfigMap", "metadata": {"name": name}})
    first = store.snapshot("ConfigMap")
    store.create({"kind": "Secret", "metadata": {"name": "s"}})
    assert store.snapshot("ConfigMap") is first
    assert [key.name for key in first] == ["a", "b"]

    other.merge_patch("ConfigMap", "default", "a", {"data": {"n": "1"}})
    second = store.snapshot("ConfigMap")
    key = Key("ConfigMap", "default", "b")
    assert (second[key] is first[key], "data" in first[Key("ConfigMap", "default", "a")]) == (True, False)
    other.delete("ConfigMap", "default", "b")
    other.create({"kind": "ConfigMap", "metadata": {"name": "0"}})
    assert [key.name for key in store.snapshot("ConfigMap")] == ["0", "a"]


def test_memo_is_for_one_version(tmp_path: Path) -> None:
    """What was made of an object is found until that changes, by the same form only, and goes with it."""
    store = LocalStore(tmp_path)
    body = store.create(counter())
    memos, key = Memos(store, "form"), (body["metadata"]["uid"], int(body["metadata"]["resourceVersion"]))
    owner = {"uid": body["metadata"]["uid"], "kind": "ConfigMap", "name": "c"}
    store.create({"kind": "Secret", "metadata": {"name": "owned", "ownerReferences": [owner]}})
    store.create({"kind": "Secret", "metadata": {"name": "free"}})
    memos.keep({key: "said"})

    assert memos.texts("ConfigMap") == memos.texts("ConfigMap", "default") == ["said"]
    assert [memos.texts("ConfigMap", "other"), Memos(store, "another").texts("ConfigMap")] == [[], []]
    assert memos.others("ConfigMap") == []
    assert [found["metadata"]["name"] for found in memos.others("Secret")] == ["free"]
    store.merge_patch("ConfigMap", "default", "c", {"data": {"n": 1}})
    assert memos.texts("ConfigMap") == []
    assert [found["data"] for found in memos.others("ConfigMap")] == [{"n": 1}]


def test_commit_is_all_or_nothing(tmp_path: Path) -> None:
    """Where the guard of the replaced object fails, nothing is created; what exists already stays as it is."""
    store = LocalStore(tmp_path)
    old = store.create(counter())
    pod: Object = {"kind": "Pod", "metadata": {"name": "p"}, "spec": {"first": True}}
    new = store.commit(replace={**old, "data": {"n": 1}}, create=[pod])

    assert new["data"] == {"n": 1}
    with pytest.raises(Conflict):
        store.commit(replace={**old, "data": {"n": 2}}, create=[{"kind": "Pod", "metadata": {"name": "q"}}])
    store.commit(replace={**new, "data": {"n": 3}}, create=[{"kind": "Pod", "metadata": {"name": "p"}}])
    assert [(body["metadata"]["name"], body.get("spec")) for body in store.list("Pod")] == [("p", {"first": True})]


def test_remove_takes_away_only_the_uid_meant(tmp_path: Path) -> None:
    """Removing is for one uid; another object of that name stays, and what is gone is no error."""
    store = LocalStore(tmp_path)
    uid = store.create({"kind": "Pod", "metadata": {"name": "p"}})["metadata"]["uid"]
    key = Key("Pod", "default", "p")
    store.remove(key, uid="other")
    assert store.get(*key)["metadata"]["uid"] == uid

    store.remove(key, uid=uid)
    store.remove(key, uid=uid)

    with pytest.raises(NotFound):
        store.get(*key)


def test_corrupt_file_says_what_to_do(tmp_path: Path) -> None:
    """A file that is no database is named, with the way out."""
    (tmp_path / "state.db").write_bytes(b"not a database at all, but long enough to be read as one" * 20)

    with pytest.raises(VodaError, match=r"(?s)state\.db: expected Voda's state, got .*not a database.*--purge"):
        LocalStore(tmp_path)


def test_locked_file_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A writer that never lets go ends in Unreachable (exit 5), not in a traceback of SQLite."""
    monkeypatch.setattr(trouble, "BUSY_S", 0.05)
    store = LocalStore(tmp_path)
    other = sqlite3.connect(tmp_path / "state.db", isolation_level=None)
    other.execute("BEGIN IMMEDIATE")

    with pytest.raises(Unreachable, match="still locked"):
        store.create(counter())
    other.execute("ROLLBACK")
    other.close()
    assert store.create(counter())["data"] == {"n": 0}


def test_folder_that_cannot_be_made_says_so(tmp_path: Path) -> None:
    """A home below a file is refused by name."""
    (tmp_path / "file").write_text("")

    with pytest.raises(VodaError, match=r"(?s)expected a folder for local state at .*file/home.*--home"):
        LocalStore(tmp_path / "file" / "home")


def test_read_only_state_says_so(tmp_path: Path) -> None:
    """A file that may not be written is named, with the way out."""
    store = LocalStore(tmp_path)
    store.database.connection().execute("PRAGMA query_only = ON")

    with pytest.raises(VodaError, match=r"(?s)expected a file one may write.*--home"):
        store.create(counter())


def test_killed_writer_leaves_whole_commits(tmp_path: Path) -> None:
    """Two objects committed as one are both there or both absent, whenever the writer is killed."""
    code = (
        "import sys, pathlib; from voda_flows.local.store import LocalStore\n"
        "store = LocalStore(pathlib.Path(sys.argv[1])); old = store.get('ConfigMap', 'default', 'c')\n"
        "for n in range(1, 100000):\n"
        "    pod = {'kind': 'Pod', 'metadata': {'name': f'p{n}'}}\n"
        "    old = store.commit(replace={**old, 'data': {'n': n}}, create=[pod]); print(n, flush=True)"
    )
    store = LocalStore(tmp_path)
    store.create(counter())
    with subprocess.Popen([sys.executable, "-c", code, str(tmp_path)], stdout=subprocess.PIPE, text=True) as writer:
        assert writer.stdout is not None
        said = [int(writer.stdout.readline()) for _ in range(20)][-1]
        os.kill(writer.pid, 9)
        said = max([said, *map(int, writer.stdout.read().split()[:-1])])
    count = store.get("ConfigMap", "default", "c")["data"]["n"]

    assert count >= said
    assert {body["metadata"]["name"] for body in store.list("Pod")} == {f"p{n}" for n in range(1, count + 1)}

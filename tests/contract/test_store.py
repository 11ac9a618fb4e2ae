"""What every object store does, whatever lies below; each rule is one that parts of Voda rely on."""

from __future__ import annotations

import threading
import time
from pathlib import Path
from typing import Any

import pytest

from scheduler_core.errors import Conflict, InvalidValue, NotFound
from voda_flows.local.store import LocalStore
from voda_flows.objects import Object
from voda_flows.store import ObjectStore


@pytest.fixture
def store(tmp_path: Path) -> ObjectStore:
    """An empty store."""
    return LocalStore(tmp_path)


def config_map(name: str, **metadata: Any) -> Object:
    """A small object to keep."""
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, **metadata}, "data": {"a": "1"}}


def names(found: list[Object]) -> list[str]:
    """The names, in the order found."""
    return [body["metadata"]["name"] for body in found]


def test_created_object_is_read_back(store: ObjectStore) -> None:
    """What was created is what is read, with a uid, a time and a version added."""
    made = store.create(config_map("a", labels={"x": "y"}))

    assert store.get("ConfigMap", "default", "a") == made
    added = {"uid", "creationTimestamp", "resourceVersion", "namespace"}
    assert {key: value for key, value in made["metadata"].items() if key not in added} == {
        "name": "a",
        "labels": {"x": "y"},
    }
    assert added < set(made["metadata"])
    assert made["data"] == {"a": "1"}


def test_name_can_be_generated(store: ObjectStore) -> None:
    """A prefix in generateName gives names that differ."""
    body = {"kind": "Workflow", "metadata": {"generateName": "job-"}, "spec": {}}
    made = {store.create(body)["metadata"]["name"] for _ in range(20)}

    assert len(made) == 20
    assert all(name.startswith("job-") and len(name) == 9 for name in made)


def test_name_is_taken_once(store: ObjectStore) -> None:
    """A second object of one kind, namespace and name is a conflict; in another namespace it is none."""
    store.create(config_map("a"))
    store.create(config_map("a", namespace="other"))

    with pytest.raises(Conflict, match="ConfigMap default/a: expected a new name"):
        store.create(config_map("a"))


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ({"kind": "Service", "metadata": {"name": "a"}}, "got 'Service'"),
        ({"kind": "ConfigMap"}, r"at \$\.metadata"),
        ({"kind": "ConfigMap", "metadata": {"name": "A_b"}}, r"got 'A_b' \(at \$\.metadata\.name\)"),
        ({"kind": "ConfigMap", "metadata": {}}, r"at \$\.metadata\.name"),
        ({"kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"x": {1, 2}}}, "can be JSON"),
        ({"kind": "ConfigMap", "metadata": {"name": "a"}, "data": float("nan")}, "can be JSON"),
    ],
)
def test_what_is_no_object_is_refused(store: ObjectStore, body: Object, said: str) -> None:
    """A kind that is not known, a name that is none, content that is no JSON: refused, and nothing is kept."""
    with pytest.raises(InvalidValue, match=said):
        store.create(body)

    assert store.list("ConfigMap") == []


def test_list_is_sorted_and_selected(store: ObjectStore) -> None:
    """A list is in order of (namespace, name); namespace and labels narrow it."""
    for name, namespace, label in (("b", "n1", "x"), ("a", "n2", "x"), ("c", "n1", "y")):
        store.create(config_map(name, namespace=namespace, labels={"l": label}))

    assert names(store.list("ConfigMap")) == ["b", "c", "a"]
    assert names(store.list("ConfigMap", "n1")) == ["b", "c"]
    assert names(store.list("ConfigMap", None, {"l": "x"})) == ["b", "a"]
    assert names(store.list("ConfigMap", "n1", {"l": "z"})) == []
    assert store.list("Secret") == []


def test_nodes_have_no_namespace(store: ObjectStore) -> None:
    """Nodes are found under the empty namespace, whatever their document says."""
    store.create({"kind": "Node", "metadata": {"name": "n0", "namespace": "x"}})

    assert store.get("Node", "", "n0")["kind"] == "Node"


def test_patch_changes_what_it_names(store: ObjectStore) -> None:
    """A merge-patch replaces, adds, and takes away where it says null."""
    store.create({**config_map("a"), "data": {"a": "1", "b": "2"}})
    made = store.merge_patch("ConfigMap", "default", "a", {"data": {"a": None, "c": "3"}})

    assert made["data"] == {"b": "2", "c": "3"}
    assert store.get("ConfigMap", "default", "a") == made


def test_patch_without_change_makes_no_version(store: ObjectStore) -> None:
    """What changes nothing is no change: whoever waits is not woken."""
    made, revision = store.create(config_map("a")), store.revision()

    assert store.merge_patch("ConfigMap", "default", "a", {"data": {"a": "1"}}) == made
    assert store.revision() == revision


def test_patch_is_guarded_by_version(store: ObjectStore) -> None:
    """A patch for another version is refused and changes nothing, given as argument or in the patch."""
    old = store.create(config_map("a"))["metadata"]["resourceVersion"]
    new = store.merge_patch("ConfigMap", "default", "a", {"data": {"a": "2"}}, resource_version=old)

    with pytest.raises(Conflict, match="it changed since it was read"):
        store.merge_patch("ConfigMap", "default", "a", {"data": {"a": "3"}}, resource_version=old)
    with pytest.raises(Conflict, match="it changed since it was read"):
        store.merge_patch("ConfigMap", "default", "a", {"metadata": {"resourceVersion": old}, "data": {"a": "3"}})
    assert store.get("ConfigMap", "default", "a") == new


def test_patch_is_guarded_by_uid(store: ObjectStore) -> None:
    """A patch meant for an object that was deleted does not reach the one that took its name."""
    uid = store.create(config_map("a"))["metadata"]["uid"]
    store.delete("ConfigMap", "default", "a")
    store.create(config_map("a"))

    with pytest.raises(Conflict, match="another object took its name"):
        store.merge_patch("ConfigMap", "default", "a", {"metadata": {"uid": uid}, "data": {"a": "3"}})


def test_identity_cannot_be_changed(store: ObjectStore) -> None:
    """Name, namespace, time and kind stay, whatever a patch or a replacement says."""
    made = store.create(config_map("a"))
    patch = {"kind": "Secret", "metadata": {"name": "b", "creationTimestamp": None, "deletionTimestamp": "now"}}

    assert store.merge_patch("ConfigMap", "default", "a", patch) == made


def test_replace_is_guarded(store: ObjectStore) -> None:
    """A replacement goes in the place of the version it was read at, and of no other."""
    old = store.create(config_map("a"))
    new = store.replace({**old, "data": {"b": "2"}})

    assert new["data"] == {"b": "2"}
    with pytest.raises(Conflict, match="it changed since it was read"):
        store.replace({**old, "data": {"c": "3"}})
    with pytest.raises(InvalidValue, match="resourceVersion"):
        store.replace(config_map("a"))


@pytest.mark.parametrize("verb", ["get", "merge_patch", "delete"])
def test_absent_object_is_not_found(store: ObjectStore, verb: str) -> None:
    """Each verb says which object it missed."""
    arguments: list[Any] = [{}] if verb == "merge_patch" else []

    with pytest.raises(NotFound, match="Pod default/gone: expected it to exist"):
        getattr(store, verb)("Pod", "default", "gone", *arguments)


@pytest.mark.parametrize("kind", ["Pod", "Workflow"])
def test_deletion_of_what_has_processes_is_asked_for(store: ObjectStore, kind: str) -> None:
    """A Pod or a Workflow stays with the time of the first deletion until its processes have ended."""
    store.create({"kind": kind, "metadata": {"name": "a"}, "spec": {}})
    store.delete(kind, "default", "a")
    first = store.get(kind, "default", "a")
    store.delete(kind, "default", "a")

    assert first["metadata"]["deletionTimestamp"]
    assert store.get(kind, "default", "a") == first


def test_deletion_is_guarded_by_uid(store: ObjectStore) -> None:
    """A deletion meant for another uid is refused."""
    uid = store.create(config_map("a"))["metadata"]["uid"]

    with pytest.raises(Conflict, match="another object took its name"):
        store.delete("ConfigMap", "default", "a", uid="other")
    store.delete("ConfigMap", "default", "a", uid=uid)
    assert store.list("ConfigMap") == []


def test_owned_objects_go_with_their_owner(store: ObjectStore) -> None:
    """What an object owns is deleted with it, and what that owns; the rest stays."""
    top = store.create(config_map("top"))
    middle = store.create(config_map("middle", ownerReferences=[{"uid": top["metadata"]["uid"]}]))
    store.create(config_map("leaf", ownerReferences=[{"uid": middle["metadata"]["uid"]}]))
    store.create(config_map("other", ownerReferences=[{"uid": "someone"}]))
    store.create({"kind": "Pod", "metadata": {"name": "p", "ownerReferences": [{"uid": top["metadata"]["uid"]}]}})
    store.delete("ConfigMap", "default", "top")

    assert names(store.list("ConfigMap")) == ["other"]
    assert "deletionTimestamp" in store.get("Pod", "default", "p")["metadata"]


def test_revision_grows_with_every_change(store: ObjectStore) -> None:
    """Creating, patching and deleting each raise the revision."""
    seen = [store.revision()]
    store.create(config_map("a"))
    seen.append(store.revision())
    store.merge_patch("ConfigMap", "default", "a", {"data": {"a": "2"}})
    seen.append(store.revision())
    store.delete("ConfigMap", "default", "a")
    seen.append(store.revision())

    assert seen == sorted(set(seen))


def test_wait_returns_at_once_when_something_changed(store: ObjectStore) -> None:
    """A change that came before the call is not waited for (an hour would be beyond any test's limit)."""
    since = store.revision()
    store.create(config_map("a"))

    assert store.wait(since, 3600) > since


def test_wait_ends_with_its_time(store: ObjectStore) -> None:
    """Where nothing changes, the revision comes back unchanged when the time is over."""
    since, start_s = store.revision(), time.monotonic()

    assert store.wait(since, 0.1) == since
    assert time.monotonic() - start_s >= 0.1


def test_wait_sees_a_change_of_another_thread(store: ObjectStore) -> None:
    """A change while waiting ends the wait."""
    since = store.revision()
    writer = threading.Timer(0.05, store.create, [config_map("a")])
    writer.start()

    assert store.wait(since, 30) > since
    writer.join()


def test_what_is_returned_is_the_callers_own(store: ObjectStore) -> None:
    """Changing a returned object or the one given changes nothing that is kept."""
    given = config_map("a")
    made = store.create(given)
    given["data"]["a"] = made["data"]["a"] = store.get("ConfigMap", "default", "a")["data"]["a"] = "changed"

    assert store.get("ConfigMap", "default", "a")["data"] == {"a": "1"}


def test_snapshot_is_the_list_by_key(store: ObjectStore) -> None:
    """A snapshot has what a list has, follows every change, and forgets what is gone."""
    for name in ("b", "a"):
        store.create(config_map(name))
    assert list(store.snapshot("ConfigMap").values()) == store.list("ConfigMap")

    store.merge_patch("ConfigMap", "default", "a", {"data": {"a": "2"}})
    store.delete("ConfigMap", "default", "b")

    assert list(store.snapshot("ConfigMap").values()) == store.list("ConfigMap")

"""What every object store does, whatever lies below; each rule is one that parts of Voda rely on."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

import pytest

from scheduler_core.errors import Conflict, InvalidValue, NotFound
from tests.contract.bodies import owned_by, pod, secret, workflow
from tests.contract.conftest import Bench
from voda_flows.objects import Key, Object
from voda_flows.store import ObjectStore

#: What another process does, or a cluster's garbage collector, is seen within this time; it takes far less.
SOON_S = 60.0


def names(found: list[Object]) -> list[str]:
    """The names, in the order found."""
    return [body["metadata"]["name"] for body in found]


def note(text: str) -> Object:
    """A patch that changes an annotation."""
    return {"metadata": {"annotations": {"voda.dev/test": text}}}


def eventually(store: ObjectStore, is_so: Callable[[], bool]) -> None:
    """Wait until it is so; looked at after every change."""
    end_s = time.monotonic() + SOON_S
    while not is_so():
        revision = store.revision()
        if is_so():
            return
        if time.monotonic() > end_s:
            pytest.fail(f"expected it to be so within {SOON_S:g} s")
        store.wait(revision, 1.0)


def test_created_object_is_read_back(bench: Bench) -> None:
    """What was created is what is read, with a uid, a time and a version added."""
    made = bench.store.create(secret("a", bench.one, labels={"x": "y"}))

    assert bench.store.get("Secret", bench.one, "a") == made
    added = {"uid", "creationTimestamp", "resourceVersion"}
    assert {key: value for key, value in made["metadata"].items() if key not in added} == {
        "name": "a",
        "namespace": bench.one,
        "labels": {"x": "y"},
    }
    assert added < set(made["metadata"])
    assert made["data"] == {"a": "MQ=="}


def test_name_can_be_generated(bench: Bench) -> None:
    """A prefix in generateName gives names that differ."""
    body = workflow(bench.one, generateName="job-")
    made = {bench.store.create(body)["metadata"]["name"] for _ in range(20)}

    assert len(made) == 20
    assert all(name.startswith("job-") and len(name) == 9 for name in made)


def test_name_is_taken_once(bench: Bench) -> None:
    """A second object of one kind, namespace and name is a conflict; in another namespace it is none."""
    bench.store.create(secret("a", bench.one))
    bench.store.create(secret("a", bench.two))

    with pytest.raises(Conflict, match=f"Secret {bench.one}/a: expected a new name"):
        bench.store.create(secret("a", bench.one))


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ({"kind": "Service", "metadata": {"name": "a"}}, "got 'Service'"),
        ({"kind": "Secret"}, r"at \$\.metadata"),
        ({"kind": "Secret", "metadata": {"name": "A_b"}}, r"got 'A_b' \(at \$\.metadata\.name\)"),
        ({"kind": "Secret", "metadata": {}}, r"at \$\.metadata\.name"),
        ({"kind": "Secret", "metadata": {"name": "a"}, "data": {"x": {1, 2}}}, "can be JSON"),
        ({"kind": "Secret", "metadata": {"name": "a"}, "data": float("nan")}, "can be JSON"),
    ],
)
def test_what_is_no_object_is_refused(store: ObjectStore, body: Object, said: str) -> None:
    """A kind that is not known, a name that is none, content that is no JSON: refused, and nothing is kept."""
    with pytest.raises(InvalidValue, match=said):
        store.create(body)

    assert store.list("Secret") == []


def test_list_is_sorted_and_selected(bench: Bench) -> None:
    """A list is in order of (namespace, name); namespace and labels narrow it."""
    store = bench.store
    for name, namespace, label in (("b", bench.one, "x"), ("a", bench.two, "x"), ("c", bench.one, "y")):
        store.create(secret(name, namespace, labels={"l": label}))

    assert names(store.list("Secret")) == ["b", "c", "a"]
    assert names(store.list("Secret", bench.one)) == ["b", "c"]
    assert names(store.list("Secret", None, {"l": "x"})) == ["b", "a"]
    assert names(store.list("Secret", bench.one, {"l": "z"})) == []
    assert store.list("Lease") == []


def test_nodes_have_no_namespace(bench: Bench) -> None:
    """Nodes are found under the empty namespace, whatever their document says."""
    name = f"node-of-{bench.one}"
    bench.store.create({"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "namespace": "x"}})
    found = bench.store.get("Node", "", name)
    bench.store.delete("Node", "", name)

    assert found["kind"] == "Node"
    assert "namespace" not in found["metadata"] or not found["metadata"]["namespace"]


def test_patch_changes_what_it_names(bench: Bench) -> None:
    """A merge-patch replaces, adds, and takes away where it says null."""
    bench.store.create({**secret("a", bench.one), "data": {"a": "MQ==", "b": "Mg=="}})
    made = bench.store.merge_patch("Secret", bench.one, "a", {"data": {"a": None, "c": "Mw=="}})

    assert made["data"] == {"b": "Mg==", "c": "Mw=="}
    assert bench.store.get("Secret", bench.one, "a") == made


def test_patch_without_change_makes_no_version(bench: Bench) -> None:
    """What changes nothing is no change: whoever waits is not woken."""
    bench.store.revision()
    made, revision = bench.store.create(secret("a", bench.one)), bench.store.revision()

    assert bench.store.merge_patch("Secret", bench.one, "a", {"data": {"a": "MQ=="}}) == made
    assert bench.store.revision() == revision


@pytest.mark.parametrize("kind", ["Secret", "Workflow", "Pod"])
def test_patch_is_guarded_by_version(bench: Bench, kind: str) -> None:
    """A patch for another version is refused and changes nothing, given as argument or in the patch."""
    store, place = bench.store, (kind, bench.one, "a")
    makers = {"Secret": secret("a", bench.one), "Workflow": workflow(bench.one, name="a"), "Pod": pod("a", bench.one)}
    old = store.create(makers[kind])["metadata"]["resourceVersion"]
    new = store.merge_patch(*place, note("1"), resource_version=old)

    with pytest.raises(Conflict, match="it changed since it was read"):
        store.merge_patch(*place, note("2"), resource_version=old)
    with pytest.raises(Conflict, match="it changed since it was read"):
        store.merge_patch(*place, {"metadata": {"resourceVersion": old, **note("3")["metadata"]}})
    assert store.get(*place) == new


def test_patch_is_guarded_by_uid(bench: Bench) -> None:
    """A patch meant for an object that was deleted does not reach the one that took its name."""
    uid = bench.store.create(secret("a", bench.one))["metadata"]["uid"]
    bench.store.delete("Secret", bench.one, "a")
    bench.store.create(secret("a", bench.one))

    with pytest.raises(Conflict, match="another object took its name"):
        bench.store.merge_patch("Secret", bench.one, "a", {"metadata": {"uid": uid}, "data": {"a": "Mw=="}})


def test_identity_cannot_be_changed(bench: Bench) -> None:
    """Name, namespace, time and kind stay, whatever a patch or a replacement says."""
    made = bench.store.create(secret("a", bench.one))
    patch = {"kind": "Pod", "metadata": {"name": "b", "creationTimestamp": None, "deletionTimestamp": "now"}}

    assert bench.store.merge_patch("Secret", bench.one, "a", patch) == made


def test_replace_is_guarded(bench: Bench) -> None:
    """A replacement goes in the place of the version it was read at, and of no other."""
    old = bench.store.create(secret("a", bench.one))
    new = bench.store.replace({**old, "data": {"b": "Mg=="}})

    assert new["data"] == {"b": "Mg=="}
    with pytest.raises(Conflict, match="it changed since it was read"):
        bench.store.replace({**old, "data": {"c": "Mw=="}})
    with pytest.raises(InvalidValue, match="resourceVersion"):
        bench.store.replace(secret("a", bench.one))


@pytest.mark.parametrize("verb", ["get", "merge_patch", "delete"])
def test_absent_object_is_not_found(bench: Bench, verb: str) -> None:
    """Each verb says which object it missed."""
    arguments: list[Any] = [{}] if verb == "merge_patch" else []

    with pytest.raises(NotFound, match=f"Pod {bench.one}/gone: expected it to exist"):
        getattr(bench.store, verb)("Pod", bench.one, "gone", *arguments)


@pytest.mark.parametrize("kind", ["Pod", "Workflow"])
def test_deletion_of_what_has_processes_is_asked_for(bench: Bench, kind: str) -> None:
    """A Pod or a Workflow stays with the time of the first deletion until its processes have ended."""
    top = bench.store.create(workflow(bench.one, name="a"))
    # What keeps a Workflow is a pod of it that has not ended.
    own = pod("a", bench.one, ownerReferences=[{**owned_by(top)[0], "controller": True, "blockOwnerDeletion": True}])
    bench.store.create(own)
    bench.store.delete(kind, bench.one, "a")
    first = bench.store.get(kind, bench.one, "a")
    bench.store.delete(kind, bench.one, "a")
    second = bench.store.get(kind, bench.one, "a")

    assert first["metadata"]["deletionTimestamp"]
    assert second["metadata"]["deletionTimestamp"] == first["metadata"]["deletionTimestamp"]


@pytest.mark.parametrize("kind", ["Pod", "Workflow"])
def test_a_snapshot_shows_a_deletion_at_once(bench: Bench, kind: str) -> None:
    """What we told to go is seen as going by whoever looks next."""
    bench.store.create(workflow(bench.one, name="a", finalizers=["voda.dev/test"]))
    bench.store.create(pod("a", bench.one))
    bench.store.snapshot(kind)
    bench.store.delete(kind, bench.one, "a")
    shown = bench.store.snapshot(kind)[Key(kind, bench.one, "a")]
    bench.store.merge_patch("Workflow", bench.one, "a", {"metadata": {"finalizers": []}})

    assert shown["metadata"]["deletionTimestamp"]


def test_deletion_is_guarded_by_uid(bench: Bench) -> None:
    """A deletion meant for another uid is refused."""
    uid = bench.store.create(secret("a", bench.one))["metadata"]["uid"]

    with pytest.raises(Conflict, match="another object took its name"):
        bench.store.delete("Secret", bench.one, "a", uid="other")
    bench.store.delete("Secret", bench.one, "a", uid=uid)
    assert bench.store.list("Secret") == []


def test_deletion_is_guarded_by_version(bench: Bench) -> None:
    """A deletion decided on an older version is refused."""
    made = bench.store.create(pod("a", bench.one))["metadata"]
    bench.store.merge_patch("Pod", bench.one, "a", {"metadata": {"annotations": {"x": "y"}}})

    with pytest.raises(Conflict, match="it changed since it was read"):
        bench.store.delete("Pod", bench.one, "a", uid=made["uid"], version=made["resourceVersion"])
    assert "deletionTimestamp" not in bench.store.get("Pod", bench.one, "a")["metadata"]


def test_owned_objects_go_with_their_owner(bench: Bench) -> None:
    """What an object owns is deleted with it, and what that owns; the rest stays."""
    store, one = bench.store, bench.one
    top = store.create(secret("top", one))
    middle = store.create(secret("middle", one, ownerReferences=owned_by(top)))
    store.create(secret("leaf", one, ownerReferences=owned_by(middle)))
    store.create(secret("other", one))
    store.create(pod("p", one, ownerReferences=owned_by(top)))
    store.delete("Secret", one, "top")

    eventually(store, lambda: names(store.list("Secret")) == ["other"])
    eventually(store, lambda: "deletionTimestamp" in store.get("Pod", one, "p")["metadata"])


def test_revision_grows_with_every_change(bench: Bench) -> None:
    """Creating, patching and deleting each raise the revision."""
    seen = [bench.store.revision()]
    bench.store.create(secret("a", bench.one))
    seen.append(bench.store.revision())
    bench.store.merge_patch("Secret", bench.one, "a", {"data": {"a": "Mg=="}})
    seen.append(bench.store.revision())
    bench.store.delete("Secret", bench.one, "a")
    seen.append(bench.store.revision())

    assert seen == sorted(set(seen))


def test_wait_returns_at_once_when_something_changed(bench: Bench) -> None:
    """A change that came before the call is not waited for (an hour would be beyond any test's limit)."""
    since = bench.store.revision()
    bench.store.create(secret("a", bench.one))

    assert bench.store.wait(since, 3600) > since


def test_wait_ends_with_its_time(store: ObjectStore) -> None:
    """Where nothing changes, the revision comes back unchanged when the time is over."""
    since, start_s = store.revision(), time.monotonic()

    assert store.wait(since, 0.1) == since
    assert time.monotonic() - start_s >= 0.1


def test_wait_sees_a_change_of_another_thread(bench: Bench) -> None:
    """A change while waiting ends the wait."""
    since = bench.store.revision()
    writer = threading.Timer(0.05, bench.store.create, [secret("a", bench.one)])
    writer.start()

    assert bench.store.wait(since, 30) > since
    writer.join()


def test_wait_and_snapshot_see_what_others_change(bench: Bench) -> None:
    """What another process creates, changes and deletes ends a wait, and is in the next snapshot."""
    key, shown = Key("Secret", bench.one, "a"), bench.store.snapshot
    bench.other.create(secret("a", bench.one))
    eventually(bench.store, lambda: key in shown("Secret"))
    changed = bench.other.merge_patch(*key, {"data": {"a": "Mg=="}})
    eventually(bench.store, lambda: shown("Secret").get(key) == changed)
    bench.other.delete(*key)
    eventually(bench.store, lambda: key not in shown("Secret"))


def test_a_snapshot_is_never_older_than_our_own_write(bench: Bench) -> None:
    """Whatever the world is told meanwhile, our last write is what we see."""
    key = Key("Secret", bench.one, "a")
    bench.store.snapshot("Secret")
    bench.store.create(secret("a", bench.one))
    for number in range(30):
        bench.other.merge_patch(*key, {"metadata": {"annotations": {"theirs": str(number)}}})
        written = bench.store.merge_patch(*key, {"metadata": {"annotations": {"ours": str(number)}}})

        assert bench.store.snapshot("Secret")[key] == written
    bench.store.delete(*key)
    assert key not in bench.store.snapshot("Secret")


def test_a_snapshot_is_the_same_while_nothing_changes(bench: Bench) -> None:
    """Whoever reads can tell by identity that there is nothing to read anew, whole or by object."""
    bench.store.snapshot("Secret")
    for name in ("a", "b"):
        bench.store.create(secret(name, bench.one))
    before = bench.store.snapshot("Secret")
    again = bench.store.snapshot("Secret")
    bench.store.merge_patch("Secret", bench.one, "a", {"data": {"a": "Mg=="}})
    after, b = bench.store.snapshot("Secret"), Key("Secret", bench.one, "b")

    assert again is before
    assert after is not before
    assert after[b] is before[b]


def test_what_is_returned_is_the_callers_own(bench: Bench) -> None:
    """Changing a returned object or the one given changes nothing that is kept."""
    bench.store.snapshot("Secret")
    given, key = secret("a", bench.one), Key("Secret", bench.one, "a")
    made = bench.store.create(given)
    given["data"]["a"] = made["data"]["a"] = bench.store.get(*key)["data"]["a"] = "changed"

    assert bench.store.get(*key)["data"] == {"a": "MQ=="}
    assert bench.store.snapshot("Secret")[key]["data"] == {"a": "MQ=="}


def test_snapshot_is_the_list_by_key(bench: Bench) -> None:
    """A snapshot has what a list has, follows every change, and forgets what is gone."""
    store = bench.store
    for name in ("b", "a"):
        store.create(secret(name, bench.one))
    assert list(store.snapshot("Secret").values()) == store.list("Secret")

    store.merge_patch("Secret", bench.one, "a", {"data": {"a": "Mg=="}})
    store.delete("Secret", bench.one, "b")

    assert list(store.snapshot("Secret").values()) == store.list("Secret")


def test_a_workflows_gate_is_answered_by_one_patch(bench: Bench) -> None:
    """A guarded merge-patch reaches into the status of a Workflow, and leaves what it does not name."""
    nodes = {"gate": {"id": "gate", "name": "gate", "displayName": "gate", "type": "Suspend", "phase": "Running"}}
    made = bench.store.create({**workflow(bench.one, name="a"), "status": {"phase": "Running", "nodes": nodes}})
    answer = {"phase": "Succeeded", "finishedAt": "2026-01-31T10:00:00.123456Z"}
    version = made["metadata"]["resourceVersion"]
    found = bench.store.merge_patch(
        "Workflow", bench.one, "a", {"status": {"nodes": {"gate": answer}}}, resource_version=version
    )

    assert found["status"] == {"phase": "Running", "nodes": {"gate": {**nodes["gate"], **answer}}}

"""What a store knows by watching, and how it comes through everything that ends a watch."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator

import pytest

from scheduler_core.errors import Forbidden, NotFound, Unreachable
from tests.unit.kube.fake import FakeStream, FakeTransport, answer, api_of, listed, pod, refused
from voda_flows.kube.cache import Cache, Changes
from voda_flows.kube.resources import resource_of
from voda_flows.kube.store import KubeStore, Scope
from voda_flows.kube.transport import Answer, AnswerLost, NotSent
from voda_flows.kube.watching import STALE_S, Place, Watcher
from voda_flows.objects import Key, Object

ALL, A = "/api/v1/pods", "/api/v1/namespaces/ns/pods/a"
LIMIT_S = 60.0
EXPIRED = {"kind": "Status", "code": 410, "message": "too old resource version: 1 (5)"}


class World:
    """A store that watches pods, and the server that tells it of them."""

    def __init__(self) -> None:
        self.transport = FakeTransport()
        self.store = KubeStore(api_of(self.transport), Scope(watched=("Pod",)))

    def begin(self, *replies: Answer) -> FakeStream:
        """Lay out lists and begin to watch."""
        self.transport.on(f"GET {ALL}", *replies)
        self.store.snapshot("Pod")
        return self.next_watch()

    def next_watch(self) -> FakeStream:
        """The watch that is opened next."""
        return self.transport.streams.get(timeout=LIMIT_S)

    def shown(self) -> dict[str, int]:
        """The versions of the pods in the snapshot."""
        return {key.name: int(body["metadata"]["resourceVersion"]) for key, body in self.store.snapshot("Pod").items()}

    def until(self, is_so: Callable[[], bool]) -> None:
        """Wait until it is so."""
        revision = self.store.revision()
        while not is_so():
            found = self.store.wait(revision, LIMIT_S)
            assert found > revision, "expected a change"
            revision = found

    def since(self) -> list[str]:
        """The versions from which watches were opened."""
        return [request.query["resourceVersion"] for request in self.transport.watches]


@pytest.fixture
def world() -> Iterator[World]:
    """A world, ended after the test."""
    made = World()
    yield made
    made.store.close()


def test_a_watch_changes_the_snapshot(world: World) -> None:
    """What is added, changed and deleted is so in the next snapshot, in order of (namespace, name)."""
    watch = world.begin(listed(5, pod("b", 3)))
    watch.tell("ADDED", pod("a", 6))
    watch.tell("MODIFIED", pod("b", 7))
    world.until(lambda: world.shown() == {"a": 6, "b": 7})
    order = list(world.shown())
    watch.tell("DELETED", pod("a", 8))
    world.until(lambda: world.shown() == {"b": 7})

    assert order == ["a", "b"]


def test_an_old_event_does_not_undo_our_write(world: World) -> None:
    """A watch may tell late of what was before our write; what it tells of later counts."""
    watch = world.begin(listed(5, pod("a", 3)))
    world.transport.on(f"PATCH {A}", answer(200, pod("a", 9)))
    world.store.merge_patch("Pod", "ns", "a", {"metadata": {"annotations": {"x": "y"}}})
    at_once = world.shown()
    for version in (7, 8, 9):
        watch.tell("MODIFIED", pod("a", version))
    watch.tell("ADDED", pod("b", 10))
    world.until(lambda: "b" in world.shown())
    later = world.shown()
    watch.tell("MODIFIED", pod("a", 11))
    world.until(lambda: world.shown()["a"] == 11)

    assert at_once == {"a": 9}
    assert later == {"a": 9, "b": 10}


def test_the_echo_of_our_write_is_no_change(world: World) -> None:
    """Whoever waits is woken by our write once, not again by the watch that tells of it."""
    watch = world.begin(listed(5, pod("a", 3)))
    world.transport.on(f"PATCH {A}", answer(200, pod("a", 9)))
    world.store.merge_patch("Pod", "ns", "a", {"metadata": {"annotations": {"x": "y"}}})
    before = world.store.revision()
    watch.tell("MODIFIED", pod("a", 9))
    watch.tell("ADDED", pod("b", 10))
    world.until(lambda: "b" in world.shown())

    assert world.store.revision() == before + 1


def test_an_old_event_does_not_bring_back_what_we_deleted(world: World) -> None:
    """Events from before our deletion come after it; one of the same name made since is another."""
    watch = world.begin(listed(5, pod("a", 3)))
    world.transport.on(f"DELETE {A}", answer(200, {"kind": "Status", "status": "Success"}))
    world.store.delete("Pod", "ns", "a", uid="uid-a")
    at_once = world.shown()
    watch.tell("MODIFIED", pod("a", 6))
    watch.tell("ADDED", pod("b", 7))
    world.until(lambda: "b" in world.shown())
    later = world.shown()
    watch.tell("DELETED", pod("a", 8))
    watch.tell("ADDED", pod("a", 9, uid="uid-2"))
    world.until(lambda: "a" in world.shown())

    assert (at_once, later) == ({}, {"b": 7})


def test_the_end_of_one_does_not_take_its_successor(world: World) -> None:
    """A late deletion event is of the uid that is gone, not of the object that we made under its name."""
    watch = world.begin(listed(5, pod("a", 3)))
    world.transport.on("POST /api/v1/namespaces/ns/pods", answer(201, pod("a", 9, uid="uid-2")))
    world.store.create(pod("a", 0))
    watch.tell("DELETED", pod("a", 8))
    watch.tell("ADDED", pod("b", 10))
    world.until(lambda: "b" in world.shown())

    assert world.shown() == {"a": 9, "b": 10}


@pytest.mark.parametrize("end", [None, AnswerLost("reset by peer"), b"torn {"])
def test_a_watch_that_ends_goes_on_where_it_was(world: World, end: bytes | Exception | None) -> None:
    """Its time is over, it is cut, a line is torn: the next goes on from the last version heard, without a list."""
    watch = world.begin(listed(5, pod("a", 3)))
    watch.tell("MODIFIED", pod("a", 6))
    watch.given.put(end)
    world.next_watch().tell("MODIFIED", pod("a", 7))
    world.until(lambda: world.shown() == {"a": 7})

    assert world.since() == ["5", "6"]
    assert world.transport.methods() == ["GET"]


def test_bookmarks_keep_the_version_fresh(world: World) -> None:
    """Where nothing changes for long, the next watch still begins at a version that the server remembers."""
    watch = world.begin(listed(5, pod("a", 3)))
    watch.bookmark(90)
    watch.given.put(None)
    world.next_watch()

    assert world.since() == ["5", "90"]
    assert world.shown() == {"a": 3}


@pytest.mark.parametrize("how", ["event", "status"])
def test_a_forgotten_version_is_listed_anew(world: World, how: str) -> None:
    """410, as a watch's event or as its answer: what changed and what went meanwhile is found by a list."""
    watch = world.begin(listed(5, pod("a", 3), pod("b", 4)), listed(20, pod("a", 12)))
    if how == "status":
        world.transport.heads.append(answer(410, EXPIRED))
        watch.given.put(None)
    else:
        watch.tell("ERROR", EXPIRED)
    world.next_watch()
    world.until(lambda: world.shown() == {"a": 12})

    assert world.since()[-1] == "20"


@pytest.mark.parametrize("fault", [NotSent("refused"), AnswerLost("reset"), answer(500), answer(429), answer(503)])
def test_a_server_that_is_away_is_asked_again(world: World, fault: Answer | Exception) -> None:
    """A watch that cannot be opened is tried again, from where it was."""
    watch = world.begin(listed(5, pod("a", 3)))
    world.transport.heads += [fault, fault]
    watch.given.put(AnswerLost("the server restarts"))
    world.next_watch().tell("MODIFIED", pod("a", 6))
    world.until(lambda: world.shown() == {"a": 6})

    assert world.since() == ["5"] * 4


def test_an_error_in_the_middle_of_a_watch_ends_it_only(world: World) -> None:
    """An error that is no 410 says nothing of what we know."""
    watch = world.begin(listed(5, pod("a", 3)))
    watch.tell("ERROR", {"kind": "Status", "code": 500, "message": "etcd leader changed"})
    world.next_watch()

    assert world.since() == ["5", "5"]
    assert world.shown() == {"a": 3}


def test_a_list_is_not_older_than_our_write() -> None:
    """A list answered from before our write neither takes back a change nor hides what we made, nor revives."""
    changes = Changes()
    cache = Cache(changes)
    cache.listed([pod("a", 3), pod("d", 4)], "5")
    cache.wrote(pod("a", 9))
    cache.wrote(pod("new", 10))
    cache.deleted(Key("Pod", "ns", "d"), "uid-d")
    cache.listed([pod("a", 6), pod("d", 4), pod("other", 7)], "8")

    assert {key.name: body["metadata"]["resourceVersion"] for key, body in cache.snapshot().items()} == {
        "a": "9",
        "new": "10",
        "other": "7",
    }


def test_an_answer_that_comes_after_the_end_revives_nothing() -> None:
    """Our write was carried out, then somebody deleted the object; we hear of the second first."""
    cache = Cache(Changes())
    cache.listed([pod("a", 3), pod("b", 4)], "5")
    cache.heard("DELETED", pod("a", 10))
    cache.wrote(pod("a", 9))
    cache.listed([], "20")
    cache.wrote(pod("b", 15))

    assert cache.snapshot() == {}


def test_a_list_that_says_what_is_known_is_no_change() -> None:
    """After a relist of the same, whoever reads has nothing to read anew."""
    changes = Changes()
    cache = Cache(changes)
    cache.listed([pod("a", 3)], "5")
    before, count = cache.snapshot(), changes.count()
    cache.listed([pod("a", 3)], "8")

    assert cache.snapshot() is before
    assert changes.count() == count


def test_lists_of_namespaces_leave_each_other_alone() -> None:
    """Where several namespaces are watched, each list speaks of its own."""
    cache = Cache(Changes())
    theirs = pod("b", 4)
    theirs["metadata"]["namespace"] = "other"
    cache.listed([pod("a", 3)], "5", "ns")
    cache.listed([theirs], "6", "other")
    cache.listed([], "7", "ns")

    assert [(key.namespace, key.name) for key in cache.snapshot()] == [("other", "b")]


def test_versions_that_are_no_numbers_follow_in_order_of_arrival() -> None:
    """A server may order its versions as it likes; then what comes last counts."""
    cache = Cache(Changes())
    first, second = pod("a", 0), pod("a", 0)
    first["metadata"]["resourceVersion"], second["metadata"]["resourceVersion"] = "xyz", "abc"
    cache.listed([first], "q")
    cache.heard("MODIFIED", second)

    assert [body["metadata"]["resourceVersion"] for body in cache.snapshot().values()] == ["abc"]


def test_a_conflict_shows_that_we_were_behind(world: World) -> None:
    """The object that a conflict was about is read, and the next snapshot has it: the next try is not in vain."""
    world.begin(listed(5, pod("a", 3)))
    world.transport.on(f"PATCH {A}", refused(409, "Conflict", "the object has been modified"))
    world.transport.on(f"GET {A}", answer(200, pod("a", 8)))
    with pytest.raises(Exception, match="expected version 3, found 8"):
        world.store.merge_patch("Pod", "ns", "a", {"metadata": {"labels": {"x": "y"}}}, resource_version="3")

    assert world.shown() == {"a": 8}


def test_a_pod_told_to_go_stays_until_it_is_gone(world: World) -> None:
    """The answer to a deletion that takes time is the object with the time of it."""
    watch = world.begin(listed(5, pod("a", 3)))
    going = pod("a", 6, deletionTimestamp="2026-01-01T00:00:00Z", deletionGracePeriodSeconds=30)
    world.transport.on(f"DELETE {A}", answer(200, going))
    world.store.delete("Pod", "ns", "a", uid="uid-a")
    shown = dict(world.store.snapshot("Pod"))
    watch.tell("DELETED", pod("a", 7))
    world.until(lambda: world.shown() == {})

    assert shown == {Key("Pod", "ns", "a"): going}


LACKS = 'pods is forbidden: User "x" cannot list resource "pods" in API group "" at the cluster scope'
NEEDS = "expected the right to list pods in the whole cluster, account 'x' lacks it; give it a ClusterRole and Cluster"


@pytest.mark.parametrize(
    ("message", "said"),
    [
        (LACKS, f"list pods of the whole cluster: {NEEDS}"),
        ("exceeded quota", "list pods of the whole cluster: the API server does not allow it: 403: exceeded quota"),
    ],
)
def test_what_may_not_be_listed_is_said_at_once(world: World, message: str, said: str) -> None:
    """A right that is missing is named, with where and to whom; nothing is watched then."""
    world.transport.on(f"GET {ALL}", refused(403, "Forbidden", message))

    with pytest.raises(Forbidden, match=said):
        world.store.snapshot("Pod")
    assert world.transport.watches == []


def test_a_kind_that_the_server_does_not_know_is_said_with_what_to_install() -> None:
    """Without Argo's definitions the server answers with a plain 404."""
    transport = FakeTransport()
    transport.on("GET /apis/argoproj.io/v1alpha1/workflows", Answer(status=404, body=b"404 page not found\n"))
    store = KubeStore(api_of(transport), Scope(watched=()))

    with pytest.raises(NotFound, match=r"know workflows of argoproj\.io/v1alpha1, it does not; install Argo Workflows"):
        store.list("Workflow")


def test_what_is_too_old_is_not_shown() -> None:
    """Without contact for long, decisions on what is known would be decisions on the past."""
    transport, now_s = FakeTransport(), [100.0]
    transport.on(f"GET {ALL}", listed(5))
    watcher = Watcher(Place(resource=resource_of("Pod")), api_of(transport), Cache(Changes()), lambda: now_s[0])
    watcher.start()
    now_s[0] += STALE_S
    watcher.check()
    now_s[0] += 1
    try:
        with pytest.raises(
            Unreachable, match=r"watch pods/\*: expected news within 60 s, there was no contact for 61 s"
        ):
            watcher.check()
    finally:
        watcher.close()


def test_a_watch_asks_for_what_keeps_it_honest(world: World) -> None:
    """Bookmarks, and an end that the server keeps: a silent watch is noticed when that time is over."""
    world.begin(listed(5))

    assert world.transport.watches[0].query == {
        "watch": "true",
        "resourceVersion": "5",
        "allowWatchBookmarks": "true",
        "timeoutSeconds": "30",
    }


def test_rights_can_be_lost_while_watching(world: World) -> None:
    """A watch that is refused later is tried again: what was known stays until it is too old."""
    watch = world.begin(listed(5, pod("a", 3)))
    world.transport.heads.append(refused(403, "Forbidden", 'User "x" cannot watch resource "pods"'))
    watch.given.put(None)
    world.next_watch().tell("MODIFIED", pod("a", 6))
    world.until(lambda: world.shown() == {"a": 6})


def test_the_snapshot_is_raw(world: World) -> None:
    """Documents are what the server sent, but for the bookkeeping of fields, and nobody else's to change."""
    body: Object = {**pod("a", 3), "spec": {"x": [1, {"y": None}]}}
    sent = {**body, "metadata": {**body["metadata"], "managedFields": [{"manager": "m"}]}}
    watch = world.begin(listed(5))
    watch.given.put(json.dumps({"type": "ADDED", "object": sent}).encode())
    world.until(lambda: "a" in world.shown())

    assert world.store.snapshot("Pod") == {Key("Pod", "ns", "a"): body}

"""What is repeated and what is not, when the network or the server fails in the middle of a call."""

from __future__ import annotations

import json

import pytest

from scheduler_core.errors import Conflict, NotFound, Unreachable
from tests.unit.kube.fake import FakeTime, FakeTransport, answer, api_of, listed, pod, refused
from voda_flows.kube.connection import ANSWER_S
from voda_flows.kube.retrying import Attempts, Patience
from voda_flows.kube.store import KubeStore, Scope
from voda_flows.kube.transport import Answer, AnswerLost, NotSent, Request
from voda_flows.objects import Object

PODS = "/api/v1/namespaces/ns/pods"
A = f"{PODS}/a"
PLACE = ("Pod", "ns", "a")
LOST, UNSENT = AnswerLost("reset by peer"), NotSent("refused")
MOVED = refused(409, "Conflict", "the object has been modified; please apply your changes to the latest version")
GONE = refused(404, "NotFound", 'pods "a" not found', name="a", kind="pods")
EXISTS = refused(409, "AlreadyExists", 'pods "a" already exists')
PATCH = {"metadata": {"annotations": {"x": "y"}}}
PATCHED = pod("a", 5, annotations={"x": "y"})


def store_of(transport: FakeTransport, time: FakeTime | None = None) -> KubeStore:
    """A store that watches nothing."""
    return KubeStore(api_of(transport, time), Scope(watched=()))


#: What somebody before the API server may answer in its place.
LOGIN = Answer(status=200, body=b"<html>please log in</html>")


@pytest.mark.parametrize("fault", [LOST, UNSENT, answer(500), answer(503), answer(429), LOGIN])
def test_a_read_is_repeated_until_it_is_answered(fault: Answer | Exception) -> None:
    """Reads change nothing: whatever goes wrong on the way, they are asked again."""
    transport = FakeTransport()
    transport.on(f"GET {A}", fault, fault, answer(200, pod("a", 1)))

    assert store_of(transport).get(*PLACE) == pod("a", 1)


def test_repeating_ends_and_says_what_was_found() -> None:
    """A server that stays away is given up after the limit, with what came last and what to do."""
    transport, time = FakeTransport(), FakeTime()
    transport.on(f"GET {A}", UNSENT, answer(503, {"kind": "Status", "message": "starting"}))

    with pytest.raises(Unreachable, match=r"get Pod ns/a: expected an answer of https://server .* got 503: starting"):
        store_of(transport, time).get(*PLACE)
    assert 4 < time.now_s <= 6


def test_a_page_that_is_no_document_is_no_empty_cluster() -> None:
    """With an empty list of pods all GPUs would seem free."""
    transport, time = FakeTransport(), FakeTime()
    transport.on(f"GET {PODS}", LOGIN)

    with pytest.raises(Unreachable, match="no JSON object: is something before the API server"):
        store_of(transport, time).list("Pod", "ns")


def test_a_server_that_was_silent_once_is_asked_again() -> None:
    """The longest wait for an answer leaves time for another try, of a write too."""
    time = FakeTime()
    attempts = Attempts("update Pod ns/a", Patience(sleep=time.sleep, clock=time.clock), "https://server")
    tries = iter(attempts)

    next(tries)
    time.sleep(ANSWER_S)
    attempts.note("no answer")

    assert next(tries) == 1


@pytest.mark.parametrize("doubt", [True, False])
def test_a_call_ends_in_good_time_with_all_its_looks(*, doubt: bool) -> None:
    """The slowest of servers: each request takes all its time, and what was done must be looked for."""
    transport, time = FakeTransport(), FakeTime()

    def slowly(request: Request) -> Answer:
        assert request.limit_s is not None
        time.now_s += min(ANSWER_S, request.limit_s)
        raise LOST if doubt else UNSENT

    def shown(request: Request) -> Answer:
        assert request.limit_s is not None
        time.now_s += min(ANSWER_S, request.limit_s) - 0.01
        return answer(200, pod("a", 4))

    transport.on(f"PATCH {A}", slowly)
    transport.on(f"GET {A}", shown)
    with pytest.raises(Unreachable, match="patch Pod ns/a: expected an answer"):
        store_of(transport, time).merge_patch(*PLACE, PATCH, resource_version="4")

    patience = Patience()
    assert time.now_s <= patience.limit_s + patience.last_s + 0.02


def test_the_server_names_how_long_to_wait() -> None:
    """``Retry-After`` is obeyed; where it is beyond the limit, nothing is waited for."""
    transport, time = FakeTransport(), FakeTime()
    transport.on(f"GET {A}", answer(429, retry_after="3"), answer(200, pod("a", 1)))
    store_of(transport, time).get(*PLACE)
    assert time.slept == [3.0]

    transport.on(f"GET {A}", answer(429, retry_after="60"))
    with pytest.raises(Unreachable):
        store_of(transport, time).get(*PLACE)
    assert time.slept == [3.0]


@pytest.mark.parametrize("fault", [UNSENT, answer(429)])
def test_a_write_that_was_not_carried_out_is_repeated(fault: Answer | Exception) -> None:
    """Where nothing can have been done, a write is sent again without a look."""
    transport = FakeTransport()
    transport.on(f"PATCH {A}", fault, answer(200, PATCHED))

    assert store_of(transport).merge_patch(*PLACE, PATCH) == PATCHED
    assert transport.methods() == ["PATCH", "PATCH"]


@pytest.mark.parametrize("fault", [LOST, answer(500), answer(504)])
def test_a_patch_whose_answer_was_lost_is_not_done_twice(fault: Answer | Exception) -> None:
    """It is looked first; where the object is as the patch leaves it, that is the answer."""
    transport = FakeTransport()
    transport.on(f"PATCH {A}", fault, MOVED)
    transport.on(f"GET {A}", answer(200, PATCHED))

    assert store_of(transport).merge_patch(*PLACE, PATCH, resource_version="4") == PATCHED
    assert transport.methods() == ["PATCH", "GET"]


def test_a_patch_that_arrives_after_the_look_is_recognised() -> None:
    """A request may be carried out after we looked: the guard of the repeated one fails, and we look again."""
    transport = FakeTransport()
    transport.on(f"PATCH {A}", LOST, MOVED)
    transport.on(f"GET {A}", answer(200, pod("a", 4)), answer(200, PATCHED))

    assert store_of(transport).merge_patch(*PLACE, PATCH, resource_version="4") == PATCHED
    assert transport.methods() == ["PATCH", "GET", "PATCH", "GET"]


def test_a_conflict_with_somebody_else_stays_one() -> None:
    """After a lost answer, an object that is not as the patch leaves it was changed by somebody else."""
    transport = FakeTransport()
    transport.on(f"PATCH {A}", LOST, MOVED)
    transport.on(f"GET {A}", answer(200, pod("a", 7)))

    with pytest.raises(Conflict, match="expected version 4, found 7: it changed since it was read"):
        store_of(transport).merge_patch(*PLACE, PATCH, resource_version="4")


def test_a_conflict_without_doubt_is_told_at_once() -> None:
    """Where the first answer is a conflict, it is somebody else's change, even one to the same effect."""
    transport = FakeTransport()
    transport.on(f"PATCH {A}", MOVED)
    transport.on(f"GET {A}", answer(200, PATCHED))

    with pytest.raises(Conflict):
        store_of(transport).merge_patch(*PLACE, PATCH, resource_version="4")


def test_a_creation_whose_answer_was_lost_finds_its_own_object() -> None:
    """A generated name is made here, so a repeated creation makes no second object."""
    transport, made = FakeTransport(), list[Object]()

    def lose(request: Request) -> Answer:
        made.append(json.loads(request.body or ""))
        raise LOST

    def show(request: Request) -> Answer:
        name = made[0]["metadata"]["name"]
        assert request.path == f"{PODS}/{name}"
        return answer(200, {**made[0], "metadata": {**made[0]["metadata"], "uid": "u", "resourceVersion": "3"}})

    transport.on(f"POST {PODS}", lose)
    transport.otherwise = show
    found = store_of(transport).create(
        {"apiVersion": "v1", "kind": "Pod", "metadata": {"generateName": "a-", "namespace": "ns"}, "spec": {}}
    )

    assert found["metadata"]["uid"] == "u"
    assert transport.methods() == ["POST", "GET"]


def test_a_name_that_is_taken_by_another_is_a_conflict_after_a_lost_answer_too() -> None:
    """An object of that name that does not say what ours says is somebody else's."""
    transport = FakeTransport()
    transport.on(f"POST {PODS}", LOST, EXISTS)
    transport.on(f"GET {A}", answer(200, {**pod("a", 3), "spec": {"other": True}}))

    with pytest.raises(Conflict, match="expected a new name"):
        store_of(transport).create({**pod("a", 0), "spec": {"ours": True}})


def test_unknown_fields_are_refused_on_creation() -> None:
    """Without being asked the server drops what it does not know, and typos with it."""
    transport = FakeTransport()
    transport.on(f"POST {PODS}", answer(201, pod("a", 1)))
    store_of(transport).create(pod("a", 0))

    assert transport.asked[0].query == {"fieldValidation": "Strict"}


@pytest.mark.parametrize(
    ("shown", "methods"),
    [
        (GONE, ["DELETE", "GET"]),
        (answer(200, pod("a", 9, uid="another")), ["DELETE", "GET"]),
        (answer(200, pod("a", 9, deletionTimestamp="2026-01-01T00:00:00Z")), ["DELETE", "GET"]),
        (answer(200, pod("a", 4)), ["DELETE", "GET", "DELETE"]),
    ],
)
def test_a_deletion_whose_answer_was_lost_hits_nobody_else(shown: Answer, methods: list[str]) -> None:
    """Gone, of another owner of the name, or told to go: it was done. Else it is sent again, guarded by the uid."""
    transport = FakeTransport()
    transport.on(f"DELETE {A}", LOST, answer(200, {"kind": "Status", "status": "Success"}))
    transport.on(f"GET {A}", shown)
    store_of(transport).delete(*PLACE, uid="uid-a")

    assert transport.methods() == methods


def test_a_deletion_is_always_guarded() -> None:
    """Without a uid the one that is there is looked up first, so that a repetition cannot hit another."""
    transport = FakeTransport()
    transport.on(f"GET {A}", answer(200, pod("a", 4)))
    transport.on(f"DELETE {A}", answer(200, {"kind": "Status", "status": "Success"}))
    store_of(transport).delete(*PLACE)
    sent = json.loads(transport.asked[-1].body or "")

    assert sent["preconditions"] == {"uid": "uid-a"}
    assert sent["propagationPolicy"] == "Background"


@pytest.mark.parametrize(("version", "guard"), [(None, None), ("4", "9")])
def test_a_workflow_is_ended_before_it_is_deleted(version: str | None, guard: str | None) -> None:
    """Its controller goes on with one that is being deleted, and would make pods anew that were deleted with it."""
    path = "/apis/argoproj.io/v1alpha1/namespaces/ns/workflows/a"
    ended = {"kind": "Workflow", "apiVersion": "argoproj.io/v1alpha1", "metadata": {"name": "a", "namespace": "ns"}}
    ended["metadata"] |= {"uid": "uid-a", "resourceVersion": "9"}  # type: ignore[operator]
    transport = FakeTransport()
    transport.on(f"PATCH {path}", answer(200, ended))
    transport.on(f"DELETE {path}", answer(200, {"kind": "Status", "status": "Success"}))
    store_of(transport).delete("Workflow", "ns", "a", uid="uid-a", version=version)
    patch, options = (json.loads(request.body or "") for request in transport.asked)

    assert patch["spec"] == {"shutdown": "Terminate"}
    assert (patch["metadata"]["uid"], patch["metadata"].get("resourceVersion")) == ("uid-a", version)
    assert options["preconditions"] == {"uid": "uid-a", **({"resourceVersion": guard} if guard else {})}
    assert options["propagationPolicy"] == "Foreground"


def test_absent_stays_absent_without_doubt() -> None:
    """A first answer that there is none is the answer."""
    transport = FakeTransport()
    transport.on(f"DELETE {A}", GONE)

    with pytest.raises(NotFound, match="Pod ns/a: expected it to exist"):
        store_of(transport).delete(*PLACE, uid="uid-a")


def test_a_list_is_read_in_pages() -> None:
    """Pages are joined, each with its kind, which lists leave out."""
    transport = FakeTransport()
    bare = {"metadata": {"name": "b", "namespace": "ns", "uid": "u", "managedFields": [{}]}}
    transport.on(f"GET {PODS}", listed(7, pod("a", 1), more="next"), listed(7, bare))
    found = store_of(transport).list("Pod", "ns")

    assert [(body["kind"], body["apiVersion"], body["metadata"]["name"]) for body in found] == [
        ("Pod", "v1", "a"),
        ("Pod", "v1", "b"),
    ]
    assert "managedFields" not in found[1]["metadata"]
    assert [request.query for request in transport.asked] == [{"limit": "250"}, {"limit": "250", "continue": "next"}]


def test_a_page_that_comes_too_late_is_no_fault() -> None:
    """Where the moment of the first page is forgotten, all is read at once."""
    transport = FakeTransport()
    expired = refused(410, "Expired", "The provided continue parameter is too old")
    transport.on(f"GET {PODS}", listed(7, pod("a", 1), more="next"), expired, listed(9, pod("a", 1), pod("b", 8)))

    assert [body["metadata"]["name"] for body in store_of(transport).list("Pod", "ns")] == ["a", "b"]
    assert transport.asked[-1].query == {}

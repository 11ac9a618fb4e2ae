"""A cluster as the command line's world: which objects, what it asks how often, what it says when it stands still."""

from __future__ import annotations

import contextlib
import json
from email.utils import formatdate

import pytest

from scheduler_core.errors import Forbidden
from tests.unit.kube.fake import FakeTime, FakeTransport, answer, api_of, listed, pod, refused
from voda_flows.kube.api import POD_BYTES, POD_S
from voda_flows.kube.live import LiveStore
from voda_flows.kube.store import KubeStore, Scope
from voda_flows.kube.transport import Answer, Bound
from voda_flows.kube.usage import MetricsMeter
from voda_flows.kube.world import KubeWorld
from voda_flows.objects import Key, Object
from voda_flows.world import Used

NOW_S = 1_800_000_000.0  # 2027-01-15T08:00:00Z
DATE = formatdate(NOW_S, usegmt=True)
WORKFLOWS = "GET /apis/argoproj.io/v1alpha1/namespaces/ns/workflows"
LEASE = "GET /apis/coordination.k8s.io/v1/namespaces/voda/leases/voda-scheduler"
PODS = "GET /api/v1/namespaces/ns/pods"
NO_RIGHT = refused(403, "Forbidden", 'User "u" cannot get resource "leases" in API group "coordination.k8s.io"')


def world_on(transport: FakeTransport, namespace: str | None = "ns") -> KubeWorld:
    """The world of a namespace."""
    return KubeWorld(api_of(transport), "ns", "voda", namespace=namespace)


def lease(renewed: str) -> Object:
    """The scheduler's Lease."""
    return {"kind": "Lease", "metadata": {"name": "voda-scheduler"}, "spec": {"renewTime": renewed}}


def workflow(name: str, born: str) -> Object:
    """One that nobody has looked at."""
    return {"metadata": {"name": name, "namespace": "ns", "creationTimestamp": born}}


def noted(workflows: object, found: object) -> str:
    """What a world says with these answers."""
    transport = FakeTransport()
    transport.replies[WORKFLOWS], transport.replies[LEASE] = [workflows], [found]  # type: ignore[list-item]
    return world_on(transport).note()


NONE = answer(200, {"items": []}, date=DATE)


def test_nothing_is_said_while_a_scheduler_renews_its_lease() -> None:
    """Its Lease may be as old as one run takes to follow another."""
    assert noted(NONE, answer(200, lease("2027-01-15T07:59:20.000000Z"), date=DATE)) == ""


def test_a_lease_that_nobody_renews_is_told_by_the_servers_clock() -> None:
    """Whatever the time is here."""
    said = noted(NONE, answer(200, lease("2027-01-15T07:55:00.000000Z"), date=DATE))

    assert said.startswith("no scheduler is at work in namespace voda: its Lease was last renewed 300 s ago")


def test_where_no_scheduler_ever_ran_that_is_said() -> None:
    """With what names another namespace."""
    missing = refused(404, "NotFound", "not found", name="voda-scheduler")

    assert noted(NONE, missing).startswith("no scheduler has run in namespace voda")
    assert "VODA_SCHEDULER_NAMESPACE" in noted(NONE, missing)


def test_a_workflow_that_argo_does_not_take_up_is_told() -> None:
    """After half a minute, not before."""
    old, young = workflow("old", "2027-01-15T07:59:00Z"), workflow("young", "2027-01-15T07:59:50Z")
    fresh = answer(200, lease("2027-01-15T08:00:00Z"), date=DATE)

    assert noted(answer(200, {"items": [young]}, date=DATE), fresh) == ""
    assert noted(answer(200, {"items": [young, old]}, date=DATE), fresh).startswith(
        "Argo's workflow-controller has not taken up old"
    )


def test_who_may_not_look_is_told_nothing() -> None:
    """A note is a help, no condition."""
    assert noted(NONE, NO_RIGHT) == ""


def test_a_note_is_not_asked_for_at_every_look() -> None:
    """A live view asks several times a second."""
    transport = FakeTransport()
    transport.on(WORKFLOWS, NONE)
    transport.on(LEASE, answer(200, lease("2027-01-15T08:00:00Z"), date=DATE))
    world = world_on(transport)

    assert [world.note() for _ in range(5)] == [""] * 5
    assert len(transport.asked) == 2


def test_who_follows_lists_from_the_watch() -> None:
    """Before, every list is a request; after, none is."""
    transport = FakeTransport()
    transport.on(PODS, listed(5, pod("a", 4)))
    store = LiveStore(KubeStore(api_of(transport), Scope(namespaces=("ns",), watched=("Pod",))))

    before = [store.list("Pod", "ns"), store.list("Pod", "ns")]
    requests = len(transport.asked)
    store.revision()
    followed = [store.list("Pod", "ns"), store.list("Pod"), [store.get("Pod", "ns", "a")]]
    store.close()

    assert requests == 2
    assert len(transport.asked) == 3
    assert [[body["metadata"]["name"] for body in found] for found in (*before, *followed)] == [["a"]] * 5


def test_what_was_refused_once_is_not_asked_for_at_every_look() -> None:
    """A live view goes on without it."""
    transport = FakeTransport()
    transport.on("GET /api/v1/nodes", refused(403, "Forbidden", 'User "u" cannot list resource "nodes"'))
    store = LiveStore(KubeStore(api_of(transport)), lambda: True)

    for _ in range(3):
        with pytest.raises(Forbidden, match="expected the right to list nodes in the whole cluster"):
            store.list("Node")

    assert len(transport.asked) == 1


def test_a_drivers_address_may_become_anothers() -> None:
    """One that is gone is forgotten, and what has its address by then is asked; who may see nothing is told so."""
    transport = FakeTransport()
    one, other = ({**pod(name, 1), "status": {"podIP": "10.0.0.1"}} for name in ("one", "other"))
    no_right = refused(403, "Forbidden", 'User "u" cannot list resource "pods"')
    transport.on("GET /api/v1/pods", listed(5, one), listed(6, other), no_right)
    transport.on("GET /api/v1/namespaces/ns/pods", no_right)
    gone = refused(404, "NotFound", "gone")
    transport.on("GET /api/v1/namespaces/ns/pods/one:7071/proxy/status", gone)
    transport.on("GET /api/v1/namespaces/ns/pods/other:7071/proxy/status", answer(200, {"step": 3}), gone)
    world = world_on(transport, "ns")

    for _ in range(2):
        with contextlib.suppress(OSError):
            said = world.fetch("10.0.0.1", "/status", 1.0)
    for _ in range(2):
        with pytest.raises(OSError, match=r"404|right to list"):
            world.fetch("10.0.0.1", "/status", 1.0)

    assert json.loads(said) == {"step": 3}


def test_a_driver_is_asked_through_the_api_server() -> None:
    """By the pod that has its address; a right that is missing is remarked upon once."""
    transport = FakeTransport()
    driver = {**pod("d", 1, labels={"voda.dev/role": "driver"}), "status": {"podIP": "10.0.0.1"}}
    ended = {**pod("e", 2, labels={"voda.dev/role": "driver"}), "status": {"podIP": "10.0.0.1", "phase": "Failed"}}
    transport.on("GET /api/v1/pods", listed(5, driver, ended))
    denied = refused(403, "Forbidden", 'User "u" cannot get resource "pods/proxy"')
    transport.on("GET /api/v1/namespaces/ns/pods/d:7071/proxy/status", answer(200, {"step": 3}), denied)
    world = world_on(transport, None)

    said = world.fetch("10.0.0.1", "/status", 1.0)
    for _ in range(2):
        with pytest.raises(OSError, match="403"):
            world.fetch("10.0.0.1", "/status", 1.0)

    assert said == b'{"step": 3}'
    assert list(world.remarks()) == [
        "what drivers say is not known: expected the right to get pods/proxy in namespace 'ns'"
    ]


def test_what_a_driver_answers_is_bounded() -> None:
    """A job's own pod writes it: whoever asks says how much and how long at most."""
    transport = FakeTransport()
    transport.otherwise = Answer(status=200, body=b"[" * 100_000)
    api = api_of(transport)

    assert api.ask_pod(("ns", "d"), 7071, "reports", 3.0) == {}
    assert transport.asked[0].bound == Bound(most_bytes=POD_BYTES, most_s=POD_S)


def test_a_document_is_tried_and_not_made() -> None:
    """By the server's own dry run."""
    transport = FakeTransport()
    transport.on("POST /apis/argoproj.io/v1alpha1/namespaces/ns/workflows", answer(201, {}))

    world_on(transport).check({"kind": "Workflow", "metadata": {"name": "a", "namespace": "ns"}, "spec": {}})

    assert [dict(request.query) for request in transport.asked] == [{"fieldValidation": "Strict", "dryRun": "All"}]


def test_what_pods_use_is_as_the_metrics_server_says() -> None:
    """Cores as percent of one, memory in bytes, together for several; nobody counts processes."""
    transport = FakeTransport()
    rows = [
        {"metadata": {"name": name, "namespace": "ns"}, "containers": [{"usage": {"cpu": "250m", "memory": "2Mi"}}]}
        for name in ("a", "b")
    ]
    transport.on("GET /apis/metrics.k8s.io/v1beta1/pods", answer(200, {"items": rows}))
    reading = MetricsMeter(api_of(transport), "").read()

    assert reading.of([pod("a", 1), pod("b", 1)]) == Used(cpu_percent=50.0, memory_bytes=4 * 2**20)
    assert reading.of([pod("c", 1)]) == Used()


def test_without_a_metrics_server_that_is_said_and_nothing_known() -> None:
    """Once, however often one looks."""
    transport = FakeTransport()
    transport.on("GET /apis/metrics.k8s.io/v1beta1/pods", answer(404))
    meter = MetricsMeter(api_of(transport), "")

    assert [meter.read().of([pod("a", 1)]) for _ in range(2)] == [Used()] * 2
    assert meter.remark == "CPU and memory are not known: the cluster has no metrics-server"
    assert len(transport.asked) == 1


def test_a_page_in_the_place_of_the_metrics_server_is_no_reading() -> None:
    """What stands before an API server may answer for it."""
    transport = FakeTransport()
    transport.on("GET /apis/metrics.k8s.io/v1beta1/pods", Answer(status=200, body=b"<html>please log in</html>"))
    meter = MetricsMeter(api_of(transport), "")

    assert meter.read().of([pod("a", 1)]) == Used()
    assert "something else answers" in meter.remark


def test_a_metrics_server_that_is_down_hides_nothing_else() -> None:
    """Its API is known and answers 503: that is said, and it is asked again a minute later, not at every look."""
    transport, time = FakeTransport(), FakeTime()
    used = {"metadata": {"name": "a", "namespace": "ns"}, "containers": [{"usage": {"cpu": "1", "memory": "1Ki"}}]}
    down = refused(503, "ServiceUnavailable", "the server is currently unable to handle the request")
    transport.on("GET /apis/metrics.k8s.io/v1beta1/pods", down)
    meter = MetricsMeter(api_of(transport, time), "", clock=time.clock)

    assert [meter.read().of([pod("a", 1)]) for _ in range(2)] == [Used()] * 2
    assert meter.remark == (
        "CPU and memory are not known: the cluster's metrics-server does not answer "
        "(503: the server is currently unable to handle the request)"
    )
    assert (len(transport.asked), time.slept) == (1, [])

    transport.on("GET /apis/metrics.k8s.io/v1beta1/pods", answer(200, {"items": [used]}))
    time.sleep(60)
    assert meter.read().of([pod("a", 1)]) == Used(cpu_percent=100.0, memory_bytes=1024)
    assert meter.remark == ""


def test_keys_of_another_namespace_are_asked_for() -> None:
    """What no watch tells of."""
    transport = FakeTransport()
    transport.on(PODS, listed(5))
    transport.on("GET /api/v1/namespaces/other/pods/a", answer(200, pod("a", 4)))
    store = LiveStore(KubeStore(api_of(transport), Scope(namespaces=("ns",), watched=("Pod",))))
    store.revision()

    assert store.get("Pod", "other", "a")["metadata"]["name"] == "a"
    assert Key("Pod", "ns", "a") not in store.snapshot("Pod")
    store.close()

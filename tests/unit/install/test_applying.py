"""Documents are applied in order, each told of; what is missing is said before anything is changed."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from scheduler_core.errors import Conflict, InvalidValue, NotFound
from tests.unit.kube.fake import FakeTransport, answer, api_of, refused
from voda_flows.install.applying import Applied, Manner, apply, ordered
from voda_flows.kube.transport import APPLY_PATCH, Answer, Request
from voda_flows.objects import Key, Object

ARGO = "/apis/argoproj.io/v1alpha1"
CRON = f"{ARGO}/namespaces/voda/cronworkflows/voda-scheduler"


def document(kind: str, name: str, namespace: str = "", **more: object) -> Object:
    """A document as an overlay has it."""
    place = {"namespace": namespace} if namespace else {}
    return {"apiVersion": "v1", "kind": kind, "metadata": {"name": name, **place}, **more}


NAMESPACE = document("Namespace", "voda")
CONFIG = document("ConfigMap", "voda-config", "voda", data={})
SCHEDULER = document("CronWorkflow", "voda-scheduler", "voda", spec={"workflowSpec": {"entrypoint": "scheduler"}})


def made(status: int) -> Callable[[Request], Answer]:
    """An answer to an apply: the document, as the server keeps it."""

    def reply(request: Request) -> Answer:
        body = json.loads(request.body or "")
        body["metadata"] |= {"uid": "u", "resourceVersion": "2", "managedFields": []}
        return answer(status, body)

    return reply


def created(request: Request) -> Answer:
    """An answer of a server in which nothing is yet."""
    return made(201)(request) if request.method == "PATCH" else answer(200, {"items": [], "metadata": {}})


def cluster(*namespaces: str) -> FakeTransport:
    """An API server with Argo, these namespaces, and nothing of Voda."""
    transport = FakeTransport(otherwise=answer(200, {"items": [], "metadata": {}}))
    items = [{"metadata": {"name": name}} for name in namespaces]
    transport.on("GET /api/v1/namespaces", answer(200, {"items": items, "metadata": {}}))
    return transport


def changes(transport: FakeTransport) -> list[Request]:
    """What was asked beyond reading."""
    return [request for request in transport.asked if request.method != "GET"]


def test_documents_are_applied_after_those_that_they_name() -> None:
    """The namespace first, the scheduler last; each by server-side apply, strictly, as ``voda``."""
    transport = cluster()
    transport.otherwise = created

    done = list(apply(api_of(transport), [SCHEDULER, CONFIG, NAMESPACE], Manner()))

    assert done == [
        Applied(key=Key("Namespace", "", "voda"), what="created"),
        Applied(key=Key("ConfigMap", "voda", "voda-config"), what="created"),
        Applied(key=Key("CronWorkflow", "voda", "voda-scheduler"), what="created"),
    ]
    assert [(request.path, request.content_type) for request in changes(transport)] == [
        ("/api/v1/namespaces/voda", APPLY_PATCH),
        ("/api/v1/namespaces/voda/configmaps/voda-config", APPLY_PATCH),
        (CRON, APPLY_PATCH),
    ]
    assert changes(transport)[0].query == {"fieldValidation": "Strict", "fieldManager": "voda", "force": "false"}


@pytest.mark.parametrize(("before", "what"), [({}, "unchanged"), ({"policy": "fifo"}, "changed")])
def test_what_was_there_is_told_apart_from_what_changed(before: Object, what: str) -> None:
    """By its content: versions and who set what say nothing."""
    transport = cluster("voda")
    old = {**CONFIG, "data": before, "metadata": {**CONFIG["metadata"], "uid": "u", "resourceVersion": "1"}}
    transport.on("GET /api/v1/namespaces/voda/configmaps", answer(200, {"items": [old], "metadata": {}}))
    transport.on("PATCH /api/v1/namespaces/voda/configmaps/voda-config", made(200))

    (done,) = apply(api_of(transport), [CONFIG], Manner())

    assert done.what == what


def test_a_dry_run_asks_the_server_where_it_can() -> None:
    """In a namespace that is yet to be made nothing can be asked; that is said."""
    transport = cluster()
    transport.on("PATCH /api/v1/namespaces/voda", made(201))

    done = list(apply(api_of(transport), [NAMESPACE, CONFIG], Manner(is_trial=True, is_forced=True)))

    assert [applied.what for applied in done] == ["created", "not checked"]
    assert [request.query for request in changes(transport)] == [
        {"fieldValidation": "Strict", "fieldManager": "voda", "force": "true", "dryRun": "All"}
    ]


def test_a_namespace_that_is_missing_is_said_before_anything_is_changed() -> None:
    """With the command that makes it."""
    transport = cluster("default")

    with pytest.raises(NotFound, match="namespace 'voda': expected it to exist, it does not; `kubectl create namesp"):
        list(apply(api_of(transport), [CONFIG], Manner()))

    assert changes(transport) == []


def test_a_cluster_without_argo_is_said_before_anything_is_changed() -> None:
    """The API server does not know its kinds."""
    transport = cluster("voda")
    transport.on(f"GET {ARGO}/workflowtemplates", refused(404, "NotFound", "the server could not find it"))

    with pytest.raises(NotFound, match="install Argo Workflows"):
        list(apply(api_of(transport), [CONFIG], Manner()))

    assert changes(transport) == []


def test_what_somebody_else_has_set_is_not_overwritten() -> None:
    """Server-side apply says who it was; the message says the two ways on."""
    transport = cluster("voda")
    theirs = 'Apply failed with 1 conflict: conflict with "kubectl-edit": .spec.schedules'
    transport.on(f"PATCH {CRON}", refused(409, "Conflict", theirs))

    with pytest.raises(Conflict) as conflict:
        list(apply(api_of(transport), [SCHEDULER], Manner()))

    assert str(conflict.value) == (
        f"apply CronWorkflow voda/voda-scheduler: {theirs}\n"
        "somebody else has set this otherwise: keep it so in an overlay of your own, or take it over with --force"
    )


def test_a_kind_that_no_installation_has_is_refused() -> None:
    """An overlay of somebody's own may hold anything; only what is known is applied."""
    with pytest.raises(InvalidValue, match=r"expected kinds out of Namespace, .*, got 'Ingress'"):
        ordered([document("Ingress", "a", "voda")])

"""The scheduler is started where none runs, and anew where those that run are of an earlier installation."""

from __future__ import annotations

import copy
import json

import pytest

from tests.unit.install.server import Server
from voda_flows.install.applying import Manner, apply
from voda_flows.install.overlays import Wanted, documents
from voda_flows.install.starting import Started, start_scheduler
from voda_flows.objects import CRON_LABEL, Object

RUNS = "/apis/argoproj.io/v1alpha1/namespaces/voda/workflows"
CRON = "/apis/argoproj.io/v1alpha1/namespaces/voda/cronworkflows/voda-scheduler"
DOCUMENTS = documents(Wanted())


@pytest.fixture
def server() -> Server:
    """A cluster with Voda, whose scheduler was never started."""
    made = Server()
    list(apply(made.api, DOCUMENTS, Manner()))
    return made


def run(server: Server, name: str, phase: str, **spec: object) -> Object:
    """A run of the scheduler, as Argo keeps it: what is empty is written out, its controller's defaults are there."""
    made = copy.deepcopy(server.objects[CRON]["spec"]["workflowSpec"])
    made |= {"arguments": {}, "podSpecPatch": "{}", **spec}
    (template,) = made["templates"]
    template |= {"inputs": {}, "outputs": {}}
    template["container"]["name"] = ""
    template["container"]["resources"]["limits"]["memory"] = "2048Mi"
    metadata = {"name": name, "namespace": "voda", "uid": name, "labels": {CRON_LABEL: "voda-scheduler"}}
    body = {"kind": "Workflow", "metadata": metadata, "spec": made, "status": {"phase": phase}}
    server.objects[f"{RUNS}/{name}"] = body
    return body


def of_image(body: Object, image: str) -> None:
    """The run is one of another image."""
    body["spec"]["templates"][0]["container"]["image"] = image


def deeds(server: Server) -> list[tuple[str, str, object]]:
    """What was done after the installation: method, name, and the reason of a patch."""
    found = [request for request in server.changes() if request.path.startswith(RUNS)]
    return [
        (each.method, each.path.removeprefix(RUNS), (json.loads(each.body or "").get("spec") or {}).get("shutdown"))
        for each in found
    ]


def test_the_first_run_is_the_cron_workflows_own(server: Server) -> None:
    """Owned by it and labelled, so that its history and ``argo cron`` know of it; what has ended does not count."""
    of_image(run(server, "old", "Failed"), "voda:0")

    started = start_scheduler(server.api, DOCUMENTS)

    (made,) = [body for path, body in server.objects.items() if path.startswith(RUNS) and path != f"{RUNS}/old"]
    assert started == Started(run=made["metadata"]["name"])
    assert made["metadata"]["name"].startswith("voda-scheduler-")
    assert made["metadata"]["labels"] == {CRON_LABEL: "voda-scheduler"}
    assert [owner["uid"] for owner in made["metadata"]["ownerReferences"]] == [server.objects[CRON]["metadata"]["uid"]]
    assert made["spec"] == server.objects[CRON]["spec"]["workflowSpec"]


@pytest.mark.parametrize("phase", ["", "Pending", "Running"])
def test_a_run_that_goes_on_is_enough(server: Server, phase: str) -> None:
    """Installing again starts no second scheduler: how Argo writes a run is no change, nor what its defaults add."""
    run(server, "live", phase)

    assert start_scheduler(server.api, DOCUMENTS) is None
    assert deeds(server) == []


def test_runs_of_an_earlier_version_are_ended_and_one_is_started(server: Server) -> None:
    """They have the old pod in them, which their retries would start again; those that wait for its image too."""
    of_image(run(server, "at-work", "Running"), "voda:0")
    of_image(run(server, "waits", "Pending"), "none/voda:0")
    of_image(run(server, "ended", "Succeeded"), "voda:0")
    run(server, "new", "Running")

    started = start_scheduler(server.api, DOCUMENTS)

    assert started == Started(run=started.run if started else "", ended=("at-work", "waits"))
    assert deeds(server) == [
        ("PATCH", "/at-work", "Terminate"),
        ("DELETE", "/at-work", None),
        ("PATCH", "/waits", "Terminate"),
        ("DELETE", "/waits", None),
        ("POST", "", None),
    ]
    assert {"ended", "new"} <= {path.rpartition("/")[2] for path in server.objects if path.startswith(RUNS)}


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("templates", 0, "container", "env", 0, "value"), "x"),
        (("templates", 0, "container", "resources", "requests", "cpu"), "300m"),
        (("templates", 0, "nodeSelector"), {"disk": "fast"}),
        (("serviceAccountName",), "another"),
    ],
)
def test_whatever_of_the_pod_has_changed_makes_a_run_old(
    server: Server, path: tuple[str | int, ...], value: object
) -> None:
    """Settings of the pod are of no use before it is made anew."""
    place = run(server, "live", "Running")["spec"]
    for part in path[:-1]:
        place = place[part]
    place[path[-1]] = value

    started = start_scheduler(server.api, DOCUMENTS)

    assert started is not None
    assert started.ended == ("live",)


@pytest.mark.parametrize("going", [{"metadata": {"deletionTimestamp": "t"}}, {"spec": {"shutdown": "Stop"}}])
def test_a_run_that_is_told_to_end_is_none(server: Server, going: Object) -> None:
    """It will schedule nothing more, and need not be told again."""
    body = run(server, "going", "Running")
    for part, more in going.items():
        body[part] |= more

    started = start_scheduler(server.api, DOCUMENTS)

    assert started == Started(run=started.run if started else "")
    assert [method for method, _, _ in deeds(server)] == ["POST"]


def test_without_a_scheduler_among_the_documents_nothing_is_started(server: Server) -> None:
    """They are for further namespaces."""
    assert start_scheduler(server.api, [body for body in DOCUMENTS if body["kind"] != "CronWorkflow"]) is None
    assert deeds(server) == []

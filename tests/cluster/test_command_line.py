"""Every verb in two worlds: what one says, the other says too; on a cluster it is Argo's controller that acts."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cluster.cluster import Cluster
from tests.cluster.command_lines import CommandLine, local, on_cluster
from tests.contract.argo import engine_world
from tests.unit.local.argo.builders import call, steps
from voda_flows.local.up import down
from voda_flows.objects import Object

NAMESPACE = "words"


@pytest.fixture(scope="module", params=["local", pytest.param("cluster", marks=pytest.mark.cluster)])
def line(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[CommandLine]:
    """The command line in each world in turn."""
    folder = tmp_path_factory.mktemp(str(request.param))
    if request.param == "local":
        home = folder / "home"
        engine_world.begin(home)
        yield local(home, folder)
        down(home, drain_s=0.2)
        return
    cluster: Cluster = request.getfixturevalue("cluster")
    prepare(cluster, NAMESPACE)
    yield on_cluster(cluster.kubeconfig, NAMESPACE, folder)
    cluster.api.delete(f"/api/v1/namespaces/{NAMESPACE}")


def prepare(cluster: Cluster, namespace: str) -> None:
    """A namespace whose pods may say how they ended."""
    cluster.api.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}})
    metadata = {"name": "executor", "namespace": namespace}
    rule = {"apiGroups": ["argoproj.io"], "resources": ["workflowtaskresults"], "verbs": ["create", "patch"]}
    version, group = "rbac.authorization.k8s.io/v1", "rbac.authorization.k8s.io"
    subject = {"kind": "ServiceAccount", "name": "default", "namespace": namespace}
    cluster.api.apply({"apiVersion": version, "kind": "Role", "metadata": metadata, "rules": [rule]})
    cluster.api.apply(
        {
            "apiVersion": version,
            "kind": "RoleBinding",
            "metadata": metadata,
            "roleRef": {"apiGroup": group, "kind": "Role", "name": "executor"},
            "subjects": [subject],
        }
    )


def nodes(workflow: Object) -> dict[str, str]:
    """Phases of a Workflow's nodes by what they are called."""
    return {node["displayName"]: node["phase"] for node in (workflow["status"].get("nodes") or {}).values()}


def test_a_workflow_is_submitted_seen_and_read(line: CommandLine) -> None:
    """Submitted, waited for, listed, got, and what its pod printed; with the same code and the same shapes."""
    path = line.write("greeting", line.pod("say", "echo hello; echo bye"))

    submitted = line.voda("submit", path)
    waited = line.voda("wait", "greeting", "--timeout", "240s")
    listed, got = line.json("list"), line.json("get", "greeting")
    logs = line.voda("logs", "greeting").out.splitlines()

    assert submitted.out == "greeting submitted\n"
    assert (waited.code, waited.err.splitlines()[-1]) == (0, "greeting Succeeded")
    assert (listed["kind"], [body["metadata"]["name"] for body in listed["items"]]) == ("List", ["greeting"])
    assert (got["kind"], got["metadata"]["namespace"], got["status"]["phase"]) == (
        "Workflow",
        line.namespace,
        "Succeeded",
    )
    assert [text for text in logs if "argo=true" not in text] == ["hello", "bye"]


def test_output_is_followed_while_it_comes(line: CommandLine) -> None:
    """From both pods, in order, marked, until the Workflow has ended."""
    line.submit("talk", steps([call("a", "a")], [call("b", "b")]), line.pod("a", "echo one; sleep 2; echo two"),
                line.pod("b", "echo three"))  # fmt: skip

    said = line.voda("logs", "talk", "-f")

    assert said.code == 0, said.err
    assert [text for text in said.out.splitlines() if "argo=true" not in text] == ["a | one", "a | two", "b | three"]


def test_a_failure_is_told_and_retried(line: CommandLine) -> None:
    """What succeeded is kept, what failed runs again; a Workflow that has not failed is no case for it."""
    line.submit("broken", steps([call("good", "good")], [call("bad", "bad")]), line.pod("good", "true"),
                line.pod("bad", "exit 3"))  # fmt: skip
    assert line.wait("broken") == "Failed"
    first = line.json("get", "broken")

    line.submit("fine", line.pod("say", "true"), suspend=True)
    refused = line.voda("retry", "fine")
    retried = line.voda("retry", "broken", "--wait")
    second = line.json("get", "broken")

    times = [{node["displayName"]: node["finishedAt"] for node in each["status"]["nodes"].values()}
             for each in (first, second)]  # fmt: skip
    assert (refused.code, "has not failed" in refused.err) == (4, True), refused.err
    assert (retried.code, retried.out) == (1, "broken retried\n"), retried.err
    assert second["status"]["phase"] == "Failed"
    assert times[0]["good"] == times[1]["good"]
    assert times[0]["bad"] != times[1]["bad"]


def test_a_workflow_is_held_and_goes_on(line: CommandLine) -> None:
    """Suspended it starts nothing; resumed, an open gate takes its defaults."""
    gate = {
        "name": "gate",
        "suspend": {},
        "outputs": {"parameters": [{"name": "word", "valueFrom": {"supplied": {}, "default": "nobody"}}]},
    }
    after = call("say", "say", arguments={"word": "{{steps.gate.outputs.parameters.word}}"})
    say = line.pod("say", "echo {{inputs.parameters.word}}", inputs={"parameters": [{"name": "word"}]})
    line.submit("held", steps([call("gate", "gate")], [after]), gate, say, suspend=True)

    shown = line.voda("list").out
    resumed = line.voda("resume", "held")
    line.until("held", lambda body: nodes(body).get("gate") == "Running")
    suspended = line.voda("suspend", "held")
    again = line.voda("resume", "held")
    phase = line.wait("held")

    assert "(suspended)" in next(row for row in shown.splitlines() if row.startswith("held"))
    assert [said.out for said in (resumed, suspended, again)] == [
        "held resumed\n",
        "held suspended\n",
        "held resumed\n",
    ]
    assert phase == "Succeeded"
    assert "nobody" in line.voda("logs", "held").out


@pytest.mark.parametrize(("verb", "done"), [("stop", "stopped"), ("terminate", "terminated")])
def test_a_workflow_is_ended(line: CommandLine, verb: str, done: str) -> None:
    """Stopped, its exit handler runs; terminated, it does not."""
    name = f"endless-{verb}"
    waits = line.pod("wait", "trap 'exit 1' TERM; sleep 600 & wait")
    line.submit(name, waits, line.pod("bye", "true"), onExit="bye")
    line.until(name, lambda body: "Running" in nodes(body).values())

    said = line.voda(verb, name)
    phase = line.wait(name)
    late = line.voda(verb, name)

    assert (said.code, said.out) == (0, f"{name} {done}\n"), said.err
    assert phase == "Failed"
    assert line.json("get", name)["status"]["message"] == f"Stopped with strategy '{verb.capitalize()}'"
    assert (f"{name}.onExit" in nodes(line.json("get", name))) is (verb == "stop")
    assert late.code == 4, late.err


def test_a_workflow_is_submitted_anew(line: CommandLine) -> None:
    """Under a new name, with where it is from."""
    said = line.voda("resubmit", "greeting", "--wait")
    name = said.out.split()[0]

    made = line.json("get", name)

    assert (said.code, said.out) == (0, f"{name} created from greeting\n"), said.err
    assert name.startswith("greeting-")
    assert made["metadata"]["labels"]["workflows.argoproj.io/resubmitted-from-workflow"] == "greeting"
    assert made["status"]["phase"] == "Succeeded"


def test_a_schedule_is_kept_run_and_deleted(line: CommandLine) -> None:
    """Submitted, listed, run by hand, changed, and gone with its runs."""
    spec = {"entrypoint": "say", "templates": [line.pod("say", "echo nightly")], **line.spec}
    cron = {
        "apiVersion": "argoproj.io/v1alpha1",
        "kind": "CronWorkflow",
        "metadata": {"name": "nightly"},
        "spec": {"schedules": ["0 3 * * *"], "suspend": True, "workflowSpec": spec},
    }
    path = line.write_document(cron)

    created, unchanged = line.voda("submit", path), line.voda("submit", path)
    (listed,) = line.json("cron", "list")["items"]
    ran = line.voda("cron", "run", "nightly", "--wait")
    deleted = line.voda("cron", "delete", "nightly")

    assert (created.out, unchanged.out) == ("nightly created\n", "nightly unchanged\n"), created.err + unchanged.err
    assert listed == {
        "name": "nightly", "namespace": line.namespace, "schedules": ["0 3 * * *"], "timezone": "Etc/UTC",
        "last": None, "next": None, "active": [], "suspended": True, "message": "",
    }  # fmt: skip
    assert (ran.code, ran.err.splitlines()[-1].split()[1]) == (0, "Succeeded"), ran.err
    assert deleted.out == "nightly deleted\n"


def test_what_is_wrong_is_refused_before_anything_is_made(line: CommandLine) -> None:
    """A field that does not exist, a template that is not there, a name that is taken; by code and place."""
    typo = line.write("typo", {**line.pod("say", "true"), "retrystrategy": {}})
    missing = line.write("missing", steps([call("a", "nothing")]))
    taken = line.write("greeting", line.pod("say", "true"))

    said = [line.voda("submit", path) for path in (typo, missing, taken)] + [line.voda("lint", typo)]

    assert [each.code for each in said] == [2, 2, 4, 2]
    assert all("typo.yaml:" in each.err and "retrystrategy" in each.err for each in (said[0], said[3]))
    assert "nothing" in said[1].err
    assert {"typo", "missing"}.isdisjoint(line.voda("list", "-o", "name").out.split())


@pytest.mark.parametrize("verb", ["get", "logs", "wait", "stop", "retry", "delete", "explain", "events"])
def test_what_is_not_there_is_not_found(line: CommandLine, verb: str) -> None:
    """With the nearest name that there is."""
    said = line.voda(verb, "greetinh")

    assert (said.code, "greeting" in said.err) == (3, True), said.err


def test_tables_for_programs_have_the_same_form(line: CommandLine) -> None:
    """What scripts read is there in both worlds; what is not known is null."""
    top, queue = line.json("top", "--once"), line.json("queue")
    shown = {
        "nodes": line.json("nodes")["kind"],
        "top": sorted(top),
        "node": sorted(top["nodes"][0]),
        "queue": (sorted(queue), queue["items"], sorted(queue["queues"][0])),
        "events": line.json("events"),
        "report": sorted(line.json("report")),
    }

    assert shown == {
        "nodes": "List",
        "top": ["jobs", "nodes", "time"],
        "node": ["cpu_percent", "gpus", "memory_bytes", "name", "phase", "processes", "slots"],
        "queue": (
            ["items", "queues"],
            [],
            ["borrowedGpus", "gpuType", "mostGpus", "nominalGpus", "queue", "usedGpus", "waitingGpus", "waitingJobs"],
        ),
        "events": {"items": []},
        "report": ["busy", "from_s", "jobs", "nodes", "slots", "statistics", "taken_s", "to_s", "utilisation",
                   "version", "waiting"],
    }  # fmt: skip


def test_a_workflow_is_deleted(line: CommandLine) -> None:
    """And is gone when the command returns; another one with a label stays."""
    said = line.voda("delete", "talk", "broken")

    names = line.voda("list", "-o", "name").out.split()
    assert (said.code, said.out) == (0, "talk deleted\nbroken deleted\n"), said.err
    assert {"talk", "broken"}.isdisjoint(names)
    assert "greeting" in names


@pytest.mark.cluster
def test_output_that_is_gone_is_said_to_be(cluster: Cluster, tmp_path: Path) -> None:
    """A deleted pod takes its output along; on a cluster nobody keeps it."""
    prepare(cluster, f"{NAMESPACE}-gone")
    line = on_cluster(cluster.kubeconfig, f"{NAMESPACE}-gone", tmp_path)
    line.submit("lost", line.pod("say", "echo hello"))
    line.wait("lost")
    pods = f"/api/v1/namespaces/{line.namespace}/pods"
    for pod in cluster.api.get(pods)["items"]:
        cluster.api.delete(f"{pods}/{pod['metadata']['name']}")
        cluster.api.wait_until_gone(pods, pod["metadata"]["name"])

    said = line.voda("logs", "lost")
    cluster.api.delete(f"/api/v1/namespaces/{line.namespace}")

    assert (said.code, said.out) == (3, "")
    assert "the output of lost is gone with its pod" in said.err

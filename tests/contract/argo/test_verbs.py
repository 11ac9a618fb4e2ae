"""What people do to Workflows, on the real store and engine with small processes: what each verb leaves behind."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from scheduler_core.errors import Conflict, NotFound
from tests.contract.argo import engine_world
from tests.contract.argo.elastic_life import elastic_world, grant, up
from tests.contract.argo.engine_world import NAMESPACE, EngineWorld
from tests.contract.argo.world import ENDED, World, finish, is_ready_to_end, is_up
from tests.unit.local.argo.builders import call, shell, steps, workflow
from voda_flows import operations
from voda_flows.local.argo import operate
from voda_flows.local.nodes import held_slots
from voda_flows.local.store import LocalStore
from voda_flows.local.up import down, shipped_templates
from voda_flows.objects import POD_ENDED, Object


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A home with its engine that the tests share."""
    folder = tmp_path_factory.mktemp("verbs")
    engine_world.begin(folder)
    yield folder
    down(folder, drain_s=0.2)


def submitted(home: Path, name: str, *templates: Object, **spec: Any) -> EngineWorld:
    """A Workflow of that name."""
    return EngineWorld({**workflow(*templates, **spec), "metadata": {"name": name}}, home)


def kept(home: Path, name: str) -> Object:
    """The Workflow as it is kept."""
    return LocalStore(home).get("Workflow", NAMESPACE, name)


def nodes(world: World) -> dict[str, Object]:
    """Nodes by whole name."""
    return {node["name"]: node for node in world.status.get("nodes", {}).values()}


def phase(world: World, name: str) -> str:
    """The phase of a node, empty where there is none."""
    return str(nodes(world).get(name, {}).get("phase", ""))


def processes_of(pod: Object) -> list[int]:
    """Processes that belong to a pod."""
    mark = f"VODA_POD={pod['metadata']['uid']}".encode()
    found = []
    for path in Path("/proc").glob("[0-9]*"):
        try:
            if mark in (path / "environ").read_bytes().split(b"\0"):
                found.append(int(path.name))
        except OSError:
            continue
    return [pid for pid in found if pid != os.getpid()]


def holds_slots(pods: dict[str, Object]) -> bool:
    """Whether some pod that has not ended holds slots."""
    return any(held_slots(pod) for pod in pods.values() if (pod.get("status") or {}).get("phase") not in POD_ENDED)


def at_work(world: World) -> bool:
    """Whether there are pods, and all run and are ready to be asked to end."""
    return bool(world.pods) and all(is_up(pod) and is_ready_to_end(world, name) for name, pod in world.pods.items())


@pytest.mark.parametrize(("verb", "is_run"), [("stop", True), ("terminate", False)])
def test_exit_handler_runs_after_a_stop_only(home: Path, verb: str, *, is_run: bool) -> None:
    """Both end the Workflow as Failed and its processes with it."""
    mark = home / f"mark-{verb}"
    world = submitted(home, f"exits-{verb}", steps([call("a")]), shell(command="sleep 60"),
                      shell("bye", f"touch {mark}"), onExit="bye")  # fmt: skip
    world.until(lambda: at_work(world))
    pods = list(world.pods.values())
    if verb == "stop":
        world.operate(operate.stop)
    else:
        operations.terminate(LocalStore(home), kept(home, "exits-terminate"))
    status = finish(world)
    world.until(lambda: not any(processes_of(pod) for pod in pods))

    assert (status["phase"], status["message"]) == ("Failed", f"Stopped with strategy '{verb.capitalize()}'")
    assert mark.exists() is is_run
    assert any(name.endswith(".onExit") for name in nodes(world)) is is_run


def test_retry_runs_what_failed_and_nothing_else(home: Path) -> None:
    """The step before is not run again, the failed one is, what follows is run at last, and the exit handler again."""
    record, cure = home / "retry-record", home / "retry-cure"
    world = submitted(
        home, "retried", steps([call("ok", "ok")], [call("bad", "bad")], [call("last", "last")]),
        shell("ok", f"echo ok >> {record}"), shell("bad", f"echo bad >> {record}; test -e {cure}"),
        shell("last", f"echo last >> {record}"), shell("bye", f"echo bye >> {record}"), onExit="bye",
    )  # fmt: skip
    assert finish(world)["phase"] == "Failed"
    first = {name: pod["metadata"]["uid"] for name, pod in world.pods.items()}
    cure.touch()

    operations.retry(LocalStore(home), kept(home, "retried"))
    status = finish(world)

    assert (status["phase"], status.get("message")) == ("Succeeded", None)
    assert record.read_text().split() == ["ok", "bad", "bye", "bad", "last", "bye"]
    again = {name: pod["metadata"]["uid"] for name, pod in world.pods.items()}
    assert {name.rsplit("-", 2)[1] for name, uid in first.items() if again[name] == uid} == {"ok"}


def test_retry_at_once_after_a_termination_waits_for_the_old_process(home: Path) -> None:
    """While the old pod still ends its name is taken: the new one comes after it, never beside it."""
    record = home / "slow-record"
    slow = f"echo begin >> {record}; trap 'sleep 1; echo end >> {record}; exit 1' TERM; test -e {home}/slow-cure || sleep 60 & wait"  # noqa: E501
    world = submitted(home, "slow", shell(command=slow))
    world.until(lambda: at_work(world))
    operations.terminate(LocalStore(home), kept(home, "slow"))
    assert finish(world)["phase"] == "Failed"
    (home / "slow-cure").touch()

    operations.retry(LocalStore(home), kept(home, "slow"))

    assert finish(world)["phase"] == "Succeeded"
    assert record.read_text().split() == ["begin", "end", "begin"]


def test_what_still_runs_is_not_retried(home: Path) -> None:
    """The refusal changes nothing."""
    world = submitted(home, "busy", shell(command="sleep 60"))
    world.until(lambda: at_work(world))
    before, pods = kept(home, "busy"), {name: pod["metadata"]["uid"] for name, pod in world.pods.items()}

    with pytest.raises(Conflict, match="cannot retry what has not failed, it is Running"):
        operations.retry(LocalStore(home), before)

    after = kept(home, "busy")  # its status is the engine's, which may be writing to it
    assert after["spec"] == before["spec"]
    assert list(after["status"]["nodes"]) == list(before["status"]["nodes"])
    assert {name: pod["metadata"]["uid"] for name, pod in world.pods.items() if is_up(pod)} == pods
    world.close()


def test_resubmitted_workflow_lives_a_life_of_its_own(home: Path) -> None:
    """The old one stays as it is; the new one runs from the beginning, with labels and annotations of the old."""
    world = submitted(home, "again", shell(command="test {{workflow.name}} != again"))
    old = finish(world) and kept(home, "again")
    new = operations.resubmit(LocalStore(home), old)
    name = new["metadata"]["name"]
    world.until(lambda: kept(home, name).get("status", {}).get("phase") in ENDED)

    assert (old["status"]["phase"], kept(home, name)["status"]["phase"]) == ("Failed", "Succeeded")
    assert kept(home, "again") == old
    assert new["metadata"]["labels"] == {"workflows.argoproj.io/resubmitted-from-workflow": "again"}


def test_suspended_workflow_finishes_what_runs_and_starts_nothing(home: Path) -> None:
    """Until it is resumed; then it goes on to its end."""
    gate = home / "suspend-gate"
    world = submitted(home, "paused", steps([call("a", "waits")], [call("b")]),
                      shell("waits", f"while ! test -e {gate}; do sleep 0.05; done"), shell())  # fmt: skip
    world.until(lambda: at_work(world))
    store = LocalStore(home)
    operations.suspend(store, kept(home, "paused"))
    gate.touch()
    world.until(lambda: phase(world, "paused[0].a") == "Succeeded")
    store.wait(store.revision(), 0.5)  # what must not happen has no event: as long as two rounds of the engine

    assert phase(world, "paused[1].b") == ""
    operations.resume(store, kept(home, "paused"))
    assert finish(world)["phase"] == "Succeeded"


def test_deleted_workflow_leaves_nothing(home: Path) -> None:
    """Its pods are ended, and they, their folders, and what it owns are gone."""
    stubborn = shell(command="trap : TERM; while :; do sleep 60 & wait; done",
                     podSpecPatch='{"terminationGracePeriodSeconds": 1}')  # fmt: skip
    world = submitted(home, "deleted", steps([call("a"), call("b")]), stubborn)
    world.until(lambda: len(world.pods) == 2 and at_work(world))
    pods, store, made = list(world.pods.values()), LocalStore(home), kept(home, "deleted")
    owner = {"apiVersion": "v1", "kind": "Workflow", "name": "deleted", "uid": made["metadata"]["uid"]}
    for kind in ("Secret", "ConfigMap"):
        store.create({"kind": kind, "metadata": {"name": f"of-{kind.lower()}", "namespace": NAMESPACE,
                                                 "ownerReferences": [owner]}})  # fmt: skip
    store.delete("Workflow", NAMESPACE, "deleted")
    world.until(lambda: all(found["metadata"]["name"] != "deleted" for found in store.list("Workflow", NAMESPACE)))

    assert world.pods == {}
    assert (store.list("Secret", NAMESPACE), store.list("ConfigMap", NAMESPACE)) == ([], [])
    world.until(lambda: not any(processes_of(pod) for pod in pods))
    assert [pod for pod in pods if (home / "pods" / pod["metadata"]["uid"]).exists()] == []
    with pytest.raises(NotFound):
        operations.suspend(store, made)


def test_resume_of_a_queued_job_leads_to_a_new_gate_and_no_pods(home: Path) -> None:
    """The shipped template's gate has harmless defaults: who resumes a job that waits gives it no GPUs."""
    store = LocalStore(home)
    for template in shipped_templates():
        if template["kind"] == "WorkflowTemplate":
            store.create({**template, "metadata": {**template["metadata"], "namespace": NAMESPACE}})
    body: Object = {
        "apiVersion": "argoproj.io/v1alpha1",
        "kind": "Workflow",
        "metadata": {"name": "queued"},
        "spec": {"workflowTemplateRef": {"name": "voda-elastic-job"},
                 "arguments": {"parameters": [{"name": "command", "value": "true"}]}},
    }  # fmt: skip
    world = EngineWorld(body, home)
    first, second = "queued[0].segment[0].gate", "queued[0].segment[1].requeue[0].gate"
    world.until(lambda: phase(world, first) == "Running")
    operations.resume(store, kept(home, "queued"))
    world.until(lambda: phase(world, second) == "Running")

    found = nodes(world)
    assert found[first]["outputs"] == {"parameters": [{"name": "grant", "value": "none"},
                                                      {"name": "workers", "value": "[]"}]}  # fmt: skip
    assert (world.pods, [node["name"] for node in found.values() if node["type"] == "Pod"]) == ({}, [])
    world.close()


def test_terminated_training_job_leaves_no_process_and_frees_its_slots(tmp_path: Path) -> None:
    """Driver and workers end, whatever gates are open, and nothing comes after them."""
    with elastic_world("engine", tmp_path) as world:
        world.until(lambda: bool(nodes(world)))
        grant(world, ("w0", "n0"), ("w1", "n0"))
        world.until(lambda: len(up(world, "worker")) == 2 and len(up(world, "driver")) == 1 and at_work(world))
        pods = world.pods
        assert holds_slots(pods)
        operations.terminate(LocalStore(tmp_path), kept(tmp_path, "elastic-job"))
        status = finish(world)
        world.until(lambda: not any(processes_of(pod) for pod in pods.values()) and not holds_slots(world.pods))

        assert (status["phase"], status["message"]) == ("Failed", "Stopped with strategy 'Terminate'")
        assert sorted(world.pods) == sorted(pods)
        assert {node["phase"] for node in nodes(world).values() if node["type"] == "Suspend"} <= {"Succeeded", "Failed"}


def test_workflow_goes_when_its_time_to_live_is_over(home: Path) -> None:
    """With its pods, as if somebody had deleted it."""
    world = submitted(home, "short-lived", shell(), ttlStrategy={"secondsAfterCompletion": 1})
    store = LocalStore(home)
    world.until(lambda: all(found["metadata"]["name"] != "short-lived" for found in store.list("Workflow", NAMESPACE)))

    assert world.pods == {}

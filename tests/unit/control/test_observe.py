"""An observation is what objects and drivers say now, never older than our last write; a bad object hides nobody."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import pytest

from scheduler_core.errors import Conflict, NotFound
from scheduler_core.model.job import JobPhase, WorkerPhase
from scheduler_core.model.plan import Announce, Evict, Grant, Grow, NewWorker, Publish
from tests.unit.control.world import World
from voda_flows.config import Settings
from voda_flows.control.enforce import StoreEnforcer
from voda_flows.control.observe import StoreObserver
from voda_flows.control.reports import DriverStatus
from voda_flows.local.store import LocalStore
from voda_flows.objects import Key, Object
from voda_flows.workflows.parameters import JOB_TEMPLATE


@pytest.fixture
def world(tmp_path: Path) -> World:
    """Two nodes with two GPUs each."""
    return World(tmp_path)


def call(name: str, **inputs: str) -> Object:
    """A step that calls the job's template."""
    parameters = {"command": "x", "job-name": name} | {key.replace("_", "-"): text for key, text in inputs.items()}
    return {
        "name": name,
        "templateRef": {"name": JOB_TEMPLATE, "template": "job"},
        "arguments": {"parameters": [{"name": key, "value": text} for key, text in parameters.items()]},
    }


def steps(*groups: list[Object]) -> Object:
    """A Workflow's spec of its own."""
    return {"entrypoint": "main", "templates": [{"name": "main", "steps": list(groups)}]}


def test_several_training_steps_are_several_jobs(world: World) -> None:
    """Each call of the template is a job of its own, with its own gate and pods."""
    uid = world.submit("pipe", steps([call("a"), call("b", max_gpus="2")]))["metadata"]["uid"]
    observed = world.observer.observe()

    assert [job.id for job in observed.jobs] == [f"{uid}/a", f"{uid}/b"]
    assert {type(action) for action in world.cycle()} == {Grant}
    assert [job.phase for job in world.observer.observe().jobs] == [JobPhase.STARTING, JobPhase.STARTING]
    assert len({world.view(name).driver_uid for name in ("a", "b")}) == 2


def test_a_second_job_of_the_same_name_is_refused(world: World) -> None:
    """The first one goes on; the second fails at its gate with the reason."""
    first, second = call("a"), call("a") | {"name": "twice"}
    world.submit("pipe", steps([first, second]))
    world.cycle()
    gates = {node["name"]: node for node in world.nodes().values() if node.get("templateName") == "gate"}

    assert world.job("a").phase is JobPhase.STARTING
    assert gates["pipe[0].twice[0].segment[0].gate"]["phase"] == "Failed"
    assert "got 'a' twice" in gates["pipe[0].twice[0].segment[0].gate"]["message"]


def test_a_misspelt_parameter_is_found_at_the_gate(world: World) -> None:
    """Argo drops an argument that the template does not take; the job would run with the default."""
    world.submit("digits", max_gpu="4")
    world.cycle()
    (gate,) = [node for node in world.nodes().values() if node["type"] == "Suspend"]

    assert gate["message"].endswith("got 'max-gpu'; did you mean 'max-gpus'?")


def test_pods_of_others_leave_their_gpus_out(world: World) -> None:
    """A pod that is no worker of ours holds its GPUs until its processes are gone."""
    pod = {
        "kind": "Pod",
        "metadata": {"name": "foreign", "namespace": "other"},
        "spec": {
            "nodeName": "n0",
            "containers": [{"name": "main", "resources": {"limits": {"nvidia.com/gpu": "1"}}}],
        },
        "status": {"phase": "Running"},
    }
    world.store.create(pod)

    assert world.observer.observe().free_gpus() == {"n0": 1, "n1": 2}
    world.store.merge_patch("Pod", "other", "foreign", {"status": {"phase": "Succeeded"}})
    assert world.observer.observe().free_gpus() == {"n0": 2, "n1": 2}


def test_granted_workers_hold_gpus_before_their_pods_are_seen(world: World) -> None:
    """Between a grant and its pods, the GPUs are promised."""
    world.submit("digits", min_gpus="2", max_gpus="2")
    view = world.view()
    workers = (NewWorker(id="w0", node="n0", gpus=1), NewWorker(id="w1", node="n1", gpus=1))
    world.enforcer.enforce(Grant(job_id=view.id, segment=0, workers=workers))
    observed = world.observer.observe()

    assert [worker.phase for worker in observed.jobs[0].workers] == [WorkerPhase.GRANTED, WorkerPhase.GRANTED]
    assert observed.free_gpus() == {"n0": 1, "n1": 1}


class Behind(LocalStore):
    """A store whose snapshots show what was there when the test said so."""

    shown: Mapping[Key, Object] | None = None

    def snapshot(self, kind: str) -> dict[Key, Object]:
        """What was there."""
        return dict(self.shown) if self.shown and kind == "Workflow" else super().snapshot(kind)


def test_an_observation_is_not_older_than_our_last_write(world: World) -> None:
    """Where the store shows what was before our write, the write's answer counts."""
    world.submit("digits")
    store = Behind(world.store.home)
    observer = StoreObserver(store, Settings(), world.drivers)
    (job,) = observer.observe().jobs
    store.shown = store.snapshot("Workflow")
    StoreEnforcer(store, observer).enforce(Announce(job_id=job.id, message="queued: place 1"))

    assert [job.message for job in observer.observe().jobs] == ["queued: place 1"]


def test_what_moved_meanwhile_is_left_alone(world: World) -> None:
    """An action is applied to what it was decided on, or not at all."""
    world.submit("digits")
    view = world.view()
    world.store.merge_patch("Workflow", "default", "digits", {"metadata": {"labels": {"x": "y"}}})
    granted = Grant(job_id=view.id, segment=0, workers=(NewWorker(id="w0", node="n0", gpus=1),))

    with pytest.raises(Conflict):
        world.enforcer.enforce(granted)
    assert world.job().phase is JobPhase.QUEUED
    world.enforcer.enforce(granted)
    with pytest.raises(Conflict, match="grow gate"):
        world.enforcer.enforce(Grow(job_id=view.id, segment=0, workers=granted.workers))
    with pytest.raises(NotFound):
        world.enforcer.enforce(Announce(job_id="nobody/train", message=""))


def test_two_actions_on_one_workflow_in_one_round(world: World) -> None:
    """The second is guarded by the answer to the first."""
    world.submit("pipe", steps([call("a"), call("b")]))
    world.observer.observe()
    for name in ("a", "b"):
        (view,) = [view for view in world.observer.views.values() if view.nodes.asked.name == name]
        world.enforcer.enforce(Announce(job_id=view.id, message=f"hello {name}"))

    assert [world.job(name).message for name in ("a", "b")] == ["hello a", "hello b"]


def test_a_driver_that_came_back_has_no_document(world: World) -> None:
    """A document is for one pod; another pod of the same name begins anew with generation 1."""
    world.submit("digits")
    world.cycle()
    world.run_pods()
    world.cycle()
    world.acknowledge()
    pod = world.pod("driver")
    copied = {**pod, "metadata": {key: value for key, value in pod["metadata"].items() if key != "resourceVersion"}}
    world.store.remove(Key("Pod", "default", pod["metadata"]["name"]), uid=pod["metadata"]["uid"])
    world.store.create(copied)
    job = world.job()

    assert (job.phase, job.published, job.generation, job.acknowledged) == (JobPhase.STARTING, (), 0, 0)
    (action,) = world.cycle()
    assert isinstance(action, Publish)
    assert action.generation == 1


def test_an_answer_of_an_earlier_driver_is_not_taken_for_this_ones(world: World) -> None:
    """What is said names the pod that says it."""
    world.submit("digits")
    world.cycle()
    world.run_pods()
    world.cycle()
    uid = world.view().driver_uid
    world.drivers.said[uid] = DriverStatus(driver_uid="another", generation=1)

    assert world.job().acknowledged == 0


@pytest.mark.parametrize("runs", [False, True], ids=["pending", "running"])
def test_an_evicted_worker_leaves_and_is_gone(world: World, *, runs: bool) -> None:
    """It holds no GPU any more; Argo makes the pod of a pending node anew, so that node is ended too."""
    world.submit("digits", min_gpus="2", max_gpus="2")
    world.cycle()
    if runs:
        world.run_pods()
    view = world.view()
    world.enforcer.enforce(Evict(job_id=view.id, segment=0, worker_id="w1", reason="late"))
    assert world.job().workers[1].phase is WorkerPhase.LEAVING
    with pytest.raises(NotFound):
        world.enforcer.enforce(Evict(job_id=view.id, segment=0, worker_id="w9", reason="late"))
    world.settle()
    world.run_pods()

    assert [worker.phase for worker in world.job().workers] == [WorkerPhase.READY, WorkerPhase.ENDED]
    assert world.observer.observe().free_gpus() == {"n0": 1, "n1": 2}


def test_a_suspended_workflow_is_not_granted(world: World) -> None:
    """People may hold a job back; its gate is then not answered."""
    world.submit("digits")
    world.store.merge_patch("Workflow", "default", "digits", {"spec": {"suspend": True}})

    assert world.cycle() == []
    world.store.merge_patch("Workflow", "default", "digits", {"spec": {"suspend": None}})
    assert [type(action) for action in world.cycle()] == [Grant]


def test_a_workflow_that_cannot_be_read_hides_nobody(world: World, caplog: pytest.LogCaptureFixture) -> None:
    """One whose packed nodes are torn is named in the log, once; the others are served."""
    world.submit("big")
    world.submit("digits", job_name="other")
    world.store.merge_patch("Workflow", "default", "big", {"status": {"nodes": None, "compressedNodes": "H4sI"}})

    assert [job.spec.workflow for job in world.observer.observe().jobs] == ["digits"]
    world.observer.observe()
    assert caplog.text.count("workflow=big unreadable=") == 1


def test_too_many_segments_pin_a_job(tmp_path: Path) -> None:
    """Argo's limits are not to be run into: such a job is left as it is."""
    world = World(tmp_path, settings=Settings(segments_limit=2))
    world.submit("digits")
    assert not world.job().pinned
    world.cycle()
    world.run_pods()
    world.cycle()
    world.end_pod("driver")
    world.end_pod("worker", "w0")
    world.cycle()
    world.end_pod("checkpoint", state="resize")

    assert world.job().pinned


def test_time_on_gpus_is_counted_over_all_segments(world: World) -> None:
    """Attained service comes from the Workflow's own nodes, so a scheduler that restarts knows it."""
    world.submit("digits", min_gpus="2", max_gpus="2")
    world.cycle()
    nodes = {
        node_id: {"startedAt": "2026-01-01T00:00:00Z", "finishedAt": "2026-01-01T00:00:10Z"}
        for node_id, node in world.nodes().items()
        if node.get("templateName") == "worker"
    }
    world.store.merge_patch("Workflow", "default", "digits", {"status": {"nodes": nodes}})

    assert world.job().attained_gpu_s == 20.0


def test_the_message_at_a_gate_is_written_once(world: World) -> None:
    """A thousand queued jobs must not mean a thousand writes a round."""
    world.submit("big", min_gpus="4", max_gpus="4")
    world.cycle()
    world.submit("digits", job_name="other")

    assert [type(action) for action in world.cycle()] == [Announce]
    assert world.cycle() == []
    assert json.dumps(world.job("other").message).startswith('"queued: place 1')

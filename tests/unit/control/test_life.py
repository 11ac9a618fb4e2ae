"""A job's whole life through the real store and engine: each action does to the Workflow what it says."""

from __future__ import annotations

import base64
import json
from pathlib import Path

import pytest

from scheduler_core.model.job import JobPhase, WorkerPhase
from scheduler_core.model.plan import Announce, Grant, Grow, NewWorker, Publish, Release
from tests.unit.control.world import World
from voda_flows.objects import key_of


@pytest.fixture
def world(tmp_path: Path) -> World:
    """Two nodes with two GPUs each."""
    return World(tmp_path)


def test_a_job_lives_from_its_gate_to_its_end(world: World) -> None:
    """Submit, grant, publish, train, done: the Workflow succeeds and no gate is left open."""
    uid = world.submit("digits", min_gpus="2", max_gpus="2")["metadata"]["uid"]
    job_id = f"{uid}/train"
    assert world.job().phase is JobPhase.QUEUED

    granted = world.cycle()
    workers = (NewWorker(id="w0", node="n0", gpus=1), NewWorker(id="w1", node="n0", gpus=1))
    assert granted == [Grant(job_id=job_id, segment=0, workers=workers)]
    assert [worker.phase for worker in world.job().workers] == [WorkerPhase.PENDING, WorkerPhase.PENDING]

    world.run_pods()
    assert world.cycle() == [Publish(job_id=job_id, segment=0, generation=1, worker_ids=("w0", "w1"))]
    assert world.job().phase is JobPhase.RUNNING
    assert world.job().acknowledged == 0
    world.acknowledge()
    assert world.job().acknowledged == 1
    assert world.cycle() == []

    world.end_pod("driver")
    assert world.job().phase is JobPhase.BETWEEN
    assert world.cycle() == [Release(job_id=job_id, segment=0)]
    world.end_pod("worker", "w0")
    world.end_pod("worker", "w1")
    world.end_pod("checkpoint", state="done")

    assert world.store.get("Workflow", "default", "digits")["status"]["phase"] == "Succeeded"
    assert world.observer.observe().jobs == ()


def run_to_the_checkpoint(world: World) -> None:
    """A job of one worker whose driver failed: its checkpoint step is what is left."""
    world.submit("digits", min_gpus="1", max_gpus="1")
    world.cycle()
    world.run_pods()
    world.end_pod("driver", phase="Failed")
    world.cycle()
    world.end_pod("worker", "w0")


def test_a_checkpoint_step_that_is_lost_is_made_again(world: World) -> None:
    """Its pod may be killed or deleted like any other; only its own word ends the job."""
    run_to_the_checkpoint(world)
    for reason in ("Lost", "Evicted"):
        pod = world.pod("checkpoint")
        world.patch(key_of(pod), {"phase": "Failed", "reason": reason, "message": "pod's process was lost"})
        world.settle()

    assert world.job().phase is JobPhase.BETWEEN
    assert world.job().retries == 0
    world.end_pod("checkpoint", state="lost")
    assert (world.job().phase, world.job().segment, world.job().retries) == (JobPhase.QUEUED, 1, 1)


def test_a_checkpoint_step_that_says_no_ends_the_job(world: World) -> None:
    """Exit code 1 is its verdict: the retry limit is used up."""
    run_to_the_checkpoint(world)
    world.end_pod("checkpoint", phase="Failed")

    assert world.store.get("Workflow", "default", "digits")["status"]["phase"] == "Failed"


def test_the_document_names_what_the_driver_needs(world: World) -> None:
    """Addresses, slots, minimum and the driver's own uid stand in the annotation of the driver's pod."""
    uid = world.submit("digits", min_gpus="1", max_gpus="1")["metadata"]["uid"]
    world.cycle()
    world.run_pods()
    world.cycle()
    driver, worker = world.pod("driver"), world.pod("worker", "w0")

    assert json.loads(driver["metadata"]["annotations"]["voda.dev/allocation"]) == {
        "version": 1,
        "job": f"{uid}/train",
        "driver_uid": driver["metadata"]["uid"],
        "segment": 0,
        "generation": 1,
        "min_workers": 1,
        "workers": [
            {"id": "w0", "role": "worker", "address": worker["status"]["podIP"], "node": "n0", "slots": 1},
        ],
        "stop": None,
    }


def test_the_job_has_its_key_before_its_pods(world: World) -> None:
    """The Secret is there when the grant is, is 32 random bytes in hex, and goes with the Workflow."""
    metadata = world.submit("digits")["metadata"]
    world.cycle()
    secret = world.store.get("Secret", "default", f"voda-key-{metadata['uid']}")
    key = base64.b64decode(secret["data"]["key"]).decode()

    assert len(bytes.fromhex(key)) == 32
    assert secret["metadata"]["ownerReferences"][0]["uid"] == metadata["uid"]


def test_a_job_grows_in_place_and_again(world: World) -> None:
    """A grow gate answered gives a worker and a new gate; the worker enters the document when it is ready."""
    uid = world.submit("digits", min_gpus="1", max_gpus="2")["metadata"]["uid"]
    rigid = world.submit("rigid", min_gpus="3", max_gpus="3", job_name="rigid")["metadata"]["uid"]
    assert {type(action) for action in world.cycle()} == {Grant}
    world.run_pods()
    world.cycle()
    world.acknowledge()
    world.store.delete("Workflow", "default", "rigid")
    for pod in [pod for pod in world.store.list("Pod") if pod["metadata"]["ownerReferences"][0]["uid"] == rigid]:
        world.store.delete("Pod", "default", pod["metadata"]["name"])
    world.settle()

    (grown,) = world.cycle()
    assert isinstance(grown, Grow)
    assert [worker.id for worker in grown.workers] == ["w1"]
    assert world.job().grow_gate_open, "a new grow gate waits"
    world.run_pods()
    assert world.cycle() == [Publish(job_id=f"{uid}/train", segment=0, generation=2, worker_ids=("w0", "w1"))]
    world.acknowledge()
    assert world.job().published == ("w0", "w1")
    assert world.cycle() == []


def test_a_job_is_stopped_at_a_checkpoint_and_granted_again(world: World) -> None:
    """An urgent job takes the GPUs; the other waits in its next segment and comes back when they are free."""
    uid = world.submit("digits", min_gpus="2", max_gpus="2")["metadata"]["uid"]
    world.cycle()
    world.run_pods()
    world.cycle()
    world.acknowledge()
    world.submit("urgent", min_gpus="4", max_gpus="4", priority="high", job_name="urgent")

    stopped = [action for action in world.cycle() if not isinstance(action, Announce)]
    assert [(type(action).__name__, action.job_id) for action in stopped] == [("Stop", f"{uid}/train")]
    document = json.loads(world.pod("driver")["metadata"]["annotations"]["voda.dev/allocation"])
    assert (document["generation"], document["stop"]) == (2, "checkpoint")
    assert [worker["id"] for worker in document["workers"]] == ["w0", "w1"]
    assert world.job().phase is JobPhase.STOPPING

    world.end_pod("driver")
    world.end_pod("worker", "w0")
    world.end_pod("worker", "w1")
    world.cycle()
    world.end_pod("checkpoint", state="resize")
    waiting = world.job()
    assert (waiting.phase, waiting.segment, waiting.workers) == (JobPhase.QUEUED, 1, ())
    assert waiting.started_s is not None
    world.cycle()
    assert world.job("urgent").phase is JobPhase.STARTING
    assert world.job().message.startswith("queued: place 1")


def test_a_lost_driver_counts_only_without_a_checkpoint(world: World) -> None:
    """Segments that found nothing new are counted; one that did begins the count anew."""
    world.submit("digits", min_gpus="1", max_gpus="1")
    for state, retries in (("lost", 1), ("lost", 2), ("resize", 0), ("lost", 1)):
        world.cycle()
        world.run_pods()
        world.cycle()
        world.end_pod("driver", phase="Failed")
        world.end_pod("worker", "w0")
        world.cycle()
        world.end_pod("checkpoint", state=state)
        assert world.job().retries == retries


def test_an_illegal_request_fails_at_its_gate_with_the_text_of_submission(world: World) -> None:
    """What kubectl creates passes no check of ours, so the gate does, with the same words."""
    world.submit("digits", min_gpus="3", max_gpus="2", priority="urgnt")
    world.cycle()
    workflow = world.store.get("Workflow", "default", "digits")
    (gate,) = [node for node in workflow["status"]["nodes"].values() if node["type"] == "Suspend"]

    assert gate["phase"] == "Failed"
    assert gate["message"] == (
        "job digits/train: expected min-gpus <= max-gpus, got 3 and 2; expected priority to be a class or a whole "
        "number, got 'urgnt'; known are high, low, normal"
    )
    assert workflow["status"]["phase"] == "Failed"


def test_a_gate_opened_by_hand_leads_to_a_new_gate(world: World) -> None:
    """``argo resume`` completes every gate with its defaults: the job waits on, and is granted at the next gate."""
    world.submit("digits", min_gpus="1", max_gpus="1")
    view = world.view()
    defaults = {"parameters": [{"name": "grant", "value": "none"}, {"name": "workers", "value": "[]"}]}
    resumed = {"phase": "Succeeded", "outputs": defaults, "finishedAt": "2026-01-01T00:00:00Z"}
    world.store.merge_patch("Workflow", "default", "digits", {"status": {"nodes": {view.nodes.gate: resumed}}})
    world.settle()

    assert world.job().phase is JobPhase.QUEUED
    assert world.view().nodes.gate != view.nodes.gate
    assert [type(action) for action in world.cycle()] == [Grant]
    assert world.job().phase is JobPhase.STARTING

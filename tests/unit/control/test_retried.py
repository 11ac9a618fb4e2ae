"""A job that was terminated and is retried: Argo brings its pods back on the old grant; who trains is decided anew."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from scheduler_core.model.job import JobPhase
from scheduler_core.model.plan import Publish, Stop
from tests.unit.control.world import World
from voda_flows.control import pods
from voda_flows.local.argo import operate
from voda_flows.objects import Key, key_of, phase_of

JOB = Key("Workflow", "default", "digits")


@pytest.fixture
def world(tmp_path: Path) -> World:
    """Two GPUs; a job of two that trained on them was terminated, and is retried."""
    made = World(tmp_path, gpus=(2,))
    made.submit("digits", min_gpus="2", max_gpus="2")
    made.cycle()
    made.run_pods()
    made.cycle()
    made.acknowledge()
    made.store.replace(operate.terminate(made.store.get(*JOB)))
    for role, worker in (("driver", ""), ("worker", "w0"), ("worker", "w1")):
        made.end_pod(role, worker, phase="Failed")
    made.cycle()
    ended = made.store.get(*JOB)
    assert phase_of(ended) == "Failed"
    again = operate.retry(ended, datetime.now(UTC))
    for pod in made.store.list("Pod"):
        if pod["metadata"]["name"] in again.delete:
            made.store.remove(key_of(pod), uid=pods.uid(pod))
    made.store.replace(again.workflow)
    made.settle()
    return made


def test_it_is_adopted_where_its_gpus_are_free(world: World) -> None:
    """It trains by a document for the new driver; the old one's, which Argo does not bring back, counts for nothing."""
    job = world.job()
    assert (job.phase, job.generation, [worker.node for worker in job.workers]) == (JobPhase.STARTING, 0, ["n0", "n0"])
    assert world.cycle() == []

    world.run_pods()

    assert world.cycle() == [Publish(job_id=job.id, segment=0, generation=1, worker_ids=("w0", "w1"))]
    document = world.view().document
    assert document is not None
    assert document.driver_uid == pods.uid(world.pod("driver"))


def test_it_does_not_train_where_others_have_its_gpus(world: World) -> None:
    """Its driver is told to stop before it began, and the job waits at another gate."""
    for pod in world.store.list("Pod"):
        if (pods.key_of_pod(pod).role, pods.has_ended(pod)) == ("driver", False):
            world.patch(key_of(pod), {"phase": "Running", "podIP": "127.1.0.9"})
    limits = {"resources": {"limits": {"nvidia.com/gpu": "2"}}}
    stranger = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "stranger", "namespace": "default"},
        "spec": {"nodeName": "n0", "containers": [{"name": "main", **limits}]},
        "status": {"phase": "Running"},
    }
    world.store.create(stranger)

    done = world.cycle()

    assert done == [
        Stop(
            job_id=world.job().id,
            segment=0,
            generation=1,
            reason="not to run now: its GPUs went to others, and none are free",
        )
    ]
    document = world.view().document
    assert document is not None
    assert (document.stop, document.workers) == ("checkpoint", ())

"""Pods on their way out: dropped workers are no fresh ones, and what ended segments still hold is nobody's."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path
from typing import Any

from scheduler_core.converging.document import LEAVE_LIMIT_S
from scheduler_core.model.job import JobPhase, WorkerPhase
from scheduler_core.model.plan import Evict, Publish, Release
from tests.unit.control.world import World
from voda_flows.config import Settings
from voda_flows.control.enforce import StoreEnforcer
from voda_flows.control.observe import StoreObserver, other_gpus


def trained(home: Path) -> World:
    """A job of 2..2 that trains by an acknowledged document."""
    world = World(home)
    world.submit("job", min_gpus="2", max_gpus="2")
    world.cycle()
    world.run_pods()
    world.cycle()
    world.acknowledge()
    return world


def test_a_worker_that_its_driver_dropped_leaves_whatever_its_pod_says(tmp_path: Path) -> None:
    """Its pod is still ready; the driver's word goes before that."""
    world = trained(tmp_path)
    assert [worker.phase for worker in world.job().workers] == [WorkerPhase.READY, WorkerPhase.READY]
    (uid,) = world.drivers.said
    world.drivers.said[uid] = replace(world.drivers.said[uid], leaving=frozenset({"w1"}))

    assert [worker.phase for worker in world.job().workers] == [WorkerPhase.READY, WorkerPhase.LEAVING]


def test_a_driver_that_has_done_its_work_gets_no_other_document(tmp_path: Path) -> None:
    """Its workers end one after the other; that is no loss to be answered with a stop."""
    world = trained(tmp_path)
    (uid,) = world.drivers.said
    world.drivers.said[uid] = replace(world.drivers.said[uid], ending=True)
    world.end_pod("worker", "w1")

    assert world.job().phase is JobPhase.STOPPING
    assert world.cycle() == []


def test_workers_whose_driver_died_before_it_spoke_to_them_are_deleted(tmp_path: Path) -> None:
    """Their agents wait for a driver, warm; when they have had the time to leave by themselves the job goes on."""
    world = World(tmp_path)
    world.submit("job", min_gpus="1", max_gpus="1")
    world.cycle()
    world.run_pods()
    world.end_pod("driver", phase="Failed")
    job_id = world.job().id
    soon = world.cycle()

    world.observer = StoreObserver(world.store, Settings(), world.drivers, clock=lambda: time.time() + LEAVE_LIMIT_S)
    world.enforcer = StoreEnforcer(world.store, world.observer)
    late = world.cycle()

    assert soon == [Release(job_id=job_id, segment=0)]
    assert late == [Evict(job_id=job_id, segment=0, worker_id="w0", reason="its driver ended 30 s ago")]
    assert world.pod("checkpoint")


def test_a_frozen_worker_that_its_driver_has_done_with_is_deleted(tmp_path: Path) -> None:
    """Counted by the scheduler's own clock from when it first sees it; one that is told to go is not told again."""
    world = World(tmp_path)
    world.submit("job", min_gpus="1", max_gpus="2")
    world.cycle()
    world.run_pods()
    world.cycle()
    world.acknowledge()
    (uid,) = world.drivers.said
    said = replace(world.drivers.said[uid], leaving=frozenset({"w1"}), states={"w0": "running", "w1": "gone"})
    world.drivers.said[uid] = said
    now = [time.time()]
    world.observer = StoreObserver(world.store, Settings(), world.drivers, clock=lambda: now[0])
    world.enforcer = StoreEnforcer(world.store, world.observer)

    dropped = world.cycle()
    world.drivers.said[uid] = replace(said, generation=2)
    soon = [world.job().workers[1].left_s, *world.cycle()]
    now[0] += LEAVE_LIMIT_S
    late = world.cycle()

    job_id = world.job().id
    assert dropped == [Publish(job_id=job_id, segment=0, generation=2, worker_ids=("w0",))]
    assert soon == [now[0] - LEAVE_LIMIT_S]
    reason = "done with by its driver 30 s ago, and still there"
    assert late == [Evict(job_id=job_id, segment=0, worker_id="w1", reason=reason)]
    assert [worker.left_s for worker in world.job().workers] == [0.0, 0.0]


def test_a_worker_that_still_drains_is_given_its_time(tmp_path: Path) -> None:
    """Its ranks end at the next step, which may be long; its driver calls it gone when it hears no more of it."""
    world = trained(tmp_path)
    (uid,) = world.drivers.said
    draining = replace(world.drivers.said[uid], leaving=frozenset({"w1"}), states={"w1": "draining"})
    world.drivers.said[uid] = draining

    assert [worker.left_s for worker in world.job().workers] == [0.0, 0.0]


def worker_pod(uid: str, role: str = "worker", **metadata: Any) -> dict[str, Any]:
    """A pod with two GPUs on n0."""
    limits = {"resources": {"limits": {"nvidia.com/gpu": "2"}}}
    return {
        "metadata": {"uid": uid, "namespace": "default", "labels": {"voda.dev/role": role}, **metadata},
        "spec": {"nodeName": "n0", "containers": [limits]},
        "status": {"phase": "Running"},
    }


def test_workers_of_what_has_ended_are_on_their_way_out_and_others_are_foreign(tmp_path: Path) -> None:
    """So is a foreign pod that was told to go; a live job's own workers are neither."""
    world = trained(tmp_path)
    view = world.view()
    strangers = [
        worker_pod("of-an-ended-segment"),
        worker_pod("foreign", role=""),
        worker_pod("told-to-go", role="", deletionTimestamp="2026-01-31T10:00:00Z"),
    ]

    others = other_gpus([*view.pod_by_worker.values(), *strangers], [view])

    assert (dict(others.foreign), dict(others.leaving)) == ({"n0": 2}, {"n0": 4})


def test_workers_of_a_refused_job_are_foreign(tmp_path: Path) -> None:
    """Nobody plans with them, and they may stay."""
    view = trained(tmp_path).view()
    refused = replace(view, job=None, refusal="min-gpus: expected >= 1, got 0")

    others = other_gpus(view.pod_by_worker.values(), [refused])

    assert (sum(others.foreign.values()), dict(others.leaving)) == (2, {})

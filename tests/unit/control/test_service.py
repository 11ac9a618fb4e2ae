"""What a job has had is counted from its last start; a resize is no start, a wait for GPUs is."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from scheduler_core.model.service import Service
from tests.unit.control.world import World
from voda_flows.control.service import WAITED_S, Spent, Wait, account_of, service_of


def spent(gpus: int, start_s: float, end_s: float | None) -> Spent:
    """A worker's time."""
    return Spent(gpus=gpus, start_s=start_s, end_s=end_s)


def had(waits: Sequence[Wait], rows: Sequence[Spent], now_s: float) -> Service:
    """What a job has had."""
    return service_of(account_of(waits, rows), now_s)


def test_a_job_that_waits_for_the_first_time() -> None:
    """It has had nothing and waits."""
    assert had([Wait(since_s=100.0, granted_s=None)], [], 130.0) == Service(waiting_s=30.0)


def test_workers_side_by_side_run_once() -> None:
    """Two workers of two GPUs for 100 s are 400 GPU seconds in 100 s; before that the job waited for 20 s."""
    found = had([Wait(since_s=80.0, granted_s=100.0)], [spent(2, 100.0, 200.0), spent(2, 100.0, None)], 200.0)

    assert found == Service(attained_gpu_s=400.0, since_start_gpu_s=400.0, running_s=100.0, waiting_s=20.0)


def test_a_worker_that_left_early_is_within_the_run_of_the_others() -> None:
    """Of a run of 100 s one worker was there for 30: it ran for 100 s."""
    found = had([Wait(since_s=0.0, granted_s=100.0)], [spent(1, 100.0, 130.0), spent(1, 110.0, None)], 200.0)

    assert found == Service(attained_gpu_s=120.0, since_start_gpu_s=120.0, running_s=100.0, waiting_s=100.0)


def test_a_resize_is_no_start() -> None:
    """The gate between two segments is answered at once: service goes on."""
    waits = [Wait(since_s=0.0, granted_s=10.0), Wait(since_s=110.0, granted_s=112.0)]
    found = had(waits, [spent(1, 10.0, 110.0), spent(3, 112.0, None)], 212.0)

    assert found == Service(attained_gpu_s=400.0, since_start_gpu_s=400.0, running_s=200.0, waiting_s=10.0)


def test_after_a_wait_service_begins_anew() -> None:
    """A job that was preempted and waited for more than half a minute has started again."""
    again_s = 110.0 + WAITED_S + 1.0
    waits = [Wait(since_s=0.0, granted_s=10.0), Wait(since_s=110.0, granted_s=again_s)]
    found = had(waits, [spent(1, 10.0, 110.0), spent(2, again_s, None)], again_s + 50.0)

    assert found == Service(attained_gpu_s=200.0, since_start_gpu_s=100.0, running_s=50.0, waiting_s=WAITED_S + 1.0)


def test_while_it_waits_again_the_last_start_counts() -> None:
    """How long it ran since its last start, and how long it waits now."""
    waits = [Wait(since_s=0.0, granted_s=10.0), Wait(since_s=110.0, granted_s=None)]

    assert had(waits, [spent(1, 10.0, 110.0)], 500.0) == Service(
        attained_gpu_s=100.0, since_start_gpu_s=100.0, running_s=100.0, waiting_s=390.0
    )


def test_it_comes_from_the_nodes_of_the_workflow(tmp_path: Path) -> None:
    """A job at its gate waits; one with workers holds GPUs since its grant."""
    world = World(tmp_path)
    world.submit("digits", min_gpus="2", max_gpus="2")
    assert world.job().service.waiting_s >= 0.0 == world.job().service.attained_gpu_s

    world.cycle()
    world.run_pods()
    job = world.job()
    assert job.service.since_start_gpu_s == job.service.attained_gpu_s >= 0.0
    assert world.view().nodes.account.open_gpus == 2
    assert job.service.running_s >= 0.0

"""A job that succeeds is not said to have lost its workers, however early their pods are seen to have ended."""

from __future__ import annotations

from pathlib import Path

from scheduler_core.model.job import JobPhase
from scheduler_core.model.plan import Stop
from tests.unit.control.world import World


def trained(home: Path) -> World:
    """A job that trains on its one worker."""
    world = World(home)
    world.submit("digits")
    while world.job().phase is not JobPhase.RUNNING or world.job().acknowledged != 1:
        world.cycle()
        world.run_pods()
        if world.view().document:
            world.acknowledge()
    return world


def test_workers_that_end_well_before_their_driver_are_no_loss(tmp_path: Path) -> None:
    """The agent has heard the driver's goodbye and left; the driver's pod is not seen to have ended yet."""
    world = trained(tmp_path)
    world.end_pod("worker", "w0")

    done = world.cycle()
    (worker,) = world.job().workers

    assert done == []
    assert worker.done_s > 0
    assert world.job().failures == ()


def test_workers_that_fail_before_their_driver_are_a_loss(tmp_path: Path) -> None:
    """The same, but the agent did not end well: the job stops and says why."""
    world = trained(tmp_path)
    world.end_pod("worker", "w0", phase="Failed")

    (stop,) = world.cycle()

    assert isinstance(stop, Stop)
    assert stop.reason == "workers were lost: 0 GPUs left, fewer than its minimum of 1"
    assert [failure.worker for failure in world.job().failures] == ["w0"]


def test_workers_that_end_with_their_driver_have_not_failed(tmp_path: Path) -> None:
    """A driver that dies takes its agents with it: no worker, no node is to blame."""
    world = trained(tmp_path)
    world.end_pod("driver", phase="Failed")
    world.end_pod("worker", "w0", phase="Failed")

    assert world.job().failures == ()

"""The scheduler's process: it acts soon, rests cheaply, ends when told to, and leaves the Lease to the next."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from scheduler_core.errors import Conflict, InvalidValue
from tests.unit.control.world import World
from voda_flows.control.lease import EPOCH, NAME, Lease
from voda_flows.control.scheduler import Pace, Place, Scheduler, end_before_tick, lifetime_s
from voda_flows.control.targets import StoredTarget
from voda_flows.local.store import LocalStore
from voda_flows.objects import Key, Object

PATIENCE_S = 60.0


@pytest.fixture
def world(tmp_path: Path) -> World:
    """Two nodes with two GPUs each."""
    return World(tmp_path)


@contextmanager
def running(world: World, *arguments: str) -> Iterator[subprocess.Popen[str]]:
    """The scheduler as a process of its own; killed if it is still there at the end."""
    environment = {**os.environ, "VODA_HOME": str(world.store.home)}
    command = [sys.executable, "-m", "voda_flows.control.scheduler", *arguments]
    process = subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True)
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def until(world: World, kind: str, namespace: str, name: str, holds: str) -> Object:
    """Wait for an object in which some text stands."""
    end_s, revision = time.monotonic() + PATIENCE_S, -1
    while time.monotonic() < end_s:
        revision = world.store.wait(revision, 1.0)
        for body in world.store.list(kind, namespace):
            if body["metadata"]["name"] == name and holds in str(body):
                return body
    raise AssertionError(f"{kind} {namespace}/{name}: expected {holds!r} within {PATIENCE_S:g} s")


def test_it_acts_and_ends_when_told_to(world: World) -> None:
    """A submission is granted without being asked; after SIGTERM the Lease is free."""
    with running(world, "--for", "1h") as process:
        until(world, "Lease", "voda", NAME, "process/")
        until(world, "ConfigMap", "voda", "voda-target", "'target'")
        world.submit("digits")
        until(world, "Workflow", "default", "digits", "'value': 'given'")
        process.send_signal(signal.SIGTERM)
        story = process.communicate(timeout=PATIENCE_S)[1]

    assert process.returncode == 75, story  # its pod's retries start another at once
    assert "action='Grant'" in story
    assert world.store.get("Lease", "voda", NAME)["spec"]["holderIdentity"] == ""


def test_a_pod_that_is_started_anew_has_what_is_left_of_its_runs_time(world: World) -> None:
    """Nothing, where that is over: the Lease is left to the next run."""
    with running(world, "--for", "1h", "--since", str(time.time() - 3600)) as process:
        process.communicate(timeout=PATIENCE_S)

    assert (process.returncode, world.store.list("Lease")) == (0, [])


def test_it_ends_when_its_time_is_over(world: World) -> None:
    """A run makes way for the cron's next."""
    with running(world, "--for", "1s") as process:
        process.communicate(timeout=PATIENCE_S)

    assert process.returncode == 0


def test_it_ends_at_once_where_another_is_at_work(world: World) -> None:
    """The cron starts one every few minutes, whether it is needed or not."""
    with running(world, "--for", "1h") as first:
        until(world, "Lease", "voda", NAME, "process/")
        with running(world, "--for", "1h") as second:
            story = second.communicate(timeout=PATIENCE_S)[1]
        assert (second.returncode, first.poll()) == (0, None)

    assert "scheduler=not_needed" in story


def test_it_takes_the_place_of_one_that_stands_still(world: World) -> None:
    """A scheduler that was stopped, or whose node is lost, renews nothing; once woken it finds out, and ends."""
    with running(world, "--for", "1h") as first:
        until(world, "Lease", "voda", NAME, "process/")
        first.send_signal(signal.SIGSTOP)
        with running(world, "--for", "1h") as second:
            until(world, "Lease", "voda", NAME, f"/{second.pid}'")
            first.send_signal(signal.SIGCONT)
            story = first.communicate(timeout=PATIENCE_S)[1]
            assert (first.returncode, second.poll()) == (0, None)

    assert "lease=lost" in story
    assert "scheduler=not_needed" in story


def test_one_round_is_one_round(world: World) -> None:
    """With --once it decides, acts and ends; another holder is respected and named by the exit code."""
    world.submit("digits")
    with running(world, "--once") as process:
        process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 0
    assert StoredTarget(world.store, "voda").load().allocation.total_gpus == 1

    Lease(store=world.store, namespace="voda", identity="another").hold()
    with running(world, "--once") as process:
        story = process.communicate(timeout=PATIENCE_S)[1]
    assert process.returncode == Conflict.exit_code
    assert "another scheduler holds it" in story


def test_a_round_at_rest_writes_nothing(world: World) -> None:
    """What has not changed is not written again."""
    scheduler = Scheduler(world.store, Place(identity="me"))
    for _ in range(3):
        scheduler.once()
    before = world.store.revision()
    for _ in range(5):
        scheduler.once()
    scheduler.close()

    assert world.store.revision() == before + 1, "only the Lease was given back"


def test_it_goes_on_from_the_stored_target(world: World) -> None:
    """A second scheduler decides nothing anew where nothing changed."""
    world.submit("digits", min_gpus="2", max_gpus="2")
    for identity in ("one", "other"):
        scheduler = Scheduler(world.store, Place(identity=identity))
        for _ in range(3):
            scheduler.once()
        scheduler.close()

    assert StoredTarget(world.store, "voda").load().decision == 1


def test_new_settings_are_taken_over_and_bad_ones_are_not(world: World, caplog: pytest.LogCaptureFixture) -> None:
    """A mistake in the ConfigMap is said once, by name, and the old settings stay."""
    scheduler = Scheduler(world.store, Place(identity="me"))
    config = {"kind": "ConfigMap", "metadata": {"name": "voda-config", "namespace": "voda"}, "data": {"policy": "fifo"}}
    world.store.create(config)
    world.submit("digits")
    scheduler.once()
    assert StoredTarget(world.store, "voda").load().policy == "fifo"

    world.store.merge_patch("ConfigMap", "voda", "voda-config", {"data": {"policy": "fifo", "polcy": "x"}})
    scheduler.once()
    scheduler.once()
    scheduler.close()
    assert caplog.text.count("got 'polcy'; did you mean 'policy'?") == 1


def test_after_an_unclean_end_the_old_versions_are_made_stale_first(world: World) -> None:
    """What the holder before may still want to write to open jobs, it cannot write any more."""
    pod = {"kind": "Pod", "metadata": {"name": "old", "namespace": "voda"}, "status": {"phase": "Failed"}}
    uid = world.store.create(pod)["metadata"]["uid"]
    Lease(store=world.store, namespace="voda", identity=f"pod/{uid}").hold()
    known = world.submit("digits")["metadata"]["resourceVersion"]
    scheduler = Scheduler(world.store, Place(identity="me"))
    scheduler.once()
    scheduler.close()
    workflow = world.store.get("Workflow", "default", "digits")

    assert workflow["metadata"]["annotations"][EPOCH] == "2"
    with pytest.raises(Conflict):
        world.store.merge_patch("Workflow", "default", "digits", {"spec": {"x": 1}}, resource_version=known)


class Broken(LocalStore):
    """A store that has nothing to show."""

    def snapshot(self, kind: str) -> dict[Key, Object]:
        """Fails."""
        raise ZeroDivisionError(kind)


def test_it_gives_up_when_nothing_works(tmp_path: Path) -> None:
    """A defect that stays ends the process, so that another is started."""
    scheduler = Scheduler(Broken(tmp_path), Place(identity="me"), Pace(gap_s=0.0, heartbeat_s=0.0))

    with pytest.raises(ZeroDivisionError):
        scheduler.run(time.monotonic() + PATIENCE_S, threading.Event())
    scheduler.close()


@pytest.mark.parametrize(("text", "life_s"), [("90s", 90.0), ("55m", 3300.0), ("1h", 3600.0)])
def test_a_lifetime_is_read(text: str, life_s: float) -> None:
    """As Go writes durations, one unit each."""
    assert lifetime_s(text) == life_s


def test_a_lifetime_that_is_none_is_refused() -> None:
    """The message says what would be one."""
    with pytest.raises(InvalidValue, match="expected a duration such as 90s, 55m or 1h, got 'soon'"):
        lifetime_s("soon")


@pytest.mark.parametrize(
    ("now_s", "life_s", "ends_s"),
    [
        (0.0, 3300.0, 3298.0),
        (30.0, 3300.0, 3298.0),
        (299.9, 3300.0, 3298.0),
        (300.0, 3300.0, 3598.0),
        (10.0, 5.0, 15.0),
        (10.0, 599.0, 609.0),
    ],
)
def test_it_ends_just_before_a_tick(now_s: float, life_s: float, ends_s: float) -> None:
    """The cron's next tick is then two seconds away; a short life is kept as it is."""
    assert now_s + end_before_tick(now_s, life_s) == ends_s

"""After a takeover the old holder writes nothing, wherever it was stopped: two schedulers over one store."""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from scheduler_core.cycle import attempt
from scheduler_core.deciding.inline import Inline
from scheduler_core.errors import Conflict
from tests.unit.control.world import World
from voda_flows.control.lease import DURATION_S, EPOCH, NAME
from voda_flows.control.scheduler import Place, Scheduler
from voda_flows.local.store import LocalStore
from voda_flows.objects import Object
from voda_flows.report.history import HISTORY_MAP

READS = ("get", "list", "snapshot", "revision", "wait")


@dataclass
class Clock:
    """A clock of a process: it goes on while the process is stopped."""

    now_s: float = 100.0

    def __call__(self) -> float:
        """Seconds."""
        return self.now_s


@dataclass
class Watched:
    """A store as one scheduler sees it; before one of its calls the scheduler is stopped and something else happens.

    Attributes:
        store: The store.
        stop_before: Number of the call before which it is stopped, from 1.
        meanwhile: What happens then.
        writes: What it wrote after it was stopped, by name of the call.
    """

    store: LocalStore
    stop_before: int
    meanwhile: Callable[[], None]
    calls: int = 0
    was_stopped: bool = False
    writes: list[tuple[str, Any]] = field(default_factory=list)

    def __getattr__(self, name: str) -> Any:
        """The store's own, counted."""
        method = getattr(self.store, name)
        if not callable(method):
            return method

        def call(*args: Any, **named: Any) -> Any:
            self.calls += 1
            if self.calls == self.stop_before:
                self.was_stopped = True
                self.meanwhile()
            answer = method(*args, **named)
            if self.was_stopped and name not in READS:
                self.writes.append((name, args))
            return answer

        return call


class Here(Inline):
    """Decides in this process: what is tried here is another matter."""

    limit_s = 1.0

    def begin_round(self) -> None:
        """Nothing is counted."""

    def close(self) -> None:
        """Nothing was started."""


def scheduler(store: Any, identity: str, clock: Clock) -> Scheduler:
    """A scheduler whose Lease goes by a clock of the test's."""
    made = Scheduler(store, Place(identity=identity))
    made._lease.clock = clock
    made._decider = Here(attempt)  # type: ignore[assignment]  # as far as a scheduler uses one
    return made


def prepared(home: Path) -> World:
    """A job that trains on two GPUs, one that was just submitted."""
    world = World(home, gpus=(2, 2))
    world.submit("digits", min_gpus="1", max_gpus="2", job_name="one")
    world.cycle()
    world.submit("other", job_name="two")
    return world


def stopped(folder: Path, stop_before: int) -> Watched:
    """What an old holder wrote that was stopped before one of a round's calls, and woke up after a takeover.

    Args:
        folder: Where worlds may be; ``prepared`` in it is the one that each of them begins as.
        stop_before: Number of the call before which it is stopped, from 1.
    """
    home, clock = folder / str(stop_before), Clock()
    world = World(home, gpus=(2, 2))
    world.store.close()
    shutil.copy(folder / "prepared" / "state.db", home / "state.db")
    new = scheduler(world.store, "new", clock)

    def takeover() -> None:
        assert not new._lease.hold()
        clock.now_s += DURATION_S + 1
        new.once()
        assert world.store.get("Lease", "voda", NAME)["spec"]["holderIdentity"] == "new"
        world.submit("later", job_name="three")  # something that there is to do, for the new one

    watched = Watched(store=world.store, stop_before=0, meanwhile=takeover)
    old = scheduler(watched, "old", clock)
    assert old._lease.hold()
    watched.stop_before = watched.calls + stop_before
    with contextlib.suppress(Conflict):
        old.once()
    old.close()
    new.close()
    world.store.close()
    return watched


def test_an_old_holder_that_wakes_up_writes_nothing(tmp_path: Path) -> None:
    """Stopped before each of its round's calls in turn, for longer than the Lease lasts."""
    prepared(tmp_path / "prepared").store.close()
    rounds = [stopped(tmp_path, 1)]
    while rounds[-1].was_stopped:
        rounds.append(stopped(tmp_path, len(rounds) + 1))

    assert [watched.writes for watched in rounds] == [[]] * len(rounds)
    assert len(rounds) > 15, "a round with a grant reads and writes that often"


def test_an_eviction_that_was_decided_before_a_takeover_is_not_carried_out(tmp_path: Path) -> None:
    """Deleting a pod is guarded by the version that was seen: the fence makes it stale."""
    world = World(tmp_path, gpus=(2,))
    world.submit("digits", min_gpus="1", max_gpus="2")
    world.cycle()
    world.observer.observe()
    view = world.view()
    pod = view.pod_by_worker["w1"]
    world.store.merge_patch("Pod", "default", pod["metadata"]["name"], {"metadata": {"annotations": {EPOCH: "2"}}})

    with pytest.raises(Conflict):
        world.store.delete(
            "Pod",
            "default",
            pod["metadata"]["name"],
            uid=pod["metadata"]["uid"],
            version=pod["metadata"]["resourceVersion"],
        )


def test_the_next_holder_fences_what_it_finds_before_it_decides(tmp_path: Path) -> None:
    """Workflow, driver, workers, target and history carry its epoch; a holder that died in between is fenced too."""
    world = prepared(tmp_path)
    clock = Clock()
    first = scheduler(world.store, "first", clock)
    first.once()
    world.settle()
    again = scheduler(world.store, "first", clock)  # its process was killed and started anew: the same name

    again.once()

    def epochs(kind: str, namespace: str) -> set[str]:
        bodies: list[Object] = world.store.list(kind, namespace)
        return {(body["metadata"].get("annotations") or {}).get(EPOCH, "") for body in bodies}

    assert epochs("Workflow", "default") == {"2"}
    assert epochs("Pod", "default") == {"2"}
    assert epochs("ConfigMap", "voda") == {"2"}
    first.close()
    again.close()


def test_an_old_holder_adds_nothing_to_the_history(tmp_path: Path) -> None:
    """It reads the history anew each time: the epoch on it says whose it is."""
    world = World(tmp_path)
    clock = Clock()
    old = scheduler(world.store, "old", clock)
    old.once()
    world.store.merge_patch("ConfigMap", "voda", HISTORY_MAP, {"metadata": {"annotations": {EPOCH: "7"}}})
    before = world.store.get("ConfigMap", "voda", HISTORY_MAP)
    world.submit("digits")

    old.once()
    old.close()

    assert world.store.get("ConfigMap", "voda", HISTORY_MAP) == before

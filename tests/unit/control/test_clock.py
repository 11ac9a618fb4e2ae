"""Limits of a job's start go by the scheduler's own clock: stamps by clocks that were set do no harm."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import pytest

from scheduler_core.model.plan import Evict, Grant
from tests.unit.control.world import PARAMS, World
from voda_flows.config import Settings
from voda_flows.control.clock import Sightings, now_s
from voda_flows.control.enforce import StoreEnforcer
from voda_flows.control.observe import StoreObserver
from voda_flows.objects import format_time

HOUR_S = 3600.0


@dataclass
class Hand:
    """A clock that a test sets."""

    now_s: float

    def __call__(self) -> float:
        """The moment."""
        return self.now_s


def observed(world: World, clock: Hand) -> None:
    """A scheduler's process of its own in the world, by this clock."""
    world.observer = StoreObserver(world.store, Settings(), world.drivers, clock)
    world.enforcer = StoreEnforcer(world.store, world.observer, clock)


def stamp_pods(world: World, at_s: float) -> None:
    """The pods' creation as a machine with another clock writes it."""
    stamp = format_time(datetime.fromtimestamp(at_s, UTC))
    with world.store.database.write() as connection:
        connection.execute(
            "UPDATE objects SET body = json_set(body, '$.metadata.creationTimestamp', ?), version = version + 1000000 "
            "WHERE kind = 'Pod'",
            (stamp,),
        )


@pytest.mark.parametrize("jump_s", [HOUR_S, -HOUR_S])
def test_workers_have_their_time_to_start_whatever_their_stamps_say(tmp_path: Path, jump_s: float) -> None:
    """Pods stamped an hour early or late are evicted when they have taken too long, not sooner and not later."""
    world, clock = World(tmp_path), Hand(datetime.now(UTC).timestamp())
    observed(world, clock)
    world.submit("a", min_gpus="2", max_gpus="2")
    assert [type(action) for action in world.cycle()] == [Grant]
    clock.now_s += 1
    stamp_pods(world, clock.now_s + jump_s)
    assert world.cycle() == []

    clock.now_s += PARAMS.start_limit_s - 10
    assert world.cycle() == []
    clock.now_s += 20
    assert {type(action) for action in world.cycle()} == {Evict}


def test_grants_of_the_future_are_counted_from_when_they_were_seen(tmp_path: Path) -> None:
    """A scheduler started after the clock was set back sees grants of the future: their time begins with it."""
    world, clock = World(tmp_path), Hand(datetime.now(UTC).timestamp())
    observed(world, clock)
    world.submit("a", min_gpus="2", max_gpus="2")
    world.cycle()
    clock.now_s -= HOUR_S
    observed(world, clock)
    assert world.cycle() == []
    clock.now_s += PARAMS.start_limit_s + 10

    assert {type(action) for action in world.cycle()} == {Evict}


def test_a_thing_began_between_two_looks() -> None:
    """A stamp counts as far as the looks allow it; what was not seen again is forgotten."""
    seen = Sightings()
    assert [seen.since_s("old", 50.0, 100.0), seen.since_s("future", 500.0, 100.0)] == [50.0, 100.0]
    seen.end_look(100.0)
    assert [seen.since_s("old", 50.0, 110.0), seen.since_s("new", 5.0, 110.0)] == [50.0, 100.0]
    assert seen.since_s("between", 105.0, 110.0) == 105.0
    seen.end_look(110.0)
    seen.end_look(120.0)

    assert seen.since_s("old", 50.0, 130.0) == 120.0


def test_the_scheduler_s_clock_is_the_day_s() -> None:
    """Moments that go on evenly are still seconds since the epoch."""
    assert now_s() == pytest.approx(datetime.now(UTC).timestamp(), abs=3600)

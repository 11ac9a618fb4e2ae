"""A clock that is set by an hour, either way, while Workflows wait for their limits: these are kept by elapsed time."""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

import pytest

from tests.unit.local.conftest import World
from voda_flows.local import clock as clocks
from voda_flows.local.clock import EvenClock
from voda_flows.local.engine import Engine
from voda_flows.local.pod import now as pod_now
from voda_flows.objects import parse_time

HOUR_S = 3600.0
JUMPS = pytest.mark.parametrize("jump_s", [HOUR_S, -HOUR_S])


@dataclass
class Times:
    """The machine's clock and the one that never jumps, as a test sets them."""

    wall_s: float = 1_700_000_000.0
    even_s: float = 5_000.0

    def pass_by(self, duration_s: float) -> None:
        """Time goes on."""
        self.wall_s += duration_s
        self.even_s += duration_s

    def clock(self, file: Path) -> EvenClock:
        """A clock that shows these times."""
        return EvenClock(file, wall=lambda: self.wall_s, even=lambda: self.even_s)


def engine_of(world: World, times: Times) -> Engine:
    """An engine in this process, by a test's clock."""
    return Engine(world.store, 0, times.clock(world.home / "clock.json"))


def suspended(world: World, duration: str) -> None:
    """A Workflow that waits for so long, with a deadline of twice as much."""
    world.workflow("waits", {"name": "main", "suspend": {"duration": duration}})
    world.store.merge_patch("Workflow", "default", "waits", {"spec": {"activeDeadlineSeconds": 2 * int(duration)}})


def phase(world: World) -> str:
    """The Workflow's phase."""
    return str(world.store.get("Workflow", "default", "waits")["status"]["phase"])


@JUMPS
def test_limits_of_workflows_are_kept_by_elapsed_time(own_world: World, jump_s: float) -> None:
    """A wait of a minute takes a minute and no deadline is hit by it, whatever the machine's clock says meanwhile."""
    times = Times()
    suspended(own_world, "60")
    engine = engine_of(own_world, times)
    seen = engine.step(-1)
    times.pass_by(30)
    times.wall_s += jump_s
    seen = engine.step(seen)
    assert phase(own_world) == "Running"

    times.pass_by(29)
    seen = engine.step(seen)
    assert phase(own_world) == "Running"
    times.pass_by(2)
    engine.step(seen)
    assert phase(own_world) == "Succeeded"


@JUMPS
def test_limits_are_kept_by_the_next_engine_too(own_world: World, jump_s: float) -> None:
    """An engine that is started after the clock was set goes on by the time of the one before."""
    times = Times()
    suspended(own_world, "60")
    first = engine_of(own_world, times)
    first.clock.keep()
    first.step(-1)
    times.pass_by(30)
    times.wall_s += jump_s
    second = engine_of(own_world, times)
    second.step(-1)
    assert phase(own_world) == "Running"
    times.pass_by(31)
    second.step(-1)

    assert phase(own_world) == "Succeeded"


@JUMPS
def test_machine_s_clock_is_followed_once_nobody_waits(own_world: World, jump_s: float) -> None:
    """With no Workflow open, the engine's moments are the machine's again, and are kept for the next engine."""
    times = Times()
    engine = engine_of(own_world, times)
    seen = engine.step(-1)
    times.wall_s += jump_s
    engine.step(seen)

    assert not engine.clock.is_apart()
    assert engine.clock.now() == engine.clock.wall()
    assert engine_of(own_world, times).clock.offset_s == engine.clock.offset_s


def test_clock_of_an_earlier_boot_is_not_gone_by(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Seconds since boot begin anew with it: what was kept then says nothing; neither does a file that is cut off."""
    times, file = Times(), tmp_path / "clock.json"
    before = times.clock(file)
    before.keep()
    times.wall_s += HOUR_S
    assert times.clock(file).offset_s == before.offset_s
    (tmp_path / "boot").write_text("another")
    monkeypatch.setattr(clocks, "BOOT_ID", tmp_path / "boot")
    assert times.clock(file).offset_s == before.offset_s + HOUR_S
    file.write_text('{"boot"')

    assert times.clock(file).offset_s == before.offset_s + HOUR_S


def test_small_corrections_are_no_jump(tmp_path: Path) -> None:
    """What a time service corrects now and then makes no round and no difference."""
    times = Times()
    clock = times.clock(tmp_path / "clock.json")
    times.wall_s += 1.0

    assert not clock.was_set()
    assert not clock.is_apart()
    times.wall_s += HOUR_S
    assert [clock.was_set(), clock.was_set(), clock.is_apart()] == [True, False, True]


@JUMPS
def test_pods_write_down_the_engine_s_time(jump_s: float) -> None:
    """A pod's stamps are seconds since boot plus the engine's offset: back-offs and durations see no jump in them."""
    offset_s = clocks.EvenClock(Path("/nowhere/clock.json")).offset_s + jump_s
    shown = parse_time(pod_now(offset_s))
    expected_s = clocks.since_boot_s() + offset_s

    assert math.isclose(shown.timestamp(), expected_s, abs_tol=30)
    assert shown.utcoffset() == timedelta(0)

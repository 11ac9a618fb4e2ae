"""Old Workflows go by age and by number: those that ended first, never a live one, each with its pods and logs."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.local.conftest import World
from voda_flows.local import logs
from voda_flows.local.prune import AT_ONCE, DAY_S, LOOK_S, Limits, Pruning, beyond
from voda_flows.local.store import LocalStore
from voda_flows.objects import WORKFLOW_ENDED, Object, format_time

NOW = datetime(2026, 3, 1, tzinfo=UTC)
PHASES = (None, "Pending", "Running", "Succeeded", "Failed", "Error")


def workflow(name: str, phase: str | None, age_s: float = 0.0, **more: object) -> Object:
    """A Workflow that ended so long ago, or has not ended."""
    status = {} if phase is None else {"phase": phase}
    if phase in WORKFLOW_ENDED:
        status["finishedAt"] = format_time(NOW - timedelta(seconds=age_s))
    metadata = {"name": name, "namespace": "default", **more}
    return {"kind": "Workflow", "metadata": metadata, "spec": {}, "status": status}


def names(workflows: list[Object], **limits: float) -> list[str]:
    """Names of those that go."""
    asked = Limits(number=int(limits.get("number", 1000)), age_s=limits.get("age_s", 30 * DAY_S))
    return [key.name for key in beyond(workflows, asked, NOW)]


def test_those_that_ended_first_go() -> None:
    """Of more than the number, the first to end go; of the same moment, by name."""
    ended = [workflow("c", "Failed", 50), workflow("b", "Error", 100), workflow("a", "Succeeded", 100)]

    assert names(ended, number=1) == ["a", "b"]
    assert names(ended[::-1], number=1) == ["a", "b"]
    assert names(ended, number=3) == []


def test_those_that_are_too_old_go() -> None:
    """Beyond the age one goes however few there are; at the age it stays."""
    assert names(
        [workflow("old", "Failed", 11), workflow("at", "Failed", 10), workflow("new", "Error", 1)], age_s=10
    ) == ["old"]


def test_runs_of_cron_workflows_are_left_to_their_own_limits() -> None:
    """What a cron workflow made is counted and pruned by it."""
    run = workflow("run", "Succeeded", 100 * DAY_S, labels={"workflows.argoproj.io/cron-workflow": "c"})

    assert names([run], number=1) == []


@given(
    st.lists(st.tuples(st.sampled_from(PHASES), st.integers(0, 50), st.booleans()), max_size=20),
    st.integers(1, 10),
    st.integers(0, 50),
)
def test_never_a_live_one_oldest_first(rows: list[tuple[str | None, int, bool]], number: int, age_s: int) -> None:
    """What goes has ended; what stays is within both limits and ended no sooner than any that goes."""
    workflows = [
        workflow(f"w{index}", phase, age, **({"deletionTimestamp": "x"} if deleted else {}))
        for index, (phase, age, deleted) in enumerate(rows)
    ]
    gone = names(workflows, number=number, age_s=age_s)
    age_by_name = {f"w{index}": age for index, (_, age, _) in enumerate(rows)}
    ended = [f"w{index}" for index, (phase, _, deleted) in enumerate(rows) if phase in WORKFLOW_ENDED and not deleted]
    stay = [name for name in ended if name not in gone]

    assert set(gone) <= set(ended)
    assert len(stay) <= number
    assert all(age_by_name[name] <= age_s for name in stay)
    assert all(age_by_name[left] <= age_by_name[name] for left in stay for name in gone)
    assert len(gone) == max(len(ended) - number, sum(age_by_name[name] > age_s for name in ended))


def with_settings(store: LocalStore, **data: str) -> None:
    """Write the scheduler's settings."""
    store.create({"kind": "ConfigMap", "metadata": {"name": "voda-config", "namespace": "voda"}, "data": data})


def test_settings_say_how_many_stay(tmp_path: Path) -> None:
    """The ConfigMap's numbers hold, a bounded number goes at once, and it is looked again only after a while."""
    store, now_s = LocalStore(tmp_path), [0.0]
    for number in range(AT_ONCE + 5):
        store.create(workflow(f"w{number:03d}", "Succeeded", 1000 - number))
    with_settings(store, keep_workflows="3", keep_days="1")
    pruning = Pruning(store, clock=lambda: now_s[0])

    def marked() -> int:
        return sum("deletionTimestamp" in body["metadata"] for body in store.list("Workflow"))

    pruning.turn(NOW)
    assert (marked(), pruning.is_due()) == (AT_ONCE, True)
    pruning.turn(NOW)
    assert (marked(), pruning.is_due()) == (AT_ONCE + 2, False)
    store.merge_patch("ConfigMap", "voda", "voda-config", {"data": {"keep_workflows": "1"}})
    pruning.turn(NOW)
    assert marked() == AT_ONCE + 2
    now_s[0] += LOOK_S
    pruning.turn(NOW)
    assert [
        body["metadata"]["name"] for body in store.list("Workflow") if "deletionTimestamp" not in body["metadata"]
    ] == [f"w{AT_ONCE + 4:03d}"]


@pytest.mark.parametrize("data", [{"keep_workflows": "none"}, {"keep_days": "-1"}, {"keep_nothing": "1"}])
def test_settings_that_are_none_prune_nothing(tmp_path: Path, data: dict[str, str]) -> None:
    """With settings that are refused nobody knows what may go, so nothing goes."""
    store = LocalStore(tmp_path)
    store.create(workflow("old", "Succeeded", 365 * DAY_S))
    with_settings(store, **data)
    Pruning(store).turn(NOW)

    assert "deletionTimestamp" not in store.get("Workflow", "default", "old")["metadata"]


def test_pruned_workflow_takes_pods_and_logs_along(own_world: World) -> None:
    """With the real engine: an old Workflow goes with its pods' folders and logs; checkpoints on the volume stay."""
    world = own_world
    kept = world.home / "volumes" / "voda" / "checkpoint"
    kept.parent.mkdir(parents=True)
    kept.write_text("x")
    with_settings(world.store, keep_days="0")
    template = {"name": "main", "container": {"image": "i", "command": ["true"]}}
    world.workflow("old", template)
    world.begin()
    uid = world.store.get("Workflow", "default", "old")["metadata"]["uid"]

    # A fresh engine looks at once; what ends later goes a minute later.
    world.phase("Workflow", "old", "Succeeded")
    (world.home / "logs" / uid).mkdir(parents=True)
    Pruning(world.store).turn(datetime.now(UTC) + timedelta(days=1))
    assert world.gone("Workflow", "old")
    assert world.happens(lambda: world.store.list("Pod") == [])
    assert list((world.home / "pods").iterdir()) == []
    assert logs.kept(world.home, uid) == []
    assert not (world.home / "logs" / uid).exists()
    assert kept.read_text() == "x"

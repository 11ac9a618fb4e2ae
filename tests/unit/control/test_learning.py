"""What drivers say fills the observation; it is read once, kept, bounded, and costs nothing where there is no news."""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from scheduler_core.errors import Forbidden
from scheduler_core.estimate.costs import Changes
from scheduler_core.estimate.rows import History
from scheduler_core.model.job import Job, JobPhase
from scheduler_core.model.observation import Observation
from scheduler_core.model.resizes import ResizeCosts
from tests.unit.control.test_reports import Driver, driver, reports_of
from tests.unit.control.world import World
from tests.unit.core.builders import NOW_S, cluster, queued, running, seen, spec
from tests.unit.core.estimates import epochs_at, noisy, row
from voda_flows.control.kept import LEARNED_MAP, JobLearned, Kept, Learned, bounded
from voda_flows.control.learning import Learning
from voda_flows.control.lease import EPOCH
from voda_flows.control.reports import DriverStatus, Reports
from voda_flows.control.rows import ResizeSaid, read_resizes, read_rows
from voda_flows.local.store import LocalStore
from voda_flows.wire import from_json, to_json

__all__ = ["driver"]
ROW: dict[str, Any] = {
    "kind": "epoch", "time_s": 9.0, "segment": 1, "epoch": 0, "step": 2, "samples": 5, "world_size": 2, "steps": 2,
    "batch": 2.5, "loss": None, "compute_s": 0.6, "communication_s": 0.4, "gradient_bytes": 400, "metrics": {},
}  # fmt: skip


class InMemory(Kept):
    """What is kept, for a test to look at."""

    def __init__(self, learned: Learned | None = None) -> None:
        self.learned = learned or Learned()
        self.saves = 0

    def load(self) -> Learned:
        """What was saved."""
        return self.learned

    def save(self, learned: Learned) -> None:
        """Through JSON, as it would be kept."""
        self.learned = from_json(to_json(learned), Learned)
        self.saves += 1


def said(*rows: Any, first: int = 0, **changes: Any) -> DriverStatus:
    """A driver's answer with these new rows."""
    return DriverStatus(driver_uid="d", rows=rows, rows_from=first, rows_to=first + len(rows), **changes)


def observed(*jobs: Job, now_s: float = NOW_S) -> Observation:
    """Jobs on four GPUs."""
    return seen(cluster(4), *jobs, now_s=now_s)


def job_of(job_id: str = "a", **changes: Any) -> Job:
    """A running job of one to four GPUs and ten epochs."""
    return running(spec(job_id, (1, 4), epochs=10, category="digits"), "n0", **changes)


def test_rows_fill_the_observation() -> None:
    """Speeds, remaining time, step time, bytes; ten epochs of 400 samples, one done, at 100 samples/s."""
    learning = Learning(InMemory())
    filled = learning.filled(observed(job_of()), {"a": said(*epochs_at(1, *[100.0] * 6, gradient_bytes=8.0))})

    assert filled.speed_by_job["a"][1] == pytest.approx(100.0, rel=0.01)
    assert filled.remaining_s_by_job["a"] == pytest.approx(9 * 400.0 / 100.0, rel=0.01)
    assert filled.step_s_by_job == {"a": 0.75}
    assert filled.gradient_bytes_by_job == {"a": 8.0}


def test_of_a_job_that_said_nothing_nothing_is_known() -> None:
    """Everything is left out, and the costs are the defaults."""
    assert Learning(InMemory()).filled(observed(job_of()), {}) == observed(job_of())


def test_each_row_counts_once() -> None:
    """An answer that is seen again, or that was asked for earlier, teaches nothing."""
    kept = InMemory()
    learning = Learning(kept)
    answer = said(*epochs_at(1, 100.0, 101.0))
    for _ in range(3):
        learning.filled(observed(job_of()), {"a": answer})
    learning.filled(observed(job_of()), {"a": said(row(1, 102.0), first=3)})
    learning.save()

    assert kept.learned.jobs["a"].history.sizes[0].speeds == (100.0, 101.0, 102.0)
    assert learning.rows_read({"a": "d", "b": "e"}) == {"d": 4, "e": 0}


def test_another_driver_is_read_from_its_first_row() -> None:
    """The job's next segment: what is known stays, its rows are all new."""
    learning = Learning(InMemory())
    learning.filled(observed(job_of()), {"a": said(*epochs_at(1, 100.0))})

    assert learning.rows_read({"a": "e"}) == {"e": 0}


def test_a_scheduler_that_restarts_goes_on() -> None:
    """What was kept tells the same, and the rows that were read are not read again."""
    kept = InMemory()
    first = Learning(kept)
    before = first.filled(observed(job_of()), {"a": said(*epochs_at(1, *[100.0] * 6))})
    first.save()
    second = Learning(kept)

    assert second.filled(observed(job_of()), {}) == before
    assert second.rows_read({"a": "d"}) == {"d": 7}


def test_the_second_job_of_a_category_starts_from_the_first() -> None:
    """It has not said a word, and the first is gone."""
    learning = Learning(InMemory())
    rows = [*epochs_at(1, *[100.0] * 6), *epochs_at(2, *[150.0] * 6, since_s=100.0)]
    learning.filled(observed(job_of()), {"a": said(*rows)})
    new = queued(spec("b", (1, 4), epochs=2, category="digits"))
    filled = learning.filled(observed(new), {})

    assert filled.speed_by_job["b"][2] == pytest.approx(150.0, rel=0.02)
    assert filled.remaining_s_by_job["b"] == pytest.approx(8.0, rel=0.02)
    other = queued(spec("c", (1, 4), category="text"))
    assert "c" not in learning.filled(observed(other), {}).speed_by_job


def test_noise_changes_no_table() -> None:
    """A row that says the same within ten percent leaves the very same table."""
    learning = Learning(InMemory())
    before = learning.filled(observed(job_of()), {"a": said(*epochs_at(1, *[100.0] * 6))})
    after = learning.filled(observed(job_of()), {"a": said(row(1, 103.0), first=7)})

    assert after.speed_by_job == before.speed_by_job


def test_news_are_told_every_ten_seconds_at_most() -> None:
    """A job that reports another speed in each row changes its table no more often, and at last it is right."""
    learning = Learning(InMemory())
    tables = []
    for number in range(120):
        rows = [row(1, 100.0 if number < 70 and number // 7 % 2 else 200.0)] if number < 100 else []
        filled = learning.filled(observed(job_of(), now_s=NOW_S + number), {"a": said(*rows, first=number)})
        tables.append(filled.speed_by_job.get("a", ()))
    changes = [number for number in range(2, 120) if tables[number] != tables[number - 1]]

    assert all(later - earlier >= 10 for earlier, later in itertools.pairwise(changes))
    assert 2 < len(changes) < 12
    assert tables[-1][1] == pytest.approx(200.0, rel=0.11)


def test_costs_of_changes_are_learned() -> None:
    """Starts from the grant to the first step, growths and shrinkings by what drivers say, each once."""
    learning = Learning(InMemory())
    resizes = [ResizeSaid(kind="start", to_size=1, first_step_s=NOW_S + 9.0, still_s=None)]
    resizes += [ResizeSaid(kind="grow", to_size=2, first_step_s=0.0, still_s=4.0)] * 10
    resizes += [ResizeSaid(kind="replace", to_size=2, first_step_s=0.0, still_s=99.0)]
    answer = said(resizes=tuple(resizes))
    for _ in range(20):
        filled = learning.filled(observed(job_of()), {"a": answer})

    assert filled.costs.grow.base_s == 4.0
    assert filled.costs.start == ResizeCosts().start
    assert filled.costs.shrink == ResizeCosts().shrink


def test_a_restart_costs_its_stop_and_its_start() -> None:
    """Told to stop at 0 s, at its gate at 8 s, first step 5 s after the grant: 13 s, whatever it waited."""
    kept = InMemory()
    learning = Learning(kept)
    stopping = job_of(phase=JobPhase.STOPPING, stop_written=True)
    waiting = queued(stopping.spec)
    for now_s, job in ((1000.0, stopping), (1006.0, stopping), (1008.0, waiting), (1500.0, waiting)):
        learning.filled(observed(job, now_s=now_s), {})
    start = ResizeSaid(kind="start", to_size=1, first_step_s=1605.0, still_s=None)
    learning.filled(observed(job_of(granted_s=1600.0), now_s=1606.0), {"a": said(resizes=(start,))})
    learning.save()

    assert kept.learned.changes == {
        "start": Changes(gpus=(1,), seconds=(5.0,)),
        "restart": Changes(gpus=(1,), seconds=(13.0,)),
    }


def test_many_new_rows_are_learned_from_over_several_rounds() -> None:
    """A scheduler that finds a thousand jobs with rows makes its first round all the same; no row is left out."""
    learning = Learning(InMemory())
    jobs = [job_of(f"j{number:03}") for number in range(500)]
    heard = {job.id: said(*epochs_at(1, *[100.0] * 6)) for job in jobs}
    known = [len(learning.filled(observed(*jobs), heard).speed_by_job) for _ in range(20)]

    assert known[0] < 500 == known[-1]
    assert learning.rows_read({job.id: "d" for job in jobs[-1:]}) == {"d": 7}


def test_what_is_learned_is_kept_once_a_minute() -> None:
    """And only where something is new."""
    kept = InMemory()
    learning = Learning(kept)
    for number in range(100):
        rows = [row(1, 100.0)] if number < 50 else []
        learning.filled(observed(job_of(), now_s=NOW_S + number * 10.0), {"a": said(*rows, first=number)})

    assert kept.saves == 10


def test_what_is_kept_is_bounded() -> None:
    """Those heard of last stay."""
    jobs = {
        f"j{number:04}": JobLearned(history=History(sizes=(noisy(1, 1.0),), last_s=float(number)))
        for number in range(4_000)
    }
    found = bounded(Learned(jobs=jobs, categories={"old": History(last_s=1.0)}))

    assert len(to_json(found)) < 700_000
    assert 500 < len(found.jobs) < 4_000
    assert max(jobs) in found.jobs
    assert min(jobs) not in found.jobs
    assert found.categories == {"old": History(last_s=1.0)}


def test_it_is_kept_in_a_config_map(tmp_path: Path) -> None:
    """Made, replaced, read; what somebody spoilt counts as nothing, and nobody writes over a later holder."""
    store = LocalStore(tmp_path)
    kept = Kept(store, "voda")
    assert kept.load() == Learned()
    for speed in (1.0, 2.0):
        learned = Learned(jobs={"a": JobLearned(history=History(sizes=(noisy(1, speed),)))})
        kept.save(learned)
        assert kept.load() == learned

    spoilt = {"data": {"learned": "{"}, "metadata": {"annotations": {EPOCH: "no number"}}}
    store.merge_patch("ConfigMap", "voda", LEARNED_MAP, spoilt)
    kept.save(learned)
    assert kept.load() == Learned()


class Closed(LocalStore):
    """A store in which nobody may do anything, as before the rights of a new version were installed."""

    def get(self, kind: str, namespace: str, name: str) -> Any:
        """Not allowed."""
        raise Forbidden("expected to be allowed to")


def test_what_must_not_be_read_stops_nothing(tmp_path: Path) -> None:
    """A scheduler that may not read it learns without keeping."""
    learning = Learning(Kept(Closed(tmp_path), "voda"))
    filled = learning.filled(observed(job_of()), {"a": said(*epochs_at(1, *[100.0] * 6))})

    assert filled.speed_by_job["a"][1] == pytest.approx(100.0, rel=0.01)


@pytest.mark.parametrize(
    "change",
    [{"kind": "other"}, {"time_s": None}, {"steps": True}, {"samples": -1}, {"compute_s": 1e300}, {"world_size": "2"}],
)
def test_rows_that_make_no_sense_are_left_out(change: dict[str, Any]) -> None:
    """Whatever a job answers, what is not in range is no row."""
    assert len(read_rows([ROW])) == 1
    assert read_rows([ROW | change, 3, None]) == ()
    assert read_rows({"no": "list"}) == ()


def test_resize_records_are_read_in_order() -> None:
    """What is missing is None; their number is what counts."""
    records = [{"kind": "grow", "to_size": 3, "first_step_s": 1.0, "still_s": 0.5}, {"kind": "stop", "still_s": "x"}]

    assert read_resizes(records) == (
        ResizeSaid(kind="grow", to_size=3, first_step_s=1.0, still_s=0.5),
        ResizeSaid(kind="stop", to_size=0, first_step_s=None, still_s=None),
    )


def test_new_rows_are_asked_for_where_somebody_learns(driver: Driver) -> None:
    """The same answer serves both paths here: seven rows, of which five are known."""
    driver.body = {"driver_uid": "d", "rows": 7, "next": 7}
    driver.body["resizes"] = [{"kind": "grow", "to_size": 3, "still_s": 0.5}]
    reports = reports_of(driver)
    plain = reports.pull({"d": "127.0.0.1"})["d"]
    assert (plain.rows_to, len(plain.resizes)) == (0, 1)

    body = json.loads(json.dumps(driver.body))
    driver.body = body | {"rows": 7}
    asked = reports.pull({"d": "127.0.0.1"}, {"d": 5})["d"]
    assert (asked.rows, asked.rows_from, asked.rows_to) == ((), 5, 7)
    assert reports.pull({"d": "127.0.0.1"}, {"d": 7})["d"].rows_to == 0
    reports.close()


class Rows(Reports):
    """A driver that has said all its rows to whoever asks for them."""

    def __init__(self, answers: dict[str, DriverStatus]) -> None:
        super().__init__()
        self.answers = answers
        self.asked: list[dict[str, int]] = []

    def pull(
        self, address_by_uid: Mapping[str, str], rows_read: Mapping[str, int] | None = None
    ) -> dict[str, DriverStatus]:
        """What was asked is noted."""
        self.asked.append(dict(rows_read or {}))
        return {uid: self.answers[uid] for uid in address_by_uid if uid in self.answers}


def test_the_observer_asks_for_rows_and_tells_speeds(tmp_path: Path) -> None:
    """From a Workflow's driver to the observation that a decision is made on."""
    world = World(tmp_path)
    world.submit("digits", min_gpus="2", max_gpus="2")
    world.cycle()
    world.run_pods()
    world.cycle()
    uid = world.view().driver_uid
    rows = Rows({uid: DriverStatus(driver_uid=uid, rows=tuple(epochs_at(2, *[80.0] * 6)), rows_to=7)})
    world.observer._reports = rows
    world.observer.learn_by(Learning(Kept(world.store, "voda")))
    (table,) = world.observer.observe().speed_by_job.values()
    world.observer.observe()

    assert table[2] == pytest.approx(80.0, rel=0.01)
    assert rows.asked == [{uid: 0}, {uid: 7}]


@pytest.mark.parametrize("speed", [1e-30, 1e30])
def test_speeds_beyond_reason_stop_nothing(speed: float) -> None:
    """A job may say what it likes of itself: whatever becomes of its table, others have theirs."""
    learning = Learning(InMemory())
    odd = [row(gpus, speed**gpus, time_s=1e9) for gpus in (1, 1, 2, 2, 3, 3)]
    filled = learning.filled(
        observed(job_of("a"), running(spec("b", (1, 10**9)), "n0")),
        {"a": said(*odd), "b": said(*epochs_at(1, *[100.0] * 6))},
    )

    assert all(math.isfinite(value) and value >= 0 for table in filled.speed_by_job.values() for value in table)
    assert filled.speed_by_job["b"][1] == pytest.approx(100.0, rel=0.01)


def test_every_job_has_its_turn() -> None:
    """All have new rows in each round, more than a round makes tables for; the last is told of no later than others."""
    learning = Learning(InMemory())
    jobs = [job_of(f"j{number:03}") for number in range(100)]
    told = set[str]()
    for turn in range(8):
        heard = {job.id: said(row(1, 100.0 + turn), first=turn) for job in jobs}
        told = set(learning.filled(observed(*jobs), heard).speed_by_job)

    assert told == {job.id for job in jobs}

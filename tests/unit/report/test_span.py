"""Reports over a part of the history: what is in, what is clipped, and what the numbers then mean."""

from __future__ import annotations

import pytest

from scheduler_core.errors import InvalidValue
from tests.unit.report.five_jobs import five_jobs
from tests.unit.report.many_jobs import many_jobs
from tests.unit.report.world import START_S, Building, at, node, resize, row
from voda_flows.report.lives import lives
from voda_flows.report.record import NodeRecord, Record, Sources, document, record
from voda_flows.report.span import EVERYTHING, Span
from voda_flows.report.statistics import Distribution, distribution
from voda_flows.report.summary import Summary


def one() -> Building:
    """A job on one GPU: waits 10 s, runs, is preempted at 30, goes on at 51, ends at 81."""
    job = Building(name="a").grant(10, ("w0", "n0")).publish("w0").stop(30, "resize", "w0")
    job.grant(51, ("w0", "n0")).publish("w0").stop(80, "done", "w0")
    job.wrote(0, resize("start", 0, 1, 14), resize("stop", 1, 0, 29), rows=(row(20, 1, 20, loss=0.5),)).judged(0, 25)
    return job.wrote(1, resize("start", 0, 1, 53), rows=(row(70, 2, 40, loss=0.25),)).judged(1, 50, state="done")


def over(from_s: float | None, to_s: float | None, *jobs: Building, now: float = 200.0) -> Record:
    """The record of some jobs over a span in seconds after the start, on a node with two slots."""
    found = [life for job in jobs for life in lives(job.workflow(), job.pods.values())]
    files = {life.id: job.files for job, life in zip(jobs, found, strict=True)}
    span = Span(
        from_s=None if from_s is None else START_S + from_s,
        to_s=None if to_s is None else START_S + to_s,
    )
    return record(found, Sources(now_s=START_S + now, nodes=(node("n0", 2),), files=files), span)


def test_a_job_that_crosses_both_borders_is_told_as_it_stood_at_the_end() -> None:
    """At 60 it ran in its second segment: no end, no later row; utilisation and counts are of the span only."""
    made = over(20, 60, one())
    (job,) = made.jobs

    assert (job.life.phase, job.life.ended_s, len(job.rows)) == ("Running", None, 1)
    assert [event.kind for event in job.happened][-3:] == ["queue", "grant", "resume"]
    assert (made.from_s - START_S, made.to_s - START_S) == (20, 60)
    assert made.busy() == ((START_S + 20, 1), (START_S + 30, 0), (START_S + 51, 1), (START_S + 60, 0))
    assert made.utilisation == pytest.approx((10 + 9) / (2 * 40))
    assert made.ended == ()


@pytest.mark.parametrize(
    ("to_s", "phase", "segments"),
    [(5, "Queued", 1), (20, "Running", 1), (30.7, "Stopping", 1), (40, "Queued", 2), (82, "Succeeded", 2)],
)
def test_a_job_has_the_phase_that_it_had_at_the_end_of_the_span(to_s: float, phase: str, segments: int) -> None:
    """Waiting, running, stopping at a checkpoint, waiting again, ended."""
    (job,) = over(None, to_s, one()).jobs

    assert (job.life.phase, len(job.life.segments)) == (phase, segments)


def test_jobs_outside_the_span_are_left_out() -> None:
    """One that ended before it, one that came after it; one that still runs is in, whenever it came."""
    before = one()
    after = Building(name="b", uid="2", submitted=150)
    running = Building(name="c", uid="3", submitted=1).grant(2, ("w0", "n0"))

    assert [job.life.label for job in over(100, 140, before, after, running).jobs] == ["c"]


def test_a_span_in_which_nothing_lived_is_empty() -> None:
    """No jobs, nothing held, no statistics: said as such, not an error."""
    made = over(500, 600, one(), now=1000.0)

    assert (made.jobs, made.utilisation, made.busy()) == ((), 0.0, ((START_S + 500, 0),))
    assert document(made)["statistics"] == {}


def test_without_a_span_everything_is_told_whatever_the_clock_says() -> None:
    """A clock that was put back makes no job shorter."""
    made = over(None, None, one(), now=-3600.0)

    assert made.span == EVERYTHING
    assert made.jobs[0].life.phase == "Succeeded"


def test_a_span_begins_before_it_ends() -> None:
    """The error names both."""
    with pytest.raises(InvalidValue, match=r"begins before it ends, found one from 1970-01-01T00:00:10Z to 1970"):
        Span(from_s=10, to_s=5)


def _parts(numbers: Summary) -> float:
    """Queueing, preempted, starting and training together."""
    return numbers.queue_s + numbers.preempted_s + numbers.starting_s + numbers.training_s


def test_the_parts_of_a_life_add_up_to_it() -> None:
    """Every moment of every job is in exactly one part, whatever happened to it and wherever the span ends."""
    for made in (five_jobs(), many_jobs(80), many_jobs(80, Span(to_s=START_S + 2000))):
        for job in made.jobs:
            assert _parts(job.numbers) == pytest.approx(job.numbers.jct_s), job.life.label


def test_time_preempted_is_not_queueing() -> None:
    """Queueing ends with the first grant; what a job waits later is time preempted; starts are apart."""
    numbers = over(None, None, one()).jobs[0].numbers

    assert (numbers.queue_s, numbers.preempted_s, numbers.starting_s) == (10.0, 20.5, 4.0 + 2.0)


def test_a_job_that_never_started_only_queued() -> None:
    """Without a grant all of its life is queueing, also where no engine has looked at it."""
    waits = over(None, None, Building(name="a"), now=50.0).jobs[0].numbers

    assert (waits.queue_s, waits.jct_s, waits.training_s) == (50.0, 50.0, 0.0)


def test_times_are_summed_up_over_jobs_that_succeeded_in_the_span() -> None:
    """One that failed, one that still runs and one that ended later do not count."""
    failed = Building(name="b", uid="2").finish(20, "Failed")
    running = Building(name="c", uid="3")

    assert document(over(None, None, one(), failed, running))["statistics"]["jct_s"]["count"] == 1
    assert document(over(None, 60, one(), failed, running))["statistics"] == {}


def test_a_distribution_has_mean_median_and_the_value_that_95_of_100_do_not_exceed() -> None:
    """By hand: of 1..100, 95 are at most 95."""
    assert distribution(float(number) for number in range(1, 101)) == Distribution(
        count=100, mean=50.5, median=50.5, p95=95.0, longest=100.0
    )
    assert distribution([]) is None


def test_a_node_that_is_gone_keeps_its_rows_and_counts_while_it_was_held() -> None:
    """After `voda up` with other nodes, what was held before is neither lost nor more than there was."""
    job = Building(name="a").grant(0, ("w0", "old"), ("w1", "old")).publish("w0", "w1").stop(50, "done", "w0", "w1")
    (life,) = lives(job.workflow(), job.pods.values())
    there = node("new", 1)
    there["metadata"]["creationTimestamp"] = at(50)

    made = record([life], Sources(now_s=START_S + 100, nodes=(there,), files={}), Span(to_s=START_S + 100))

    assert made.nodes == (
        NodeRecord(name="new", slots=1, from_s=START_S + 50),
        NodeRecord(name="old", slots=2, from_s=START_S, to_s=START_S + 50),
    )
    assert made.utilisation == pytest.approx(100 / (100 + 50))
    assert made.slots == 1


def test_jobs_that_wait_are_counted_over_time() -> None:
    """Each wait at a gate counts, the one after a preemption too."""
    assert over(None, None, one()).waiting()[:5] == (
        (START_S, 1),
        (START_S + 10, 0),
        (START_S + 31, 1),
        (START_S + 51, 0),
    )

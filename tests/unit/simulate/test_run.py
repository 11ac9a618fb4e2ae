"""The production cycle on a virtual clock: whole lives, to the second."""

from __future__ import annotations

from random import Random

from hypothesis import given
from hypothesis import strategies as st

from scheduler_core.model.params import Params
from scheduler_core.simulate.record import Outcome
from scheduler_core.simulate.run import simulate
from scheduler_core.simulate.scenario import NodeLoss, Scenario, SimulatedJob
from tests.unit.simulate.builders import COSTLY, ELASTIC, FIFO, FREE, job, scenario


def _ends(outcome: Outcome) -> dict[str, float | None]:
    return {record.job_id: record.ended_s for record in outcome.jobs}


def test_rigid_jobs_wait_in_turn() -> None:
    """Two jobs that need all GPUs run one after the other; a start costs its seconds each time."""
    outcome = simulate(scenario(job("x", 0, 40, 4), job("y", 1, 40, 4), costs=COSTLY), FIFO)
    assert _ends(outcome) == {"x": 14.0, "y": 28.0}
    assert [record.started_s for record in outcome.jobs] == [0.0, 14.0]
    assert [record.still_s for record in outcome.jobs] == [4.0, 4.0]
    assert [record.attained_gpu_s for record in outcome.jobs] == [56.0, 56.0]


def test_elastic_job_shrinks_for_another_and_grows_again() -> None:
    """Alone 4 GPUs from 4 s on; from 10 s half, after 1 s of shrinking; the other starts then and both end."""
    outcome = simulate(scenario(job("x", 0, 60, 1, 4), job("y", 10, 8, 1, 4), costs=COSTLY), ELASTIC)
    # x: 24 samples by 10 s, still until 11, 2 samples/s until y ends at 11 + 4 + 4 = 19 (16 more), still until 21,
    # then 20 samples at 4 samples/s.
    assert _ends(outcome) == {"x": 26.0, "y": 19.0}
    assert [(record.documents, record.segments, record.stops) for record in outcome.jobs] == [(3, 1, 0), (1, 1, 0)]


def test_jobs_at_one_moment_and_of_no_length() -> None:
    """Jobs that arrive together start together; one without work ends where it started; its GPUs go on at once."""
    outcome = simulate(scenario(job("x", 5, 0, 4), job("y", 5, 0, 4), job("z", 5, 8, 4)), FIFO)
    assert _ends(outcome) == {"x": 5.0, "y": 5.0, "z": 7.0}


def test_lost_node_stops_a_rigid_job_until_another_has_room() -> None:
    """A job that lost some of its workers and cannot shrink stops, and goes on with what it had done."""
    losses = (NodeLoss(node="b", lost_s=9.0, back_s=20.0),)
    outcome = simulate(scenario(job("x", 0, 40, 4), gpus=(2, 2), costs=COSTLY, losses=losses), FIFO)
    # 4 s start, 20 samples by 9 s, back at 20 s, 4 s start, 20 samples more.
    assert _ends(outcome) == {"x": 29.0}
    assert (outcome.jobs[0].stops, outcome.jobs[0].segments, outcome.jobs[0].lost_workers) == (1, 2, 2)


def test_lost_node_shrinks_an_elastic_job_in_place() -> None:
    """A job that can go on smaller does, and grows when the node is back."""
    losses = (NodeLoss(node="b", lost_s=9.0, back_s=20.0),)
    outcome = simulate(scenario(job("x", 0, 58, 1, 4), gpus=(2, 2), costs=COSTLY, losses=losses), ELASTIC)
    # 20 samples by 9 s, still until 10, 20 by 20 s, still until 22, 18 more at 4 samples/s.
    assert _ends(outcome) == {"x": 26.5}
    assert (outcome.jobs[0].stops, outcome.jobs[0].segments) == (0, 1)


def test_rate_limit_ends_with_a_look() -> None:
    """What the rate limit put off is done when it ends, though nothing else happens then."""
    params = Params(policy="elastic_fifo", decide_interval_s=30.0)
    jobs = (job("x", 1, 1000, 1, 4), job("y", 10, 4, 1, 1), job("z", 20, 1000, 1, 4))
    outcome = simulate(scenario(*jobs), params)
    # At 477 s one of the two with half the GPUs each ends, and the other takes all: (1000 - 36 - 90) / 2 + 40.
    assert [record.time_s for record in outcome.decisions if record.disturbed] == [10.0, 40.0, 477.0]


def test_job_that_never_fits_is_reported_unended() -> None:
    """A job larger than the cluster leaves a record without start and end, and the run ends."""
    outcome = simulate(scenario(job("x", 0, 1, 8), job("y", 0, 4, 4)), FIFO)
    assert _ends(outcome) == {"x": None, "y": 1.0}


JOBS = st.lists(
    st.tuples(st.integers(0, 20), st.integers(0, 60), st.integers(1, 4), st.integers(0, 4)), min_size=1, max_size=6
).map(
    lambda rows: [
        job(f"j{place}", float(at), float(samples), low, low + more)
        for place, (at, samples, low, more) in enumerate(rows)
    ]
)
LOSSES = st.sampled_from(((), (NodeLoss(node="b", lost_s=7.0, back_s=15.0),), (NodeLoss(node="a", lost_s=3.0),)))


@given(jobs=JOBS, losses=LOSSES, chance=st.randoms(use_true_random=False), costly=st.booleans())
def test_order_of_input_changes_no_byte(
    jobs: list[SimulatedJob], losses: tuple[NodeLoss, ...], chance: Random, costly: bool
) -> None:
    """Permuted jobs give byte-identical records."""
    mixed = list(jobs)
    chance.shuffle(mixed)
    costs = COSTLY if costly else FREE
    one, other = (scenario(*some, gpus=(4, 4), costs=costs, losses=losses) for some in (jobs, mixed))
    assert repr(simulate(one, ELASTIC)) == repr(simulate(other, ELASTIC))


@given(jobs=JOBS, costly=st.booleans())
def test_laws_of_a_run(jobs: list[SimulatedJob], costly: bool) -> None:
    """Every job that fits ends, never before it could; GPU seconds are its work and its standing still."""
    made: Scenario = scenario(*jobs, gpus=(4, 4), costs=COSTLY if costly else FREE)
    outcome = simulate(made, ELASTIC)
    for record, simulated in zip(outcome.jobs, made.jobs, strict=True):
        assert record.ended_s is not None
        assert record.started_s is not None
        assert record.ended_s >= record.started_s + simulated.samples / simulated.spec.max_gpus - 1e-9
        still_gpu_s = record.attained_gpu_s - simulated.samples
        least, most = simulated.spec.min_gpus * record.still_s, simulated.spec.max_gpus * record.still_s
        assert least - 1e-6 <= still_gpu_s <= most + record.documents * 8 + 1e-6
    assert not any(record.fault for record in outcome.decisions)

"""Speed tables, remaining time and costs of changes as they are learned from reports: worked rows."""

from __future__ import annotations

import math

import pytest

from scheduler_core.estimate.categories import STANDS_S, as_of_category, with_job
from scheduler_core.estimate.costs import Changes, learned_costs
from scheduler_core.estimate.remaining import remaining_s
from scheduler_core.estimate.rows import History, taught
from scheduler_core.estimate.seen import KEPT
from scheduler_core.estimate.speeds import AGE_S, EXPLORE, TRUST_S, holds_until_s, is_news, no_faster, speed_table
from scheduler_core.model.resizes import ResizeCost, ResizeCosts, ResizeKind
from tests.unit.core.builders import spec
from tests.unit.core.estimates import epochs_at, noisy, row, stretches

NOTHING = History()


def test_the_first_row_after_a_start_or_a_resize_does_not_count() -> None:
    """Its steps are slower: of 50, 100, 102 the median is 101."""
    known = taught(NOTHING, [*epochs_at(1, 100.0, 102.0), *epochs_at(2, 180.0, since_s=100.0)])

    assert [(seen.gpus, seen.speeds) for seen in known.sizes] == [(1, (100.0, 102.0)), (2, (180.0,))]


def test_a_first_row_that_is_long_counts() -> None:
    """Of ten minutes the warm-up is a small part."""
    known = taught(NOTHING, [row(1, 100.0, length_s=600.0)])

    assert known.sizes[0].speed == 100.0


def test_a_part_of_an_epoch_says_as_much_as_a_whole_one() -> None:
    """After a resize within an epoch its row covers fewer steps; the speed is theirs."""
    known = taught(NOTHING, [row(2, 90.0), row(2, 200.0, length_s=2.0), row(2, 200.0)])

    assert known.sizes[0].speeds == (200.0, 200.0)


def test_rows_of_steps_are_not_counted_again_with_their_epoch() -> None:
    """An epoch's row covers the same steps as the rows between."""
    steps = [row(1, 100.0, kind="step"), row(1, 100.0, kind="step"), row(1, 100.0, kind="step")]
    known = taught(NOTHING, [*steps, row(1, 77.0), row(1, 77.0)])

    assert known.sizes[0].speeds == (100.0, 100.0)


def test_short_rows_are_joined() -> None:
    """Twenty rows of half a second are five stretches of two, fast ones and slow ones together."""
    rows = [row(1, 100.0 + number % 2, length_s=0.5) for number in range(21)]
    known = taught(NOTHING, rows)

    assert known.sizes[0].seconds == (2.0,) * 5


def test_what_is_kept_is_bounded() -> None:
    """Only the last stretches stay."""
    known = taught(NOTHING, epochs_at(1, *(float(speed) for speed in range(100, 200))))

    assert (len(known.sizes[0].speeds), known.sizes[0].speeds[-1]) == (KEPT, 199.0)


@pytest.mark.parametrize(
    "bad", [{"steps": 0}, {"batch": 0.0}, {"batch": math.inf}, {"compute_s": 0.0, "communication_s": 0.0}]
)
def test_rows_without_a_speed_teach_none(bad: dict[str, float]) -> None:
    """No steps, no samples, no time."""
    assert not taught(NOTHING, [row(), row(**bad)]).sizes  # type: ignore[arg-type]  # one field of several types


def test_nothing_seen_is_no_table() -> None:
    """A job of which nothing is known has no table."""
    assert speed_table((), 4, 0.0) == ()


def test_sizes_with_enough_evidence_are_as_measured() -> None:
    """Between them the table is concave, and it ends below the straight line."""
    table = speed_table((noisy(1, 100.0), noisy(2, 184.0), noisy(4, 350.0)), 8, 0.0)

    assert [table[gpus] for gpus in (1, 2, 4)] == pytest.approx([100.0, 184.0, 350.0], rel=0.01)
    assert 350.0 < table[8] < 700.0


def test_one_size_gives_a_table_for_all() -> None:
    """Seen at 4 only, as once left remaining times of one second an epoch (the original divided by what it lacked)."""
    table = speed_table((noisy(4, 350.0),), 4, 0.0)

    assert table[4] == pytest.approx(350.0, rel=0.01)
    assert 350.0 / 4 < table[1] < 350.0 / 3


def test_one_noisy_row_makes_no_size_slow() -> None:
    """What was seen once, at a fifth of the speed, is still worth trying again, and the known size is not doubted."""
    table = speed_table((noisy(1, 100.0), stretches(2, 20.0)), 4, 0.0)

    assert table[1] == pytest.approx(100.0, rel=0.02)
    assert table[2] > 1.3 * table[1]


def test_a_size_is_no_faster_with_enough_evidence_only() -> None:
    """Five stretches over ten seconds, and a difference beyond their noise."""
    known = noisy(1, 100.0)

    assert no_faster((known, stretches(2, 80.0, 81.0, 80.0, 79.0)), 0.0) == math.inf
    assert no_faster((known, stretches(2, 80.0, 81.0, 80.0, 79.0, 80.0)), 0.0) == 2
    assert no_faster((known, stretches(2, 140.0, 60.0, 90.0, 190.0, 100.0, 85.0)), 0.0) == math.inf
    assert no_faster((known, noisy(2, 110.0)), 0.0) == math.inf
    assert no_faster((known, noisy(2, 100.0)), 0.0) == 2


def test_a_slow_size_between_faster_ones_is_no_limit() -> None:
    """Two GPUs on two nodes may be slow where eight are fast."""
    assert no_faster((noisy(1, 100.0), noisy(2, 80.0), noisy(8, 300.0)), 0.0) == math.inf


def test_beyond_what_is_no_faster_the_table_never_rises() -> None:
    """What 2 GPUs do not speed up, 3 are not tried for."""
    table = speed_table((noisy(1, 100.0), noisy(2, 80.0)), 4, 0.0)

    assert table[1:3] == pytest.approx((100.0, 80.0), rel=0.01)
    assert table[4] <= table[3] <= table[2]


def test_the_verdict_ages() -> None:
    """After its time the size is tried again, but none beyond it; after a second visit it holds for twice as long."""
    here = noisy(1, 100.0, last_s=5 * TRUST_S)
    once, twice = (noisy(2, 80.0, last_s=0.0, visits=visits) for visits in (1, 2))
    now_s = TRUST_S + 1

    assert no_faster((here, once), now_s) == 3
    assert speed_table((here, once), 2, now_s)[2] >= (1 + 0.99 * EXPLORE) * speed_table((here, once), 2, now_s)[1]
    assert no_faster((here, twice), now_s) == 2


def test_a_table_says_how_long_it_holds() -> None:
    """Until the next step of age, or the end of a verdict."""
    assert holds_until_s((noisy(1, 100.0), noisy(2, 80.0, last_s=100.0)), 200.0) == AGE_S
    assert holds_until_s((noisy(1, 100.0),), 100 * AGE_S) == math.inf


def test_noise_is_no_news() -> None:
    """Within ten percent and with the same best size the old table is told on."""
    assert not is_news((0.0, 100.0, 190.0), (0.0, 109.0, 175.0))
    assert is_news((0.0, 100.0, 190.0), (0.0, 100.0, 210.0))
    assert is_news((0.0, 100.0, 101.0), (0.0, 100.0, 99.0))
    assert is_news((), (0.0, 100.0))


def test_a_second_job_starts_from_what_the_first_learned() -> None:
    """Its first table is the first job's; a job twice as fast has that table twice."""
    first = taught(NOTHING, [*epochs_at(1, *[100.0] * 6), *epochs_at(2, *[150.0] * 6), *epochs_at(4, *[190.0] * 6)])
    category = with_job(NOTHING, NOTHING, first)
    new = as_of_category(NOTHING, category)
    faster = as_of_category(taught(NOTHING, epochs_at(1, *[200.0] * 6)), category)

    assert [speed_table(known.sizes, 4, 0.0)[4] for known in (first, new, faster)] == pytest.approx(
        [190, 190, 380], rel=0.01
    )
    assert [known.samples_per_epoch for known in (new, faster)] == [400.0, 400.0]


def test_jobs_of_a_category_do_not_take_turns_in_it() -> None:
    """Two that differ both report on: the first speaks for the category, until it has long been silent."""
    one, two = (taught(NOTHING, epochs_at(1, *[speed] * 6)) for speed in (100.0, 50.0))
    category = with_job(with_job(NOTHING, NOTHING, one), NOTHING, two)
    assert category.sizes == one.sizes

    later = taught(one, [row(1, 101.0, time_s=30.0)])
    category = with_job(category, one, later)
    assert category.sizes == later.sizes
    last = taught(two, [row(1, 50.0, time_s=30.0 + STANDS_S)])
    assert with_job(category, two, last).sizes == last.sizes


def test_a_category_is_not_overwritten_by_little() -> None:
    """One stretch of another job does not replace twelve."""
    first = History(sizes=(noisy(1, 100.0),))
    second = History(sizes=(stretches(1, 10.0),))
    category = with_job(with_job(NOTHING, NOTHING, first), NOTHING, second)

    assert category.sizes == first.sizes


def test_remaining_time_is_samples_left_by_the_speed_at_one_gpu() -> None:
    """Two of five epochs are done; three times 400 samples at 100 samples/s are 12 s."""
    known = taught(NOTHING, [row(epoch=0, samples=400.0), row(epoch=1, samples=800.0)])

    assert remaining_s(spec("a", (1, 4), epochs=5), known, (0.0, 100.0, 190.0)) == 12.0
    assert remaining_s(spec("a", (1, 4), epochs=5), known, (0.0, 100.0, 190.0), epochs_done=4.0) == 4.0
    assert remaining_s(spec("a", (1, 4), epochs=2), known, (0.0, 100.0, 190.0)) == 0.0


def test_rows_between_epochs_count_parts_of_them() -> None:
    """600 samples of 400 an epoch are one and a half."""
    known = taught(NOTHING, [row(epoch=0, samples=400.0), row(kind="step", epoch=1, samples=600.0)])

    assert known.epochs_done == 1.5


@pytest.mark.parametrize(("known", "table"), [(NOTHING, (0.0, 1.0)), (History(samples_per_epoch=9.0), ())])
def test_remaining_time_is_unknown_before_anything_is(known: History, table: tuple[float, ...]) -> None:
    """It is left out, not guessed."""
    assert remaining_s(spec("a"), known, table) is None


def test_costs_are_the_defaults_before_anything_is_measured() -> None:
    """The prior alone."""
    assert learned_costs({}) == ResizeCosts()


def test_costs_follow_what_is_measured_and_not_an_odd_one() -> None:
    """Growing takes 2 s and 0.1 s for each GPU; one growth of ten minutes changes nothing."""
    sizes = (2, 3, 4, 6, 8, 2, 4, 8, 6, 3, 2, 8)
    measured = Changes(gpus=(*sizes, 4), seconds=(*(2.0 + 0.1 * gpus for gpus in sizes), 600.0))
    costs = learned_costs({ResizeKind.GROW: measured})

    assert costs.seconds(ResizeKind.GROW, 8) == pytest.approx(2.8, rel=0.15)
    assert costs.shrink == ResizeCosts().shrink
    assert costs.move.base_s == pytest.approx(costs.grow.base_s + 0.5)


def test_one_measurement_hardly_changes_a_cost() -> None:
    """The default counts as four."""
    assert learned_costs({"restart": Changes(gpus=(1,), seconds=(300.0,))}).restart == ResizeCost(base_s=20.0)

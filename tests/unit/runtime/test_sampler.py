"""Every sample of an epoch once, whatever the resizes."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from voda_flows.runtime.sampler import Sampler, Share, share


@pytest.mark.parametrize(
    ("position", "rank", "size", "expected"),
    [
        (0, 0, 2, Share(0, 4, 8)),  # a full step: each rank its batch
        (0, 1, 2, Share(4, 4, 8)),
        (16, 0, 2, Share(16, 2, 3)),  # three are left for two ranks: the lower one takes more
        (16, 1, 2, Share(18, 1, 3)),
        (18, 1, 3, Share(19, 0, 1)),  # one is left for three
        (19, 0, 2, Share(19, 0, 0)),  # none is left
    ],
)
def test_a_step_is_dealt_evenly(position: int, rank: int, size: int, expected: Share) -> None:
    """A full step gives each rank `batch`; the last one deals what is left as evenly as it goes."""
    assert share(position, 19, 4, rank, size) == expected


@given(
    num_samples=st.integers(1, 200),
    batch=st.integers(1, 17),
    seed=st.integers(0, 5),
    sizes=st.lists(st.integers(1, 9), min_size=1, max_size=12),
    steps=st.lists(st.integers(0, 4), min_size=12, max_size=12),
)
def test_any_resizes_at_commits_visit_each_sample_once(
    num_samples: int, batch: int, seed: int, sizes: list[int], steps: list[int]
) -> None:
    """Worlds of any sizes, each left after any number of steps, together visit each sample exactly once an epoch."""
    state = Sampler(num_samples, batch, seed=seed).state_dict()
    seen: list[int] = []
    for size, limit in [*zip(sizes, steps, strict=False), (sizes[0], num_samples)]:
        ranks = [Sampler(num_samples, batch) for _ in range(size)]
        for rank, sampler in enumerate(ranks):
            sampler.load_state_dict(state)  # a newcomer knows only what the state tells
            sampler.place(rank, size)
        for dealt in list(zip(*ranks, strict=True))[:limit]:
            weights = [sampler.current().weight for sampler in ranks]
            assert sum(weights) == pytest.approx(1.0)
            for indices, weight in zip(dealt, weights, strict=True):
                seen += indices if weight else []
                assert indices
            for sampler in ranks:
                sampler.advance()
        assert len({str(sampler.state_dict()) for sampler in ranks}) == 1
        state = ranks[0].state_dict()

    assert sorted(seen) == list(range(num_samples))


def test_length_is_the_steps_left() -> None:
    """A loader asks how many steps there are: those left at the present size."""
    sampler = Sampler(19, 4)
    sampler.place(1, 2)
    lengths = [len(sampler)]
    while len(sampler):
        sampler.advance()
        lengths.append(len(sampler))

    assert lengths == [3, 2, 1, 0]


def test_reading_ahead_does_not_move_the_position() -> None:
    """A loader that takes lists in advance changes nothing of what a commit keeps."""
    sampler = Sampler(10, 2)
    before = sampler.state_dict()

    assert len(list(sampler)) == 5
    assert sampler.state_dict() == before


def test_what_was_prepared_for_another_epoch_or_seed_is_not_used() -> None:
    """Preparing is a hint: whatever was drawn ahead, the order is that of the state."""
    plain, hinted, resumed = Sampler(50, 5), Sampler(50, 5), Sampler(50, 5, seed=9)
    plain.start(3)
    for epoch in (3, 4):
        hinted.prepare(epoch)
        resumed.prepare(epoch)
        hinted.start(3)
        resumed.load_state_dict(plain.state_dict())

        assert list(hinted) == list(plain)
        assert list(resumed) == list(plain)


def test_the_order_is_of_seed_and_epoch_alone() -> None:
    """The same seed and epoch give the same order, another epoch another one."""
    first, again, other = Sampler(50, 50, seed=3), Sampler(50, 50, seed=3), Sampler(50, 50, seed=3)
    other.start(1)

    assert list(first) == list(again)
    assert list(first) != list(other)
    assert list(Sampler(5, 2, shuffle=False)) == [[0, 1], [2, 3], [4]]


def test_another_data_set_is_refused() -> None:
    """A position means nothing in a data set of another length."""
    with pytest.raises(ValueError, match="the checkpoint is of 10 samples, this data set has 11"):
        Sampler(11, 2).load_state_dict(Sampler(10, 2).state_dict())


@pytest.mark.parametrize(("num_samples", "batch"), [(0, 1), (1, 0)])
def test_nothing_to_deal_is_refused(num_samples: int, batch: int) -> None:
    """An epoch has samples and a step has some of them."""
    with pytest.raises(ValueError, match="expected num_samples >= 1 and batch >= 1"):
        Sampler(num_samples, batch)

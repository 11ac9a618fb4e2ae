"""Laws of the fence: whichever jobs are poisonous, and however few tries a round bears, the others are served."""

from __future__ import annotations

import math
from collections.abc import Collection

from hypothesis import given
from hypothesis import strategies as st

from scheduler_core.deciding.search import Found, Tries, Uncured, go_on
from scheduler_core.model.target import Search

NAMES = "abcdefghijklmnopqrstuvwxyz"
BEGUN = Search(policy="p", fault="all fail", began_s=0.0)


class Stage:
    """Fails with any of the poisonous jobs, and only as often a round as it has time for."""

    def __init__(self, poison: Collection[str]) -> None:
        self.poison = set(poison)
        self.num_tries = 0
        self.left = 0

    def attempt(self, served: Collection[str]) -> str:
        """The served ones in order, or the first poisonous one as an error."""
        self.num_tries += 1
        self.left -= 1
        if found := sorted(self.poison.intersection(served)):
            raise ValueError(found[0])
        return "".join(sorted(served))

    def has_time(self) -> bool:
        """Until the round's tries are used up."""
        return self.left > 0


def searched(stage: Stage, jobs: str, tries_a_round: int) -> tuple[Found[str] | Uncured, int]:
    """The end of a search, and how many rounds it took."""
    search, rounds = BEGUN, 0
    while True:
        stage.left, rounds = tries_a_round, rounds + 1
        ended = go_on(search, Tries(jobs=jobs, attempt=stage.attempt, has_time=stage.has_time))
        if not isinstance(ended, Search):
            return ended, rounds
        search = ended


@given(poison=st.sets(st.sampled_from(NAMES)), num_jobs=st.integers(1, 26), tries_a_round=st.integers(1, 9))
def test_the_poisonous_are_found_and_the_others_are_served(poison: set[str], num_jobs: int, tries_a_round: int) -> None:
    """Exactly they, each with its own fault, in about log2(n) tries each; if all are poisonous nobody is blamed."""
    jobs = NAMES[:num_jobs]
    guilty = sorted(poison.intersection(jobs))
    stage = Stage(poison)

    ended, rounds = searched(stage, jobs, tries_a_round)

    if len(guilty) == num_jobs > 1:
        assert isinstance(ended, Uncured)
    else:
        assert isinstance(ended, Found)
        assert ended.result == "".join(job for job in jobs if job not in guilty)
        assert dict(sorted(ended.search.guilty.items())) == {job: f"ValueError: {job}" for job in guilty}
    assert stage.num_tries <= 1 + max(1, len(guilty)) * (math.ceil(math.log2(num_jobs)) + 2)
    assert rounds == math.ceil(stage.num_tries / tries_a_round)


@given(
    poison=st.sets(st.sampled_from(NAMES)),
    present=st.lists(st.sets(st.sampled_from(NAMES), min_size=2), min_size=1, max_size=8),
)
def test_jobs_may_come_and_go_while_it_is_searched(poison: set[str], present: list[set[str]]) -> None:
    """One try a round with other jobs each time: once they stay, only poisonous ones are guilty, the others served."""
    stage, search = Stage(poison), BEGUN
    for jobs in [*present, *[present[-1]] * 1_000]:
        stage.left = 1
        ended = go_on(search, Tries(jobs=sorted(jobs), attempt=stage.attempt, has_time=stage.has_time))
        if not isinstance(ended, Search):
            break
        search = ended

    if isinstance(ended, Found):
        assert set(ended.search.guilty) <= poison
        assert set(ended.result) == jobs - set(ended.search.guilty)
    else:
        assert isinstance(ended, Uncured)
        assert jobs <= poison


def test_a_stage_that_fails_with_nobody_is_to_blame_itself() -> None:
    """One try tells."""

    def broken(served: Collection[str]) -> str:
        raise ZeroDivisionError(len(served))

    tries = Tries(jobs="abc", attempt=broken, has_time=lambda: True)

    assert go_on(BEGUN, tries) == Uncured()


@given(few=st.integers(0, 5), num_jobs=st.integers(1, 12))
def test_where_the_number_is_to_blame_the_search_ends(few: int, num_jobs: int) -> None:
    """A stage that fails with more than so many jobs, whichever: the search ends, and what it serves works."""

    def crowded(served: Collection[str]) -> int:
        if len(served) > few:
            raise MemoryError(len(served))
        return len(served)

    ended = go_on(BEGUN, Tries(jobs=NAMES[:num_jobs], attempt=crowded, has_time=lambda: True))

    if isinstance(ended, Found):
        assert ended.result == min(few, num_jobs)

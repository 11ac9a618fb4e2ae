"""What the original answered to 240 inputs: its model answers the same, and ours differs only where it is wrong."""

from __future__ import annotations

from collections import Counter

import pytest

from scheduler_core.model.allocation import Allocation
from tests.theory.golden_cases import faults_behind, golden_cases
from tests.theory.voda_original import ORIGINALS, Fault

#: How many of its answers each policy differs from, and by which faults of the original.
DIFFERENCES: dict[str, dict[tuple[Fault, ...], int]] = {
    "afs_l": {(Fault.PAST_BEST,): 27, (Fault.OTHERS_LENGTH,): 1, (Fault.SINGLE_GPUS,): 1},
    "elastic_fifo": {(Fault.PAST_BEST,): 48},
    "elastic_srjf": {(Fault.PAST_BEST,): 18},
    "elastic_tiresias": {(Fault.INPUT_ORDER,): 6, (Fault.LEFT_OUT,): 5},
    "ffdl": {},
    "fifo": {},
    "srjf": {},
    "tiresias": {},
}


def test_the_model_answers_as_the_original() -> None:
    """All 1,721 answers, and no answer where the original stops."""
    answers = [(case.model(name), said) for case in golden_cases() for name, said in case.answers.items()]

    assert sum(said is not None for _, said in answers) == 1721
    assert [pair for pair in answers if pair[0] != pair[1]] == []


@pytest.mark.parametrize("name", sorted(ORIGINALS))
def test_ours_differs_only_by_faults_of_the_original(name: str) -> None:
    """The model, with the faults mended that are named here and no other, gives our answer."""
    found = Counter(
        faults_behind(case, name)
        for case in golden_cases()
        if case.answers[name] is not None and case.ours(name) != case.answers[name]
    )

    assert found == DIFFERENCES[name]


@pytest.mark.parametrize("name", sorted(ORIGINALS))
def test_ours_is_never_slower_in_all(name: str) -> None:
    """The sum of speed-ups is at least the original's wherever it answers; where it stops, ours keeps the law."""
    for case in golden_cases():
        ours, theirs = case.ours(name), case.answers[name]

        Allocation(gpus_by_job=ours).check(case.asked().specs, case.gpus, by=name)
        assert theirs is None or case.total(ours) >= case.total(theirs)

"""Area policies, truth to theory: FfDL against everything there is to choose, AFS-L against its paper, and the laws."""

from __future__ import annotations

from collections.abc import Iterator
from math import isclose

from scheduler_core.allocate.afs_l import afs_l
from scheduler_core.allocate.ffdl import ffdl
from tests.show.commands import run_tests
from tests.show.registry import Row, exactly, figure, information
from tests.theory.policy_oracles import afs_l_pairwise, best_total, random_questions, total

FFDL_QUESTIONS = 500
AFS_L_QUESTIONS = 2000
LAW_CASES = 3000
LAW_CASES_QUICK = 100


@figure(area="policies")
def exact_policies(quick: bool) -> Iterator[Row]:
    """How many small questions have the optimum, and how many the paper's allocation."""
    questions = list(random_questions(FFDL_QUESTIONS, seed=1, most_jobs=5, most_gpus=24))
    wide = sum(any(one.min_gpus > 1 for one in given.specs) for given in questions)
    optimal = sum(
        isclose(total(given, dict(ffdl(given).gpus_by_job)), best_total(given), rel_tol=1e-9) for given in questions
    )
    yield exactly("ffdl equals brute force, questions", optimal, FFDL_QUESTIONS)
    yield information("ffdl, of these with minima above 1", str(wide))
    questions = list(random_questions(AFS_L_QUESTIONS, seed=2, most_jobs=8, most_gpus=24))
    equal = sum(dict(afs_l(given).gpus_by_job) == afs_l_pairwise(given) for given in questions)
    yield exactly("afs_l equals the pairwise rule, questions", equal, AFS_L_QUESTIONS)


@figure(area="policies")
def allocation_law_cases(quick: bool) -> Iterator[Row]:
    """Every law of allocation, all eight policies, with and without backfilling."""
    cases = LAW_CASES_QUICK if quick else LAW_CASES
    yield run_tests("laws of allocation", ["tests/laws/test_allocation.py"], examples=cases)

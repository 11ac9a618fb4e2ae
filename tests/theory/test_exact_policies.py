"""FfDL is the optimum, and AFS-L is the paper's: both against oracles that try everything."""

from __future__ import annotations

from math import isclose

from scheduler_core.allocate.afs_l import afs_l
from scheduler_core.allocate.ffdl import ffdl
from tests.theory.policy_oracles import afs_l_pairwise, best_total, random_questions, total


def test_ffdl_has_the_greatest_total_speedup() -> None:
    """500 small questions, minima above one included; no allocation is faster in all."""
    for given in random_questions(500, seed=1, most_jobs=5, most_gpus=24):
        found = ffdl(given).check(given.specs, given.capacity_gpus, by="ffdl")

        assert isclose(total(given, dict(found.gpus_by_job)), best_total(given), rel_tol=1e-9)


def test_afs_l_gives_what_the_pairwise_rule_gives() -> None:
    """2,000 questions, every one the same allocation."""
    for given in random_questions(2000, seed=2, most_jobs=8, most_gpus=24):
        assert dict(afs_l(given).gpus_by_job) == afs_l_pairwise(given)


def test_afs_l_gives_the_same_with_priority_classes_and_more_jobs() -> None:
    """500 questions with two classes and up to 150 jobs, more than are looked at in one go."""
    for given in random_questions(500, seed=3, most_jobs=150, most_gpus=150, has_classes=True):
        assert dict(afs_l(given).gpus_by_job) == afs_l_pairwise(given)

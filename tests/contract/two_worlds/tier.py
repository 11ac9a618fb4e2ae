"""Which cases are played when: all there are, and the share of them that the tests on a cluster have time for."""

from __future__ import annotations

from tests.contract.two_worlds.cron_cases import cron_cases
from tests.contract.two_worlds.elastic_cases import elastic_cases
from tests.contract.two_worlds.golden_cases import golden_cases
from tests.contract.two_worlds.own_cases import own_cases
from tests.contract.two_worlds.play import Case
from tests.contract.two_worlds.verb_cases import verb_cases

EVERY = 4
"""Of the documents to which nothing is done, the tests play each so-many-th."""


def all_cases() -> list[Case]:
    """Every document of the suite; cron workflows and whole lives of elastic jobs, which take minutes, first."""
    return [*cron_cases(), *elastic_cases(), *verb_cases(), *own_cases(), *golden_cases()]


def tier_cases() -> list[Case]:
    """What the tests play: all to which something is done, and a sample of the others; `argo_live` shows them all."""
    plain = [*own_cases(), *golden_cases()]
    return [*verb_cases(), *plain[::EVERY]]


def quick_cases() -> list[Case]:
    """A small sample of each kind, for `QUICK=1`."""
    return [*verb_cases()[::6], *own_cases()[::10], *golden_cases()[::8]]

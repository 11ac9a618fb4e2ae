"""The same documents on the local engine and on the real Argo controller: the same phases, outputs, messages, order."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import pytest

from tests.cluster.cluster import Cluster
from tests.contract.two_worlds.play import Pair, stage
from tests.contract.two_worlds.tier import all_cases, tier_cases

TIER = tier_cases()


@pytest.fixture(scope="module")
def pairs(cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Mapping[str, Pair]]:
    """All cases of the tier, being played in both worlds at once."""
    with stage(cluster, tmp_path_factory.mktemp("home")) as both:
        yield both.play(TIER)


@pytest.mark.cluster
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("name", [case.name for case in TIER])
def test_document_becomes_the_same_in_both_worlds(name: str, pairs: Mapping[str, Pair]) -> None:
    """Whatever is done to it; a difference is a fault of the local engine."""
    assert pairs[name].differences() == []


def test_cases_have_names_of_their_own() -> None:
    """Each is a Workflow of that name, in one namespace."""
    names = [case.name for case in all_cases()]

    assert sorted(set(names)) == sorted(names)
    assert [case.document["metadata"]["name"] for case in all_cases() if not case.name.startswith("bad-")] == [
        name for name in names if not name.startswith("bad-")
    ]

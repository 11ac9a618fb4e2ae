"""Local mode agrees with the real controller on every golden document, in both of its worlds."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from scheduler_core.errors import InvalidValue
from tests.contract.argo import golden
from tests.contract.argo.golden_runs import REFUSED, RUN, UNSUPPORTED, Endings, endings
from voda_flows.local.argo import validate


@pytest.fixture(scope="module", params=["processes", "engine"])
def ends(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Endings]:
    """How each document ends in one of the worlds."""
    with endings(request.param, tmp_path_factory.mktemp(request.param)) as found:
        yield found


@pytest.mark.parametrize("name", RUN)
def test_document_ends_as_on_the_real_controller(name: str, ends: Endings) -> None:
    """Phase, messages, progress and every node agree with what Argo itself did."""
    status = ends[name].result(timeout=60)

    assert golden.agreed(status) == golden.expected(golden.outcome(name))
    assert golden.out_of_order(status) == []


@pytest.mark.parametrize("name", REFUSED)
def test_document_is_refused_as_by_the_real_controller(name: str) -> None:
    """What the API server or the controller refused is refused at submission, in the same words."""
    with pytest.raises(InvalidValue) as refusal:
        validate(golden.document(name), lambda _namespace, _name: None)

    assert str(refusal.value).startswith(golden.refusal(name))


@pytest.mark.parametrize("name", UNSUPPORTED)
def test_document_that_local_mode_cannot_run_is_refused_by_name(name: str) -> None:
    """Only documents that may be refused are, and the message names the part that is not supported."""
    assert name in golden.MAY_BE_REFUSED
    with pytest.raises(InvalidValue, match="not supported in local mode"):
        validate(golden.document(name), lambda _namespace, _name: None)


def test_every_golden_document_is_tried() -> None:
    """None of those that were recorded is left out; the elastic job has a test of its own."""
    recorded = {path.stem for path in golden.FOLDER.glob("*.json")}

    assert sorted((*RUN, *REFUSED, *UNSUPPORTED, "elastic-job")) == sorted(recorded)

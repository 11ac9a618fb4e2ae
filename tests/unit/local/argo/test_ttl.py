"""``ttlStrategy``: ended Workflows that are to go, and when."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from scheduler_core.errors import InvalidValue
from tests.unit.local.argo.builders import START, Bench, shell, workflow
from voda_flows.local.argo import validate
from voda_flows.local.argo.ttl import expiry
from voda_flows.objects import Object, format_time

SUCCESS, FAILURE, ANY_END = "secondsAfterSuccess", "secondsAfterFailure", "secondsAfterCompletion"


def ended(phase: str, *, own: Any = None, stored: Any = None) -> Object:
    """A Workflow that ended at the start, with a strategy of its own and one of its WorkflowTemplate."""
    status = {"phase": phase, "finishedAt": format_time(START), "storedWorkflowTemplateSpec": {"ttlStrategy": stored}}
    return {"metadata": {"name": "w"}, "spec": {"ttlStrategy": own}, "status": status}


@pytest.mark.parametrize(
    ("phase", "own", "stored", "after_s"),
    [
        ("Succeeded", {SUCCESS: 5, FAILURE: 7, ANY_END: 9}, None, 5),
        ("Failed", {SUCCESS: 5, FAILURE: 7, ANY_END: 9}, None, 7),
        ("Error", {SUCCESS: 5, FAILURE: 7, ANY_END: 9}, None, 9),  # no failure to the controller
        ("Error", {FAILURE: 7}, None, None),
        ("Succeeded", {FAILURE: 7}, None, None),
        ("Failed", {ANY_END: 0}, None, 0),
        ("Succeeded", None, {SUCCESS: 3}, 3),
        ("Succeeded", {ANY_END: 9}, {SUCCESS: 3}, 9),
        ("Succeeded", None, None, None),
        ("Running", {ANY_END: 0}, None, None),
    ],
)
def test_time_to_live_is_as_with_the_controller(phase: str, own: Any, stored: Any, after_s: int | None) -> None:
    """The limit for the phase, else that for any end; the Workflow's own strategy first."""
    expected = None if after_s is None else START + timedelta(seconds=after_s)

    assert expiry(ended(phase, own=own, stored=stored)) == expected


def test_workflow_is_looked_at_when_its_time_is_over() -> None:
    """Not deleted before, and looked at again just then."""
    bench = Bench(workflow(shell(), ttlStrategy={ANY_END: 30}))
    bench.look()
    bench.end("w")
    bench.look()

    early, late = bench.look(after_s=10), bench.look(after_s=20)

    assert (early.is_expired, early.again_s) == (False, 20)
    assert (late.is_expired, late.again_s) == (True, None)


@pytest.mark.parametrize(
    ("strategy", "said"),
    [
        ({"secondsAfterSucces": 5}, 'unknown field "spec.ttlStrategy.secondsAfterSucces" .did you mean secondsAfterS'),
        ({SUCCESS: "5"}, "must be of type integer"),
    ],
)
def test_strategy_that_makes_no_sense_is_refused(strategy: Object, said: str) -> None:
    """In the API server's words."""
    with pytest.raises(InvalidValue, match=said):
        validate(workflow(shell(), ttlStrategy=strategy), lambda _namespace, _name: None)

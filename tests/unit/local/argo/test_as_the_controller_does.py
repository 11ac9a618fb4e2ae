"""What the contract suite found to differ from the real controller (tests/contract/two_worlds), as small cases."""

from __future__ import annotations

import pytest

from scheduler_core.errors import InvalidValue
from tests.unit.local.argo.builders import Bench, call, dag, shell, steps, workflow
from voda_flows.local.argo import validate
from voda_flows.local.argo.conditions import should_run
from voda_flows.objects import Object


def names_of_children(bench: Bench, node: str) -> list[str]:
    """The display names of a node's children, in order."""
    by_id = bench.status["nodes"]
    return [by_id[key]["displayName"] for key in bench.nodes[node].get("children", ())]


def test_children_of_a_group_are_in_the_order_of_its_steps() -> None:
    """Whether a step runs or is passed over makes no difference to its place."""
    bench = Bench(workflow(steps([call("a"), call("b", when="false"), call("c")]), shell()))

    bench.look()

    assert names_of_children(bench, "w[0]") == ["a", "b", "c"]


def test_tasks_on_which_no_other_depends_begin_in_the_order_of_their_names() -> None:
    """Not in the order in which the template has them."""
    bench = Bench(workflow(dag(call("c"), call("b"), call("a")), shell()))

    bench.look()

    assert names_of_children(bench, "w") == ["a", "b", "c"]


def test_workflow_without_pods_says_that_none_runs() -> None:
    """From the second look on, as the controller does."""
    bench = Bench(workflow(steps([call("g", "gate")]), {"name": "gate", "suspend": {"duration": "5s"}}))

    first = bench.look().workflow["status"]["conditions"]
    bench.look(after_s=6)

    assert first == []
    assert bench.status["conditions"] == [
        {"type": "PodRunning", "status": "False"},
        {"type": "Completed", "status": "True"},
    ]


def test_expression_of_a_retry_knows_the_number_of_tries_before() -> None:
    """`retries` is 0 when the first try has failed."""
    strategy = {"limit": "5", "expression": "asInt(retries) < 1"}
    bench = Bench(workflow(shell(retryStrategy=strategy)))
    bench.look()
    bench.end("w(0)", 1)
    bench.look(after_s=1)
    bench.end("w(1)", 1)
    bench.look(after_s=1)

    assert bench.status["phase"] == "Failed"
    assert bench.status["message"] == "retryStrategy.expression evaluated to false"


def test_backoff_without_a_limit_is_no_wait() -> None:
    """The controller waits only where there is a limit that leaves another try."""
    bench = Bench(workflow(shell(retryStrategy={"backoff": {"duration": "60"}})))
    bench.look()
    bench.end("w(0)", 1)

    bench.look(after_s=1)

    assert bench.phases["w(1)"] == "Pending"


@pytest.mark.parametrize(
    ("condition", "holds"),
    [
        ("yes in ('yes', 'no')", True),
        ("maybe in ('yes', 'no')", False),
        ("1 in (2, 1)", True),
        ("!(x in (a, b)) && true", True),
        ("'1' in (1, 2)", False),
    ],
)
def test_condition_may_ask_for_one_of_a_list(condition: str, *, holds: bool) -> None:
    """`in` and brackets, each compared as by `==`."""
    assert should_run(condition) is holds


@pytest.mark.parametrize(
    ("condition", "words"),
    [
        ("two words == 'x'", "VARIABLE [two] to VARIABLE [words]"),
        ("'a' 'b' == 'x'", "STRING [a] to STRING [b]"),
        ("7 up == 'x'", "NUMERIC [7] to VARIABLE [up]"),
    ],
)
def test_condition_with_two_values_in_a_row_is_refused_in_argos_words(condition: str, words: str) -> None:
    """What people get when they forget quotes."""
    with pytest.raises(InvalidValue) as fault:
        should_run(condition)

    assert str(fault.value) == f"Invalid 'when' expression '{condition}': Cannot transition token types from {words}"


@pytest.mark.parametrize("around", [lambda one: steps([one]), dag])
def test_condition_with_a_pattern_is_refused_by_name_at_submission(around: object) -> None:
    """Rather than when its turn has come; one in quotes is text."""
    fine, wrong = call("a", when="'=~' == x"), call("a", when="{{workflow.name}} =~ 'w.*'")

    def document(one: Object) -> Object:
        return workflow(around(one), shell())  # type: ignore[operator]  # a builder

    validate(document(fine), lambda _namespace, _name: None)
    with pytest.raises(InvalidValue, match=r"when: =~: not supported in local mode"):
        validate(document(wrong), lambda _namespace, _name: None)

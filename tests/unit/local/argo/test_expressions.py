"""Expressions, conditions and substitution: what has a value, what it is, and what is refused by name."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scheduler_core.errors import InvalidValue
from voda_flows.local.argo.conditions import should_run
from voda_flows.local.argo.expressions import UnknownName, evaluate
from voda_flows.local.argo.substitute import replace, substitute, tags_within

HINT = '(hint: try wrapping the affected expression in quotes ("))'
VARIABLES = {"inputs.parameters.k": "3", "inputs.parameters.job-name": "bert", "n": 4, "yes": True}


@pytest.mark.parametrize(
    ("source", "value"),
    [
        ("1 + 2 * 3", 7),
        ("(1 + 2) * 3", 9),
        ("10 - 4 - 3", 3),
        ("-2 + 5 % 3", 0),
        ("7 / 2", 3.5),
        ("asInt(inputs.parameters.k) + 1", 4),
        ("asInt(inputs['parameters']['k'])", 3),
        ("inputs.parameters['job-name'] == 'bert'", True),
        ("n >= 4 && n < 5", True),
        ("not yes or n != 4", False),
        ("!yes || n == 4", True),
        ("yes ? 'a' : 'b'", "a"),
        ("'3' == 3", False),
        ("\"a\" + 'b'", "ab"),
        ("len('abc')", 3),
        ("'it\\'s'", "it's"),
    ],
)
def test_expression_has_a_value(source: str, value: Any) -> None:
    """Arithmetic, comparison, logic, text and the few functions."""
    assert evaluate(source, VARIABLES) == value


@pytest.mark.parametrize(
    ("source", "fault"),
    [
        ("sprig.upper('x')", "function sprig.upper: not supported in local mode"),
        ("1 +", "Unexpected end of expression"),
        ("1 2", "Cannot transition token types from NUMERIC"),
        ("'a' < 3", "one kind on both sides"),
        ("'a' - 'b'", "one kind on both sides"),
        ("1 / 0", "divisor other than 0"),
        ("asInt('x')", "asInt: expected a whole number, got 'x'"),
        ("1 && true", "expected true or false, got 1"),
        ("a ; b", "Invalid token: ';'"),
        ("(" * 60 + "1" + ")" * 60, "at most 50 brackets and signs"),
        ("9 ** 999999999", "too large"),
        ("asInt(asFloat('1e400'))", "expected a whole number"),
    ],
)
def test_wrong_expression_is_refused(source: str, fault: str) -> None:
    """The message says what is wrong."""
    with pytest.raises(InvalidValue, match=fault.replace("(", r"\(").replace(")", r"\)")):
        evaluate(source, {**VARIABLES, "a": 1, "b": 2})


def test_unknown_variable_is_named() -> None:
    """A variable without a value is an error of its own."""
    with pytest.raises(UnknownName, match=r"got 'steps\.x\.status'"):
        evaluate("steps.x.status == 'Failed'", VARIABLES)


@pytest.mark.parametrize(
    ("when", "runs"),
    [
        ("", True),
        (None, True),
        ("1 == 1", True),
        ("'x' == 'y'", False),
        ("abc == abc", True),
        ("abc != def && 2 < 3", True),
        (True, True),
        ("false", False),
    ],
)
def test_condition_decides(when: Any, runs: bool) -> None:
    """A bare word is text; no condition means yes."""
    assert should_run(when) is runs


@pytest.mark.parametrize(
    ("when", "message"),
    [
        ("abc ==", "Invalid 'when' expression 'abc ==': Unexpected end of expression"),
        ("1 + 1", "Expected boolean evaluation for '1 + 1'. Got 2"),
        ("#", f"Invalid 'when' expression '#': Invalid token: '#' {HINT}"),
    ],
)  # fmt: skip
def test_wrong_condition_is_told_in_argos_words(when: str, message: str) -> None:
    """The same words as on the real controller, where it has any."""
    with pytest.raises(InvalidValue) as fault:
        should_run(when)

    assert str(fault.value) == message


def test_substitution_is_raw_and_leaves_the_unknown() -> None:
    """Known tags are replaced as text, others stay for whoever knows them; keys are replaced too."""
    document = {"{{a}}": ["{{ a }}-{{b}}", 1, {"x": "{{=asInt(a)+1}} {{=asInt(c)}}"}], "plain": "{}"}

    found = substitute(document, {"a": "1"})

    assert found == {"1": ["1-{{b}}", 1, {"x": "2 {{=asInt(c)}}"}], "plain": "{}"}


def test_what_is_put_in_is_not_looked_through_again() -> None:
    """A value that looks like a tag is text."""
    assert replace("{{a}}", {"a": "{{b}}", "b": "2"}) == "{{b}}"


def test_tags_are_found_wherever_they_stand() -> None:
    """In keys, lists and nested objects, in order."""
    assert tags_within({"k{{a}}": ["{{ b }}", {"x": "{{=c}}"}]}) == ["a", "b", "=c"]


@given(st.text(), st.dictionaries(st.text(min_size=1), st.text()))
def test_any_text_can_be_substituted(text: str, variables: dict[str, str]) -> None:
    """No text breaks the substitution: it is replaced, left as it is, or refused as an expression."""
    try:
        replace(text, variables)
    except InvalidValue:
        assert "{{" in text


@given(st.text(max_size=40))
def test_any_condition_is_decided_or_refused(text: str) -> None:
    """No text breaks a condition."""
    with suppress(InvalidValue):
        assert should_run(text) in (True, False)

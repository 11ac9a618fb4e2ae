"""Law of variables and expressions: any text is filled in or refused in words."""

from __future__ import annotations

from hypothesis import HealthCheck, given, settings

from tests.laws.fuzzing import expressions, text_is_substituted_or_refused


@settings(suppress_health_check=[HealthCheck.too_slow])
@given(expressions())
def test_any_text_is_substituted_or_refused(text: str) -> None:
    """As a value, as a key, as a condition, as an expression."""
    text_is_substituted_or_refused(text)


def test_a_megabyte_of_braces_is_no_work() -> None:
    """Each brace is looked at once: a text that opens a million tags and closes none is taken as it is."""
    text_is_substituted_or_refused("{" * 1_000_000)


def test_a_condition_of_a_thousand_parts_is_no_nesting() -> None:
    """What a DAG task with many dependencies asks for is a chain, however long."""
    text_is_substituted_or_refused(" && ".join(["1 == 1"] * 150))
    text_is_substituted_or_refused(" || ".join(["true"] * 5000))

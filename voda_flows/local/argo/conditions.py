"""``when``: whether a step or task runs.

In: the text after substitution; out: yes or no, or the error that Argo gives. A bare word is text, so
``{{x}} == yes`` needs no quotes.
"""

from __future__ import annotations

from scheduler_core.errors import InvalidValue
from voda_flows.local.argo.expressions import compute, parse
from voda_flows.local.argo.names import text


def should_run(when: object) -> bool:
    """Whether the condition holds; an empty one does.

    Raises:
        InvalidValue: It does not parse, mixes types, or gives neither true nor false.
    """
    condition = text(when) if when is not None else ""
    if not condition.strip():
        return True
    try:
        result = compute(parse(condition), lambda name: name)
    except InvalidValue as error:
        hint = ' (hint: try wrapping the affected expression in quotes ("))' if "Invalid token" in str(error) else ""
        raise InvalidValue(f"Invalid 'when' expression '{condition}': {error}{hint}") from error
    if not isinstance(result, bool):
        raise InvalidValue(f"Expected boolean evaluation for '{condition}'. Got {text(result)}")
    return result

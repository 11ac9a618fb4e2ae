"""Times on the command line: durations such as ``90s``, ``5m`` or ``1h30m``, and moments in the past."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

import click

from scheduler_core.errors import InvalidValue
from voda_flows.objects import seconds

if TYPE_CHECKING:
    _SecondsType = click.ParamType[float]
else:  # generic for type checkers only in older versions of click
    _SecondsType = click.ParamType

_UNIT_S: Final = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_DAY: Final = re.compile(r"\d{4}-\d{2}-\d{2}")
_PART: Final = re.compile(r"([0-9]+(?:\.[0-9]+)?)([smhd])")


class TimeType(_SecondsType):
    """Seconds, from text.

    Args:
        read: Seconds of a text; None where it is of another form.
        expected: The forms that it may have, for the message about any other.
    """

    name = "time"

    def __init__(self, read: Callable[[str], float | None], expected: str) -> None:
        self._read, self._expected = read, expected

    def convert(
        self,
        value: str | float,
        param: click.Parameter | None,
        ctx: click.Context | None,  # noqa: ARG002 - click's
    ) -> float:
        """Seconds of a text; defaults that are numbers already stay as they are.

        Raises:
            InvalidValue: It has none of the forms.
        """
        if not isinstance(value, str):
            return float(value)
        found_s = self._read(value)
        if found_s is None:
            option = param.opts[-1] if param is not None else "a time"
            raise InvalidValue(f"{option}: expected {self._expected}, found {value!r}")
        return found_s


def duration_s(text: str) -> float | None:
    """Seconds of a duration, None where the text is none.

    >>> [duration_s(text) for text in ("90", "1.5m", "1h30m", "2d", "soon", "")]
    [90.0, 90.0, 5400.0, 172800.0, None, None]
    """
    if re.fullmatch(r"[0-9]+(?:\.[0-9]+)?", text):
        return float(text)
    if not text or _PART.sub("", text):
        return None
    return sum(float(number) * _UNIT_S[unit] for number, unit in _PART.findall(text))


def moment_s(text: str) -> float | None:
    """Seconds since the epoch of ``2h`` (two hours ago), a time as objects have it, or a day in UTC; else None."""
    ago_s = duration_s(text)
    return seconds(text) if ago_s is None else time.time() - ago_s


def end_s(text: str) -> float | None:
    """The same where a day stands for its end."""
    found_s = moment_s(text)
    return found_s + _UNIT_S["d"] if found_s is not None and _DAY.fullmatch(text) else found_s


_BOUND: Final = "a time such as 2026-01-31T10:00:00Z, a day such as 2026-01-31, or how long ago, such as 2h"
#: How long something may take.
DURATION: Final = TimeType(duration_s, "a time such as 90s, 5m or 2h")
#: From when on something is meant.
SINCE: Final = TimeType(moment_s, "how long ago, such as 90s, 5m or 2h, or 2026-01-31T10:00:00Z")
#: Where a span of time begins, and where it ends.
BEGINNING: Final = TimeType(moment_s, _BOUND)
END: Final = TimeType(end_s, _BOUND)

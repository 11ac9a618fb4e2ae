"""Times on the command line: durations such as ``90s``, ``5m`` or ``1h30m``, and moments in the past."""

from __future__ import annotations

import re
import time
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


class Duration(_SecondsType):
    """Seconds, from text."""

    name = "time"

    def convert(
        self,
        value: str | float,
        param: click.Parameter | None,
        ctx: click.Context | None,  # noqa: ARG002 - click's
    ) -> float:
        """Seconds of ``90``, ``90s``, ``1.5m``, ``2h``, ``1h30m`` or ``3d``.

        Raises:
            InvalidValue: It is none of these.
        """
        if not isinstance(value, str):
            return float(value)
        found = duration_s(value)
        if found is None:
            raise InvalidValue(f"{_option(param)}: expected a time such as 90s, 5m or 2h, found {value!r}")
        return found


class Since(_SecondsType):
    """A moment, seconds since the epoch: so long ago, or a time as objects have it."""

    name = "time"

    def convert(
        self,
        value: str | float,
        param: click.Parameter | None,
        ctx: click.Context | None,  # noqa: ARG002 - click's
    ) -> float:
        """The moment of ``2h`` (two hours ago) or ``2026-01-31T10:00:00Z``.

        Raises:
            InvalidValue: It is neither.
        """
        if not isinstance(value, str):
            return float(value)
        ago_s, moment_s = duration_s(value), seconds(value)
        if ago_s is not None:
            return time.time() - ago_s
        if moment_s is None:
            raise InvalidValue(
                f"{_option(param)}: expected how long ago, such as 90s, 5m or 2h, or 2026-01-31T10:00:00Z, "
                f"found {value!r}"
            )
        return moment_s


class Bound(_SecondsType):
    """Where a span of time begins or ends, seconds since the epoch: a time, a day in UTC, or so long ago.

    Args:
        ends: Whether a day stands for its end, not its beginning.
    """

    name = "time"

    def __init__(self, *, ends: bool) -> None:
        self._ends = ends

    def convert(
        self,
        value: str | float,
        param: click.Parameter | None,
        ctx: click.Context | None,  # noqa: ARG002 - click's
    ) -> float:
        """The moment of ``2026-01-31T10:00:00Z``, ``2026-01-31`` or ``2h`` (two hours ago).

        Raises:
            InvalidValue: It is none of these.
        """
        if not isinstance(value, str):
            return float(value)
        ago_s, moment_s = duration_s(value), seconds(value)
        if ago_s is not None:
            return time.time() - ago_s
        if moment_s is None:
            raise InvalidValue(
                f"{_option(param)}: expected a time such as 2026-01-31T10:00:00Z, a day such as 2026-01-31, or how "
                f"long ago, such as 2h, found {value!r}"
            )
        return moment_s + (_UNIT_S["d"] if self._ends and _DAY.fullmatch(value) else 0.0)


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


def _option(param: click.Parameter | None) -> str:
    """The option's name for messages."""
    return param.opts[-1] if param is not None else "a time"


DURATION: Final = Duration()
SINCE: Final = Since()

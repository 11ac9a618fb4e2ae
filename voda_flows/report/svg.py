"""Just enough SVG: elements as text with everything escaped, and a time axis with readable ticks. Pure."""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import UTC, datetime
from html import escape
from typing import Final

_DAY_S: Final = 86400
_STEPS_S: Final = (
    *(1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 43200),
    *(_DAY_S, 2 * _DAY_S, 7 * _DAY_S, 30 * _DAY_S, 90 * _DAY_S, 365 * _DAY_S),
)
#: Longer spans are read by the clock on the wall, shorter ones from their beginning.
_BY_THE_CLOCK_S: Final = 7200.0


def element(name: str, *inside: str, **attributes: object) -> str:
    """An element; ``_`` in an attribute's name stands for ``-``, a trailing one is dropped (``class_``).

    >>> element("rect", x=1.234, class_="bar")
    '<rect x="1.2" class="bar"/>'
    >>> element("text", escape("a<b"), x=0)
    '<text x="0">a&lt;b</text>'
    """
    given = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{escape(_value(value), quote=True)}"'
        for key, value in attributes.items()
        if value is not None
    )
    return f"<{name}{given}>{''.join(inside)}</{name}>" if inside else f"<{name}{given}/>"


def _value(value: object) -> str:
    """A number with one decimal at most, other values as they are."""
    return f"{value:.1f}".removesuffix(".0") if isinstance(value, float) else str(value)


@dataclass(frozen=True, slots=True, kw_only=True)
class Axis:
    """A time axis.

    Attributes:
        from_s: Time at its left end.
        to_s: Time at its right end.
        left: Where it begins, in units of the picture.
        right: Where it ends.
    """

    from_s: float
    to_s: float
    left: float
    right: float

    def x(self, time_s: float) -> float:
        """Where a moment is; moments outside are at the nearest end."""
        span_s = max(self.to_s - self.from_s, 1e-9)
        share = (min(max(time_s, self.from_s), self.to_s) - self.from_s) / span_s
        return self.left + share * (self.right - self.left)

    def meets(self, from_s: float, to_s: float) -> bool:
        """Whether something that lasted from when to when is on it."""
        return from_s <= self.to_s and to_s >= self.from_s

    def ticks(self, at_most: int = 10) -> list[float]:
        """Round moments after its beginning, seconds from there.

        >>> Axis(from_s=100, to_s=160, left=0, right=10).ticks(6)
        [0.0, 10.0, 20.0, 30.0, 40.0, 50.0, 60.0]
        """
        return [mark - self.from_s for mark, _ in self._marks(at_most, self.from_s)]

    def marks(self) -> list[tuple[float, str]]:
        """Moments that a reader would mark, with what to write there.

        >>> Axis(from_s=0, to_s=4 * 3600, left=0, right=10).marks()[1]
        (1800.0, '00:30')
        """
        if not self.by_the_clock:
            return [(moment_s, clock(moment_s - self.from_s)) for moment_s, _ in self._marks(10, self.from_s)]
        return [(moment_s, _wall(moment_s, step_s)) for moment_s, step_s in self._marks(10, 0.0)]

    @property
    def by_the_clock(self) -> bool:
        """Whether marks are times of day, not times since the beginning."""
        return self.to_s - self.from_s > _BY_THE_CLOCK_S

    def _marks(self, at_most: int, origin_s: float) -> list[tuple[float, int]]:
        """Moments that are whole steps after an origin, and the step."""
        span_s = self.to_s - self.from_s
        step_s = next((step for step in _STEPS_S if span_s / step <= at_most), _STEPS_S[-1])
        first = math.ceil((self.from_s - origin_s) / step_s)
        last = math.floor((self.to_s - origin_s) / step_s)
        return [(float(origin_s + number * step_s), step_s) for number in range(first, last + 1)]


def _wall(moment_s: float, step_s: int) -> str:
    """Time of day in UTC, the day where it begins."""
    moment = datetime.fromtimestamp(moment_s, tz=UTC)
    if step_s >= _DAY_S or (moment.hour, moment.minute) == (0, 0):
        return f"{moment:%b} {moment.day}"
    return f"{moment:%H:%M}"


def clock(after_s: float) -> str:
    """Time since the beginning as ``m:ss`` or ``h:mm:ss``.

    >>> clock(75), clock(3725)
    ('1:15', '1:02:05')
    """
    whole = round(after_s)
    hours, rest = divmod(whole, 3600)
    return f"{hours}:{rest // 60:02d}:{rest % 60:02d}" if hours else f"{rest // 60}:{rest % 60:02d}"


def path(points: list[tuple[float, float]]) -> str:
    """The ``d`` of a line through points."""
    return " ".join(f"{'L' if number else 'M'}{x:.1f} {y:.1f}" for number, (x, y) in enumerate(points))

"""Just enough SVG: elements as text with everything escaped, and a time axis with readable ticks. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape
from typing import Final

_STEPS_S: Final = (1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 43200, 86400)


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

    def ticks(self, at_most: int = 10) -> list[float]:
        """Round moments after its beginning, seconds from there.

        >>> Axis(from_s=100, to_s=160, left=0, right=10).ticks(6)
        [0, 10, 20, 30, 40, 50, 60]
        """
        span_s = self.to_s - self.from_s
        step_s = next((step for step in _STEPS_S if span_s / step <= at_most), _STEPS_S[-1])
        return [
            float(step_s * number) if step_s < 1 else step_s * number for number in range(int(span_s // step_s) + 1)
        ]


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

"""How a figure is declared: a function that measures something and yields rows.

In: functions decorated with :func:`figure` in ``tests/show/<area>_*.py``. Out: :class:`Row`, kept and printed by
``tests/show/__main__.py``.
"""

from __future__ import annotations

import importlib
import math
import pkgutil
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import tests.show


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One line of the table.

    Attributes:
        figure: What was measured.
        value: What was found, with its unit.
        must_be: The bound it is held against.
        holds: Whether it is within the bound.
        is_speed: Whether it is a time on the clock, which other load on the machine changes.
    """

    figure: str
    value: str
    must_be: str
    holds: bool
    is_speed: bool = False


Measure = Callable[[bool], Iterable[Row]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """A registered measurement.

    Attributes:
        area: What it is shown under.
        name: Of its function.
        measure: Measures it.
        in_quick: Whether the small sample that CI runs has it too.
        lane: Figures of different lanes are measured at the same time, once those without have been, alone: what is
            counted there, no other load changes.
    """

    area: str
    name: str
    measure: Measure
    in_quick: bool
    lane: str = ""


_FIGURES: dict[tuple[str, str], Figure] = {}


def figure(*, area: str, in_quick: bool = True, lane: str = "") -> Callable[[Measure], Measure]:
    """Register a function ``measure(quick: bool) -> Iterable[Row]`` as a figure of an area.

    Args:
        area: Area it is shown under, as in ``make show AREA=demo``.
        in_quick: False for what takes too long for CI.
        lane: Beside which others it is not measured; empty for a figure beside which nothing is.
    """

    def register(measure: Measure) -> Measure:
        name = measure.__name__
        if (area, name) in _FIGURES:
            raise ValueError(f"figure {name!r} of area {area!r}: expected one of that name, found two")
        _FIGURES[area, name] = Figure(area=area, name=name, measure=measure, in_quick=in_quick, lane=lane)
        return measure

    return register


def figures_of(area: str) -> list[Figure]:
    """Figures of an area, in the order of their modules' names and then as written."""
    names = sorted(module.name for module in pkgutil.iter_modules(tests.show.__path__))
    for name in names:
        if name.startswith(f"{area}_"):
            importlib.import_module(f"tests.show.{name}")
    return [figure for figure in _FIGURES.values() if figure.area == area]


def areas() -> list[str]:
    """Areas for which there are figures."""
    loaded = (module.name for module in pkgutil.iter_modules(tests.show.__path__))
    return sorted({name.split("_")[0] for name in loaded if "_" in name.strip("_")})


SPEED_UNITS = ("s", "ms", "% of a core")
"""What a slower machine has more of."""


def at_most(name: str, value: float, bound: float, unit: str) -> Row:
    """A row that holds when the value is no larger than the bound."""
    return Row(
        figure=name,
        value=f"{value:.3g} {unit}",
        must_be=f"<= {bound:g} {unit}",
        holds=value <= bound,
        is_speed=unit in SPEED_UNITS,
    )


def at_least(name: str, value: float, bound: float, unit: str) -> Row:
    """A row that holds when the value is no smaller than the bound."""
    return Row(figure=name, value=f"{value:.3g} {unit}", must_be=f">= {bound:g} {unit}", holds=value >= bound)


def exactly(name: str, value: object, expected: object) -> Row:
    """A row that holds when the value is the expected one."""
    return Row(figure=name, value=str(value), must_be=str(expected), holds=value == expected)


def information(name: str, value: str) -> Row:
    """A row without a bound: part of the story of its neighbours."""
    return Row(figure=name, value=value, must_be="(shown)", holds=True)


def percentile(values: Sequence[float], share: float) -> float:
    """Smallest measured value that at least this share (0..1) of the values do not exceed (nearest rank)."""
    ordered = sorted(values)
    return ordered[max(0, math.ceil(share * len(ordered)) - 1)]


def median_and_p95(name: str, values: Sequence[float], bound: float, unit: str) -> list[Row]:
    """Two rows, both held against the same bound; the number of samples is in the name."""
    samples = f"{name}, {{}} of {len(values)}"
    return [
        at_most(samples.format("median"), percentile(values, 0.5), bound, unit),
        at_most(samples.format("p95"), percentile(values, 0.95), bound, unit),
    ]

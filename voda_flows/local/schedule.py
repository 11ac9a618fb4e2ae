"""Schedules of cron workflows: at which moments they come up, by the rules of the library that Argo uses. Pure.

In: the text of a schedule (five fields, ``@daily`` and the like, ``@every 90s``) and a time zone; out: its moments.
A schedule of fields comes up in every minute of real time whose reading on the zone's clock matches. So a time that
falls into the hour which summer time skips does not come up on that day, and one that falls into the hour which comes
twice comes up twice, as ``robfig/cron`` 3.0.1 has it (``tests/unit/local/schedule_ticks.json`` was asked of it).
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

from scheduler_core.errors import InvalidValue

NAMED = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}
FIELDS = (("minute", 0, 59), ("hour", 0, 23), ("day of the month", 1, 31), ("month", 1, 12), ("day of the week", 0, 6))
MINUTE, HOUR, DAY, MONTH, WEEKDAY = range(5)
PART = re.compile(r"(?P<any>[*?])(-\d+)?(/(?P<step>\d+))?|(?P<low>\d+)(-(?P<high>\d+))?(/(?P<by>\d+))?")
FAR = timedelta(days=5 * 366)
"""A schedule that does not come up for so long never does: the thirtieth of February."""
EVERY = "@every "
UNIT_S = {"h": 3600.0, "m": 60.0, "s": 1.0, "ms": 1e-3, "us": 1e-6, "µs": 1e-6, "ns": 1e-9}


@dataclass(frozen=True, slots=True, kw_only=True)
class Schedule:
    """A schedule that makes sense.

    Attributes:
        zone: Whose clock is read.
        allowed: Allowed values of each of the five fields; empty where it is a mere period.
        is_any: Whether a field says that any value will do.
        period_s: Whole seconds from one moment to the next, for ``@every``; else 0.
    """

    zone: ZoneInfo
    allowed: tuple[frozenset[int], ...] = ()
    is_any: tuple[bool, ...] = ()
    period_s: int = 0

    @property
    def is_time_of_day(self) -> bool:
        """Whether it names times of the day, one by one, rather than how often."""
        return bool(self.allowed) and not (self.is_any[MINUTE] or self.is_any[HOUR])

    def after(self, moment: datetime) -> Iterator[datetime]:
        """The moments at which it comes up after this one, soonest first; a period begins at it."""
        if self.period_s:
            return self._periods(moment)
        return self._matches(moment)

    def _periods(self, moment: datetime) -> Iterator[datetime]:
        tick = moment.astimezone(UTC).replace(microsecond=0)
        while True:
            tick += timedelta(seconds=self.period_s)
            yield tick

    def _matches(self, moment: datetime) -> Iterator[datetime]:
        tick = moment.astimezone(UTC).replace(second=0, microsecond=0) + timedelta(minutes=1)
        limit = tick + FAR
        while tick < limit:
            step = self._to_next(tick)
            if step:
                tick += step
                continue
            yield tick
            tick, limit = tick + timedelta(minutes=1), tick + FAR

    def _to_next(self, tick: datetime) -> timedelta:
        """How long from a whole minute to the next that may match; nothing where it matches itself."""
        local = tick.astimezone(self.zone)
        if local.month not in self.allowed[MONTH] or not self._is_on(local):
            midnight = (local + timedelta(days=1)).replace(hour=0, minute=0, fold=0)
            return midnight.astimezone(UTC) - tick
        if local.hour not in self.allowed[HOUR]:
            return timedelta(minutes=60 - local.minute)
        return timedelta(minutes=min((m for m in self.allowed[MINUTE] if m >= local.minute), default=60) - local.minute)

    def _is_on(self, local: datetime) -> bool:
        """Whether the day fits: where both kinds of day are named, either will do."""
        is_day = local.day in self.allowed[DAY]
        is_weekday = local.isoweekday() % 7 in self.allowed[WEEKDAY]
        if self.is_any[DAY] or self.is_any[WEEKDAY]:
            return is_day and is_weekday
        return is_day or is_weekday


@functools.lru_cache(maxsize=256)
def read_schedule(text: str, timezone: str | None) -> Schedule:
    """A schedule from its text.

    Args:
        text: Five fields, a name as ``@daily``, or ``@every`` and a duration as Go writes it.
        timezone: A zone's name; UTC where there is none, as a controller's own pod has it.

    Raises:
        InvalidValue: Text or zone makes no sense, or the schedule never comes up.
    """
    zone = _zone(timezone)
    if text.startswith(EVERY):
        return Schedule(zone=zone, period_s=_period_s(text))
    words = NAMED.get(text, text).split()
    if len(words) != len(FIELDS) or (text.startswith("@") and text not in NAMED):
        raise InvalidValue(_refusal(text))
    read = [_field(text, word, number) for number, word in enumerate(words)]
    schedule = Schedule(
        zone=zone, allowed=tuple(values for values, _ in read), is_any=tuple(is_any for _, is_any in read)
    )
    if next(schedule.after(datetime(2026, 1, 1, tzinfo=UTC)), None) is None:
        raise InvalidValue(f"{_refusal(text)}: there is no such day")
    return schedule


def _zone(name: str | None) -> ZoneInfo:
    try:
        return ZoneInfo(name or "Etc/UTC")
    except (KeyError, ValueError, OSError, TypeError) as error:
        raise InvalidValue(
            f"expected a time zone's name such as Europe/Berlin, got {name!r} (at $.spec.timezone)"
        ) from error


def _refusal(text: str) -> str:
    return f"expected a schedule of five fields, @hourly or the like, or @every 90s, got {text!r} (at $.spec.schedules)"


def _field(text: str, word: str, number: int) -> tuple[frozenset[int], bool]:
    """The values that one of the five fields allows, and whether it says that any will do."""
    values: set[int] = set()
    is_any = False
    for part in word.split(","):
        found = PART.fullmatch(part)
        if found is None:
            raise InvalidValue(f"{_refusal(text)}: {FIELDS[number][0]} {part!r} is no number, range or step")
        values.update(_part(text, found, number))
        is_any = is_any or (bool(found["any"]) and int(found["step"] or 1) == 1)
    return frozenset(values), is_any


def _part(text: str, found: re.Match[str], number: int) -> range:
    """The values of a number, a range, or either with a step; ``5/20`` goes on to the field's end."""
    name, least, most = FIELDS[number]
    step = int(found["step"] or found["by"] or 1)
    low, high = least, most
    if not found["any"]:
        low = int(found["low"])
        high = int(found["high"]) if found["high"] else most if found["by"] else low
    if not (least <= low <= high <= most and step > 0):
        raise InvalidValue(f"{_refusal(text)}: {name} {found[0]!r} is not within {least}-{most}")
    return range(low, high + 1, step)


def _period_s(text: str) -> int:
    """The whole seconds of ``@every``, at least one."""
    written = text.removeprefix(EVERY).strip()
    parts = re.findall(r"(\d+(?:\.\d*)?|\.\d+)(ns|us|µs|ms|s|m|h)", written)
    if not parts or "".join(number + unit for number, unit in parts) != written:
        raise InvalidValue(f"expected @every and a time such as 90s or 1h30m, got {text!r} (at $.spec.schedules)")
    period_s = sum(float(number) * UNIT_S[unit] for number, unit in parts)
    if not 0 < period_s < FAR.total_seconds():
        raise InvalidValue(f"expected @every and a time between 1s and five years, got {text!r} (at $.spec.schedules)")
    return max(1, int(period_s))

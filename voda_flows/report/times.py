"""Times, durations and amounts as people read them."""

from __future__ import annotations

from datetime import UTC, datetime

_MINUTE_S, _HOUR_S, _DAY_S = 60, 3600, 86400


def text(time_s: float) -> str:
    """A time as RFC 3339 in UTC, whole seconds.

    >>> text(60.5)
    '1970-01-01T00:01:00Z'
    """
    return datetime.fromtimestamp(time_s, tz=UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def moment(time_s: float) -> str:
    """A time within a page that names its day elsewhere: day of the month and time of day in UTC.

    >>> moment(60.5)
    'Jan 1 00:01:00'
    """
    when = datetime.fromtimestamp(time_s, tz=UTC)
    return f"{when:%b} {when.day} {when:%H:%M:%S}"


def many(gpus: int | str) -> str:
    """So many GPUs.

    >>> many(1), many("1-4")
    ('1 GPU', '1-4 GPUs')
    """
    return f"{gpus} GPU" if str(gpus) == "1" else f"{gpus} GPUs"


def short(duration_s: float | None) -> str:
    """A duration in at most two units, a dash for none.

    >>> [short(s) for s in (None, 0.42, 7.4, 83, 3700, 180000)]
    ['-', '0.4s', '7s', '1m23s', '1h01m', '2d02h']
    """
    if duration_s is None:
        return "-"
    if duration_s < 1:
        return f"{max(0.0, duration_s):.1f}s"
    whole = round(duration_s)
    if whole < _MINUTE_S:
        return f"{whole}s"
    if whole < _HOUR_S:
        return f"{whole // _MINUTE_S}m{whole % _MINUTE_S:02d}s"
    if whole < _DAY_S:
        return f"{whole // _HOUR_S}h{whole % _HOUR_S // _MINUTE_S:02d}m"
    return f"{whole // _DAY_S}d{whole % _DAY_S // _HOUR_S:02d}h"

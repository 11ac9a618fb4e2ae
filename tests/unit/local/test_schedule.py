"""Schedules come up when those of Argo's own library do.

``schedule_ticks.json`` was recorded from ``robfig/cron`` 3.0.1, which Argo Workflows 4.0.5 uses: the moments after one
moment, or the error with which a schedule was refused.
"""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from itertools import islice, takewhile
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scheduler_core.errors import InvalidValue
from voda_flows.local.schedule import read_schedule
from voda_flows.objects import Object, parse_time

RECORDED = json.loads(Path(__file__).with_name("schedule_ticks.json").read_text())
NEVER = [row for row in RECORDED if not row["ticks"]]
ZONES = ("Etc/UTC", "Europe/Berlin", "America/Sao_Paulo", "Australia/Lord_Howe", "Pacific/Apia", "Asia/Kathmandu")


def shown(row: Object) -> str:
    """A row's name."""
    return f"{row['schedule']} {row['zone']}"


@pytest.mark.parametrize("row", [row for row in RECORDED if row["ticks"]], ids=shown)
def test_schedule_comes_up_as_with_argo(row: Object) -> None:
    """The same moments, also where summer time skips an hour (not at all) or repeats one (twice)."""
    ticks = islice(read_schedule(row["schedule"], row["zone"]).after(parse_time(row["after"])), len(row["ticks"]))

    assert [tick.strftime("%Y-%m-%dT%H:%M:%SZ") for tick in ticks] == row["ticks"]


@pytest.mark.parametrize("row", NEVER, ids=shown)
def test_schedule_without_a_moment_is_refused(row: Object) -> None:
    """What the library refuses is refused here, and so is a day that no year has."""
    with pytest.raises(InvalidValue, match=r"expected a schedule of five fields, .* \(at \$\.spec\.schedules\)"):
        read_schedule(row["schedule"], row["zone"])


@pytest.mark.parametrize("text", ["@every soon", "@every 0s", "@every", "@every 1d", "@every -5s", "@every 900000h"])
def test_period_that_is_none_is_refused(text: str) -> None:
    """The message says what a period looks like."""
    with pytest.raises(InvalidValue, match=r"expected (@every and a time|a schedule of five fields)"):
        read_schedule(text, None)


@pytest.mark.parametrize(
    ("text", "is_time_of_day"),
    [("30 2 * * *", True), ("0,30 1-5 * * 1", True), ("@daily", True), ("*/2 3 * * *", True), ("0 * * * *", False),
     ("@hourly", False), ("* 3 * * *", False), ("@every 24h", False)],
)  # fmt: skip
def test_times_of_the_day_are_told_from_periods(text: str, *, is_time_of_day: bool) -> None:
    """Only what names its hours and minutes is a time of the day."""
    assert read_schedule(text, None).is_time_of_day is is_time_of_day


MINUTES = {"*": range(60), "0": [0], "*/7": range(0, 60, 7), "59": [59], "5-20/5": [5, 10, 15, 20]}
HOURS = {"*": range(24), "2": [2], "0-3": range(4), "23": [23], "*/5": range(0, 24, 5)}
DAYS = {"*": range(1, 32), "1,31": [1, 31], "*/1": range(1, 32)}


@given(
    minute=st.sampled_from(sorted(MINUTES)),
    hour=st.sampled_from(sorted(HOURS)),
    day=st.sampled_from(sorted(DAYS)),
    zone=st.sampled_from(ZONES),
    start=st.datetimes(datetime(2009, 1, 1), datetime(2037, 1, 1), timezones=st.just(UTC)),  # noqa: DTZ001 - in UTC
)
def test_every_minute_that_matches_comes_up(minute: str, hour: str, day: str, zone: str, start: datetime) -> None:
    """The moments of a day and a half are those minutes of real time whose reading on the zone's clock fits."""
    begin = start.replace(second=0, microsecond=0)
    tried = [begin + timedelta(minutes=count) for count in range(1, 36 * 60 + 1)]
    clock = ZoneInfo(zone)
    read = [(tick, tick.astimezone(clock)) for tick in tried]
    expected = [
        tick for tick, at in read if at.minute in MINUTES[minute] and at.hour in HOURS[hour] and at.day in DAYS[day]
    ]

    ticks = read_schedule(f"{minute} {hour} {day} * *", zone).after(begin)

    assert list(takewhile(lambda tick: tick <= tried[-1], ticks)) == expected

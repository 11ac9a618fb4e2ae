"""No test says how fast something must be: on a slow machine it would fail, and nothing would be wrong."""

import textwrap

import pytest

from tests.quality.clocks import upper_bounds
from tests.quality.shape import ROOT, python_files


@pytest.mark.parametrize(
    ("source", "lines"),
    [
        ("assert time.monotonic() - start_s < 5", [1]),
        ("assert 5 >= perf_counter() - start_s", [1]),
        ("assert 0.1 <= time.time() - start_s <= 5", [1]),
        ("start_s = time.monotonic()\ncall()\ntook_s = time.monotonic() - start_s\nassert took_s < 5", [4]),
        ("a, b = process_time(), 3\nspent = process_time() - a\nboth = spent + b\nassert both < 5", [4]),
        ("a = getrusage(0)\nb = resource.getrusage(0)\nassert b.ru_utime - a.ru_utime < 1", [3]),
        ("a = datetime.now(UTC)\nassert (b - a).total_seconds() < 1", [2]),
        ("assert max(time.perf_counter_ns() - a, 0) < 1 and b", [1]),
        ("assert time.monotonic() < deadline_s", [1]),
        ("def f():\n    a = time.monotonic()\n    assert b() - a < 1", [3]),
        ("assert (took_s := time.monotonic() - a) < 1, took_s", [1]),
        ("assert time.monotonic() - start_s >= 0.1", []),
        ("took_s = time.monotonic() - a\nassert 1 <= len(asked) <= took_s / 0.1 + 2", []),
        ("a = time.time()\nassert a <= stamp <= time.time()", []),
        ("while time.monotonic() - a < 30:\n    assert len(found) < 5", []),
        ("assert clock.now - START == timedelta(seconds=90)", []),
        ("assert job.waited_s - other.waited_s < 5", []),
    ],
)
def test_an_upper_bound_of_elapsed_time_is_found(source: str, lines: list[int]) -> None:
    """Directly or through names, on either side of a comparison; lower bounds, waits and given clocks are none."""
    assert upper_bounds(textwrap.dedent(source)) == lines


def test_no_test_asserts_that_something_was_quick() -> None:
    """Speed is measured and shown by tests/show alone."""
    found = [
        f"{path.relative_to(ROOT)}:{line}"
        for path in python_files("tests")
        if not path.is_relative_to(ROOT / "tests" / "show")
        for line in upper_bounds(path.read_text(encoding="utf-8"))
    ]

    assert found == []

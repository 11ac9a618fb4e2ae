"""Area demo, what needs no running job: set-up from nothing, laws, layers, shape of the sources."""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Iterator
from pathlib import Path

from tests.quality.shape import ROOT, SOURCES, file_lines, functions, python_files
from tests.show.commands import Finished, run, run_tests
from tests.show.registry import Row, at_most, exactly, figure, information, percentile

CORES = 2
DOWNLOADS = re.compile(r"packages: (?P<mb>\d+) MB found and downloaded in (?P<seconds>\d+) s")
LAW_CASES = 10_000
LAW_CASES_QUICK = 300


@figure(area="demo")
def placement_laws(quick: bool) -> Iterator[Row]:
    """Every worker placed once, no node over capacity, repetition moves nothing; the rows of the issue."""
    yield run_tests(
        "placement laws", ["tests/laws/test_placement.py"], examples=LAW_CASES_QUICK if quick else LAW_CASES
    )
    yield run_tests("placement rows, from 6+4+2 on 3x4 to 6 on 4+4", ["tests/scenarios/test_placement.py"])


@figure(area="demo")
def allocation_laws(quick: bool) -> Iterator[Row]:
    """0 or min..max, within capacity, nothing idle that could be given, same bytes for permuted input; golden rows."""
    yield run_tests(
        "allocation laws", ["tests/laws/test_allocation.py"], examples=LAW_CASES_QUICK if quick else LAW_CASES
    )
    yield run_tests("allocation golden rows", ["tests/scenarios/test_allocation.py"])


@figure(area="demo")
def shape(quick: bool) -> Iterator[Row]:
    """Sizes of files and functions."""
    lines = [found.lines for found in functions(*SOURCES, "tests")]
    yield at_most("function length, p90", percentile(lines, 0.9), 40, "lines")
    yield at_most("longest source file", max(map(file_lines, python_files(*SOURCES))), 400, "lines")
    yield at_most("longest test file", max(map(file_lines, python_files("tests"))), 600, "lines")


@figure(area="demo", in_quick=False)
def check(quick: bool) -> Iterator[Row]:
    """Types, lint, layers, runtime on Python 3.9, fast tests."""
    ended = run(["make", "check"])
    yield exactly(f"make check, exit code ({ended.seconds:.0f} s)", ended.code, 0)


def _on_two_cores(target: str, folder: Path, cache: Path) -> Finished:
    cores = ",".join(map(str, sorted(os.sched_getaffinity(0))[:CORES]))
    environment = {"XDG_CACHE_HOME": str(cache), "PIP_CACHE_DIR": str(cache / "pip"), "VODA_HOME": str(cache / "home")}
    return run(["taskset", "--cpu-list", cores, "make", target], folder=folder, environment=environment)


def _download_s(ended: Finished) -> tuple[int, int]:
    found = DOWNLOADS.search(ended.output)
    return (int(found["mb"]), int(found["seconds"])) if found else (0, 0)


@figure(area="demo", in_quick=False)
def fresh_clone(quick: bool) -> Iterator[Row]:
    """The README's two commands in a fresh clone, with an empty cache, on two cores."""
    with tempfile.TemporaryDirectory(prefix="voda-fresh-") as scratch:
        clone, cache = Path(scratch, "voda"), Path(scratch, "cache")
        run(["git", "clone", "--quiet", str(ROOT), str(clone)])
        first = _on_two_cores("demo", clone, cache)
        megabytes, seconds = _download_s(first)
        yield information("downloads of the set-up", f"{megabytes} MB in {seconds} s")
        yield exactly("make demo, fresh clone: exit code", first.code, 0)
        yield at_most("make demo, fresh clone, downloads apart", first.seconds - seconds, 600, "s")
        second = _on_two_cores("demo", clone, cache)
        yield exactly("make demo, second time: exit code", second.code, 0)
        yield at_most("make demo, second time", second.seconds, 240, "s")
        tests = _on_two_cores("test", clone, cache)
        yield exactly("make test: exit code", tests.code, 0)
        yield at_most("make test, once set up", tests.seconds, 600, "s")

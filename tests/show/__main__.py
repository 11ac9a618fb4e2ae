"""Runs the figures of an area and prints the table; exit 1 when one does not hold, 2 when there is no such area."""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import time
import traceback
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass

from tests.show import record
from tests.show.registry import Figure, Row, areas, figures_of


def measure(figure: Figure, state: str, *, quick: bool, again: bool) -> record.Record:
    """Measure one figure, or take what was measured for this state of the tree before."""
    found = None if again else record.kept(state, figure, quick=quick)
    if found is not None:
        return found
    sys.stderr.write(f"measuring {figure.name} ...\n")
    start_s = time.monotonic()
    try:
        rows = tuple(figure.measure(quick))
    except Exception as error:  # noqa: BLE001 - one figure that breaks must not hide the others
        traceback.print_exc()
        failure = Row(
            figure=figure.name, value=f"{type(error).__name__}: {error}"[:200], must_be="measured", holds=False
        )
        return record.Record(rows=(failure,), seconds=time.monotonic() - start_s)
    result = record.Record(rows=rows, seconds=time.monotonic() - start_s)
    record.keep(state, figure, result, quick=quick)
    sys.stderr.write(f"measured {figure.name} ({result.seconds:.0f} s)\n")
    return result


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """How figures are measured.

    Attributes:
        state: Of the working tree.
        quick: Whether only the small sample is.
        again: Whether what is known already is measured afresh.
    """

    state: str
    quick: bool
    again: bool

    def rows(self, figures: Sequence[Figure]) -> list[Row]:
        """The rows of all figures: those without a lane one after the other, then the lanes at the same time."""
        lanes: dict[str, list[Figure]] = {}
        for found in figures:
            lanes.setdefault(found.lane, []).append(found)
        rows = self._in_turn(lanes.pop("", []))
        here, *elsewhere = lanes.values() or [[]]
        with ThreadPoolExecutor(max_workers=max(1, len(elsewhere))) as others:
            told = [others.submit(self._in_a_process, lane) for lane in elsewhere]
            rows += self._in_turn(here)
            return rows + [row for lane in told for row in lane.result()]

    def _in_turn(self, figures: Sequence[Figure]) -> list[Row]:
        return [row for found in figures for row in measure(found, self.state, quick=self.quick, again=self.again).rows]

    def _in_a_process(self, figures: Sequence[Figure]) -> list[Row]:
        """The same figures in a process of their own, which tells its story on our stderr."""
        command = [sys.executable, "-m", "tests.show", figures[0].area, "--output", "json"]
        command += [word for found in figures for word in ("--figure", found.name)]
        command += ["--quick"] * self.quick + ["--again"] * self.again
        ended = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
        try:
            return [Row(**row) for row in json.loads(ended.stdout)["rows"]]
        except ValueError:
            names = ", ".join(found.name for found in figures)
            return [Row(figure=names, value=f"ended with {ended.returncode}", must_be="measured", holds=False)]


def table(rows: Sequence[Row]) -> str:
    """The rows as text, one a line, columns aligned."""
    cells = [(row.figure, row.value, row.must_be, "yes" if row.holds else "NO") for row in rows]
    cells.insert(0, ("figure", "value", "must be", "holds"))
    widths = [max(len(line[column]) for line in cells) for column in range(4)]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip() for line in cells
    )


def exit_code(rows: Sequence[Row], *, speed_is_shown: bool) -> int:
    """0 when every row holds; a missed time on the clock does not count where speed is merely shown."""
    return 0 if all(row.holds or (row.is_speed and speed_is_shown) for row in rows) else 1


def machine() -> str:
    """What the figures were measured on, in words."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return f"{platform.system()} {platform.machine()}, {cores} cores, Python {platform.python_version()}"


def arguments() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m tests.show", description=__doc__)
    parser.add_argument("area", help=f"one of: {', '.join(areas())}")
    parser.add_argument("--quick", action="store_true", help="the small sample that CI runs")
    parser.add_argument("--again", action="store_true", help="measure afresh what was measured for this commit before")
    parser.add_argument("--figure", action="append", metavar="NAME", help="only this figure; may be repeated")
    parser.add_argument(
        "--speed-is-shown",
        action="store_true",
        help="times on the clock are printed, but do not decide the exit code (a machine shared with others)",
    )
    parser.add_argument("-o", "--output", choices=("table", "json"), default="table")
    return parser.parse_args()


def main() -> int:
    """Measure, print, and tell by the exit code whether everything holds."""
    chosen = arguments()
    figures = [found for found in figures_of(chosen.area) if not chosen.figure or found.name in chosen.figure]
    if not figures:
        sys.stderr.write(f"expected an area that has figures ({', '.join(areas())}), found {chosen.area!r}\n")
        return 2
    state = record.tree_state()
    wanted = [found for found in figures if found.in_quick or not chosen.quick]
    rows = Run(state=state, quick=chosen.quick, again=chosen.again).rows(wanted)
    code = exit_code(rows, speed_is_shown=chosen.speed_is_shown)
    if chosen.output == "json":
        print(
            json.dumps(
                {"state": state, "machine": machine(), "holds": code == 0, "rows": [asdict(row) for row in rows]}
            )
        )
    else:
        print(f"{chosen.area} at {state}{' (quick sample)' if chosen.quick else ''}; {machine()}\n\n{table(rows)}\n")
        missed = sum(not row.holds for row in rows)
        print(f"{missed} of {len(rows)} do not hold" if missed else "everything holds")
    return code


if __name__ == "__main__":
    sys.exit(main())

"""The live view and aligned columns, as text."""

from __future__ import annotations

import doctest
import io
import subprocess
import sys

import pytest
from rich.console import Console

from tests.unit.report.five_jobs import jobs
from tests.unit.report.world import START_S, Building, node
from voda_flows.cli import columns
from voda_flows.cli.screen import line, picture
from voda_flows.cli.snapshot import Snapshot, in_order, node_views
from voda_flows.config import Settings
from voda_flows.report.lives import JobLife, lives


def world(*made: Building) -> Snapshot:
    """A snapshot of some jobs on two nodes."""
    found: list[JobLife] = [life for job in made for life in lives(job.workflow(), job.pods.values())]
    pods = [pod for job in made for pod in job.pods.values()]
    nodes = node_views([node("n0", 2), node("n1", 2)], pods, found)
    return Snapshot(now_s=START_S + 100, nodes=nodes, lives=tuple(found), decisions=("12:00:00 a trains on 2",))


def drawn(now: Snapshot, *, width: int = 80, height: int = 24) -> list[str]:
    """The picture as lines."""
    console = Console(file=io.StringIO(), width=width, height=height)
    with console.capture() as capture:
        console.print(picture(now, in_order(now.lives, Settings()), note="a note", height=height))
    return capture.get().splitlines()


def test_the_picture_has_nodes_jobs_queue_and_decisions() -> None:
    """Everything there is to see, on a small terminal."""
    text = "\n".join(drawn(world(*jobs())))

    for part in (
        "a note",
        "n0",
        "digits",
        "Succeeded",
        "100%",
        "queue",
        "1. rigid wants 2",
        "decisions",
        "a trains on 2",
    ):
        assert part in text


@pytest.mark.parametrize(("width", "height"), [(80, 24), (60, 16), (200, 50)])
def test_the_picture_fits_the_terminal(width: int, height: int) -> None:
    """No line is wider, and there are not more lines, whatever the number of jobs."""
    many = [Building(name=f"job-{number}", uid=str(number)).finish(5) for number in range(40)]
    lines = drawn(world(*jobs(), *many), width=width, height=height)

    assert len(lines) <= height
    assert max(map(len, lines)) <= width


def test_jobs_that_go_on_are_kept_when_there_is_no_room() -> None:
    """Ended jobs are the first to leave the screen."""
    many = [Building(name=f"old-{number}", uid=str(number)).finish(5) for number in range(40)]
    text = "\n".join(drawn(world(*many, Building(name="fresh", uid="f"))))

    assert "fresh" in text


def test_the_line_for_pipes() -> None:
    """Slots and jobs in one line."""
    job = Building(name="a").grant(1, ("w0", "n0")).publish("w0").progress(1, 4)
    job.pods["a-worker-0w0"]["metadata"]["annotations"]["voda.dev/slots"] = "1"

    assert line(world(job)).split(" ", 1)[1] == "n0[-|a] n1[-|-]  a Running on 1 25%"


def test_columns_examples_hold_and_long_lines_are_cut() -> None:
    """Columns are aligned; with a width, a line that does not fit ends in an ellipsis."""
    assert doctest.testmod(columns).failed == 0
    assert columns.align(["A"], [["x" * 20]], width=10)[1] == "xxxxxxxxx…"


def test_a_listing_does_not_wait_for_large_imports() -> None:
    """Nothing that takes tenths of a second to import is needed to list jobs."""
    large = ("hera", "horovod", "jinja2", "kubernetes", "numpy", "pydantic", "rich", "scipy", "torch", "yaml")
    code = f"import sys, voda_flows.cli.list; print([m for m in {large} if m in sys.modules])"
    ended = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)

    assert ended.stdout == "[]\n"


def test_help_imports_no_verb() -> None:
    """`voda --help` is made from the table alone."""
    code = (
        "import sys; from voda_flows.cli import run; run(['--help']); "
        "print([m for m in sys.modules if m in ('rich', 'yaml', 'sqlite3', 'voda_flows.cli.list')])"
    )
    ended = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)

    assert ended.stdout.splitlines()[-1] == "[]"

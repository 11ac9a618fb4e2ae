"""The live view and aligned columns, as text."""

from __future__ import annotations

import doctest
import io

import pytest
from rich.console import Console

from tests.unit.report.five_jobs import jobs
from tests.unit.report.world import START_S, Building, node
from voda_flows import selectors
from voda_flows.cli import columns, moments
from voda_flows.cli import picture as drawing
from voda_flows.cli.picture import picture
from voda_flows.cli.screen import line
from voda_flows.cli.snapshot import Snapshot, in_order, node_views
from voda_flows.config import Settings
from voda_flows.local import loglines
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
        console.print(picture(now, in_order(now.lives, Settings()), note="a note", height=height, width=width))
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
    job = Building(name="a").grant(1, ("w0", "n0")).publish("w0").progress(250, 1000)
    job.pods["a-worker-0w0"]["metadata"]["annotations"]["voda.dev/slots"] = "1"

    assert line(world(job)).split(" ", 1)[1] == "n0[-|a] n1[-|-]  a Running on 1 25%"


def test_examples_of_columns_times_and_log_lines_hold() -> None:
    """What the docstrings show."""
    assert [doctest.testmod(module).failed for module in (columns, drawing, loglines, moments, selectors)] == [0] * 5


@pytest.mark.parametrize(
    ("width", "lines"),
    [
        (
            80,
            [
                "NAME                 STATUS  GPUS PROGRESS WAITED AGE MESSAGE",
                "digits-with-a-name-7 Running 2/4  25%      3s     9s  trains",
                "x                    Queued  0/1  0%       1m     1m  place 1 of 3; waits for 2…",
            ],
        ),
        (
            60,
            [
                "NAME                 STATUS  GPUS PROGRESS WAITED AGE",
                "digits-with-a-name-7 Running 2/4  25%      3s     9s",
                "x                    Queued  0/1  0%       1m     1m",
            ],
        ),
        (
            40,
            [
                "NAME                 STATUS  GPUS",
                "digits-with-a-name-7 Running 2/4",
                "x                    Queued  0/1",
            ],
        ),
        (22, ["NAME           STATUS", "digits-…name-7 Running", "x              Queued"]),
    ],
)
def test_a_narrow_terminal_has_what_matters_most(width: int, lines: list[str]) -> None:
    """Columns go from the right; what is cut says so; names keep their end."""
    headers = ["NAME", "STATUS", "GPUS", "PROGRESS", "WAITED", "AGE", "MESSAGE"]
    rows = [
        ["digits-with-a-name-7", "Running", "2/4", "25%", "3s", "9s", "trains"],
        ["x", "Queued", "0/1", "0%", "1m", "1m", "place 1 of 3; waits for 2 GPUs"],
    ]

    assert columns.align(headers, rows, width=width) == lines


def test_a_text_to_be_read_whole_goes_on_below() -> None:
    """The last column is wrapped; others give way to it."""
    rows = [["+3s", "0", "0.12s", "grows in place 1 -> 2: nobody else wants GPUs"]]

    assert columns.align(["AT", "SEGMENT", "STILL", "WHAT"], rows, width=40, wrap=True) == [
        "AT  SEGMENT WHAT",
        "+3s 0       grows in place 1 -> 2:",
        "            nobody else wants GPUs",
    ]

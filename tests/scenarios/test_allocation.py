"""Allocation by worked rows: the original's golden answers, and one row for each rule of ours."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from scheduler_core.allocate.elastic_fifo import elastic_fifo
from scheduler_core.allocate.fifo import fifo
from scheduler_core.allocate.order import useful_gpus
from scheduler_core.model.job import JobSpec
from scheduler_core.model.ports import PolicyInput
from tests.unit.core.builders import asked, spec

#: Results of heyfey/vodascheduler (Apache-2.0); the file names source, commit and licence.
GOLDEN: dict[str, Any] = json.loads(Path(__file__).with_name("voda_fifo.json").read_text(encoding="utf-8"))


def golden_input(case: dict[str, Any], *, with_speeds: bool = True) -> PolicyInput:
    """A case of the golden file as our policies are asked."""
    specs = [spec(name, (least, most), submitted_s=float(at)) for name, at, least, most, _ in case["jobs"]]
    speeds = {name: tuple(speed) for name, _, _, _, speed in case["jobs"]} if with_speeds else {}
    return asked(specs, case["gpus"], speed_by_job=speeds)


def answered(answer: dict[str, int]) -> dict[str, int]:
    """The original's answer without its zeros."""
    return {name: gpus for name, gpus in answer.items() if gpus}


def test_fifo_agrees_with_every_golden_row() -> None:
    """All 240 answers of the original are ours."""
    agreeing = [
        case for case in GOLDEN["cases"] if dict(fifo(golden_input(case)).gpus_by_job) == answered(case["fifo"])
    ]

    assert len(agreeing) == 240


def test_elastic_fifo_agrees_with_the_original_or_stops_at_the_best_speed() -> None:
    """189 answers are ours; in 48 the original grows a job past its best speed; in 3 it panics and we answer."""
    outcomes: Counter[str] = Counter()
    for case in GOLDEN["cases"]:
        given_input = golden_input(case)
        ours = elastic_fifo(given_input).check(given_input.specs, given_input.capacity_gpus, by="elastic_fifo")
        theirs = case["elastic_fifo"]
        if "panic" in theirs:
            outcomes["panics"] += 1
        elif dict(ours.gpus_by_job) == answered(theirs):
            outcomes["agrees"] += 1
        elif any(theirs[one.id] > useful_gpus(one, given_input.speed_by_job[one.id]) for one in given_input.specs):
            outcomes["grows past the best speed"] += 1

    assert outcomes == {"agrees": 189, "grows past the best speed": 48, "panics": 3}


def test_elastic_fifo_agrees_with_every_golden_answer_when_no_speed_is_known() -> None:
    """The best speed is the only reason to differ: without tables all 237 answers are ours."""
    answering = [case for case in GOLDEN["cases"] if "panic" not in case["elastic_fifo"]]

    for case in answering:
        ours = elastic_fifo(golden_input(case, with_speeds=False))
        assert dict(ours.gpus_by_job) == answered(case["elastic_fifo"])
    assert len(answering) == 237


def test_where_we_differ_the_jobs_are_faster_in_all() -> None:
    """Stopping at the best speed never lowers the sum of speeds."""
    for case in GOLDEN["cases"]:
        if "panic" in case["elastic_fifo"]:
            continue
        given_input = golden_input(case)
        ours = elastic_fifo(given_input)

        assert total_speed(given_input, dict(ours.gpus_by_job)) >= total_speed(
            given_input, answered(case["elastic_fifo"])
        )


def total_speed(given_input: PolicyInput, gpus_by_job: dict[str, int]) -> float:
    """Sum of the speeds, rounded against the order of addition."""
    return round(sum(given_input.speed_by_job[name][gpus] for name, gpus in gpus_by_job.items()), 6)


ROWS: dict[str, tuple[list[JobSpec], int, dict[str, int], dict[str, int]]] = {
    "no jobs": ([], 4, {}, {}),
    "no GPUs": ([spec("a")], 0, {}, {}),
    "what does not fit is passed by": (
        [spec("a", (2, 2)), spec("b", (3, 3), submitted_s=1.0), spec("c", (1, 1), submitted_s=2.0)],
        4,
        {"a": 2, "c": 1},
        {"a": 2, "c": 1},
    ),
    "a job without its minimum does not grow (the original panics)": (
        [spec("a", (1, 2)), spec("b", (4, 4), submitted_s=1.0)],
        3,
        {"a": 1},
        {"a": 2},
    ),
    "priority before submit time": (
        [spec("a", (2, 2)), spec("b", (2, 2), submitted_s=9.0, priority=100)],
        2,
        {"b": 2},
        {"b": 2},
    ),
    "equal in all but the id": ([spec("b", (2, 2)), spec("a", (2, 2))], 2, {"a": 2}, {"a": 2}),
    "left over goes round in turn": (
        [spec("a", (1, 4)), spec("b", (1, 4), submitted_s=1.0)],
        5,
        {"a": 1, "b": 1},
        {"a": 3, "b": 2},
    ),
    "growth is by whole workers": (
        [spec("a", (4, 12), gpus_per_worker=4), spec("b", (1, 4), submitted_s=1.0)],
        8,
        {"a": 4, "b": 1},
        {"a": 4, "b": 4},
    ),
}


@pytest.mark.parametrize("row", ROWS.values(), ids=ROWS.keys())
def test_allocation_rows(row: tuple[list[JobSpec], int, dict[str, int], dict[str, int]]) -> None:
    """Each row: jobs, GPUs, what FIFO gives, what elastic FIFO gives."""
    specs, capacity_gpus, by_fifo, by_elastic_fifo = row

    assert dict(fifo(asked(specs, capacity_gpus)).gpus_by_job) == by_fifo
    assert dict(elastic_fifo(asked(specs, capacity_gpus)).gpus_by_job) == by_elastic_fifo


@pytest.mark.parametrize(
    ("speeds", "gpus"),
    [
        ((), 8),  # nothing known
        ((0.0, 1.0, 1.9), 8),  # still faster at the largest size known
        ((0.0, 1.0, 1.9, 1.8), 2),  # a larger size is known to be slower
        ((0.0, 1.0, 1.9, 1.9), 2),  # no faster is not worth a GPU
        ((0.0, 3.0, 2.0, 1.0), 2),  # never below the minimum
    ],
)
def test_a_job_grows_up_to_its_best_known_speed(speeds: tuple[float, ...], gpus: int) -> None:
    """A job of 2..8 alone on 8 GPUs."""
    given_input = asked([spec("a", (2, 8))], 8, speed_by_job={"a": speeds})

    assert elastic_fifo(given_input).gpus("a") == gpus

"""The exact placement against every placement there is, the gate before a move, and what a job keeps."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import product

import numpy as np
import pytest

from scheduler_core.model.resizes import ResizeCost, ResizeCosts
from scheduler_core.place.layout import Layout
from scheduler_core.place.place import place
from scheduler_core.place.problem import Problem, Workers, problem_of
from tests.unit.core.builders import cluster, spec, to_place

CASES = 40


def ways(want: int, rooms: list[int]) -> Iterator[Workers]:
    """Every way to put so many workers on nodes with this room."""
    for counts in product(*(range(min(want, room) + 1) for room in rooms)):
        if sum(counts) == want:
            yield {node: count for node, count in enumerate(counts) if count}


def cheapest(problem: Problem) -> float:
    """GPU-seconds of the best of all placements."""
    options = [list(ways(want, list(problem.capacity))) for want in problem.want]
    best = float("inf")
    for chosen in product(*options):
        used = [sum(workers.get(node, 0) for workers in chosen) for node in range(len(problem.names))]
        if all(gpus <= capacity for gpus, capacity in zip(used, problem.capacity, strict=True)):
            best = min(best, sum(problem.cost(job, workers) for job, workers in enumerate(chosen)))
    return best


def test_small_placements_are_the_cheapest_of_all() -> None:
    """Three jobs on three nodes, one new and two standing somewhere: nothing costs less, moves and all."""
    rng = np.random.default_rng(2)
    for _ in range(CASES):
        nodes = cluster(*(int(gpus) for gpus in rng.integers(2, 5, 3)))
        free = sum(node.gpus for node in nodes.nodes)
        sizes = {"a": int(rng.integers(2, 4)), "b": int(rng.integers(1, 3))}
        standing = place(to_place({**sizes, "x": 1}, nodes)).workers_by_job
        sizes["c"] = min(int(rng.integers(1, 4)), free - sum(sizes.values()))
        question = to_place(sizes, nodes, standing, [spec(job_id, (1, 8)) for job_id in sizes])
        problem = problem_of(question)

        placement = place(question).check(question.allocation, question.specs, question.capacity_gpus)

        number = {name: node for node, name in enumerate(problem.names)}
        cost = sum(
            problem.cost(job, {number[node]: count for node, count in placement.workers(job_id).items()})
            for job, job_id in enumerate(problem.ids)
        )
        assert cost == pytest.approx(cheapest(problem))


@pytest.mark.parametrize(("move_s", "expected"), [(1.0, {"n1": 4}), (1_000.0, {"n0": 2, "n1": 2})])
def test_a_move_is_made_only_when_it_gains_more_than_it_costs(move_s: float, expected: dict[str, int]) -> None:
    """Two workers on n0 grow to four, which n1 holds whole: worth two cheap moves, not two dear ones."""
    question = to_place({"a": 4}, cluster(2, 4), {"a": {"n0": 2}}, [spec("a", (1, 8))])
    question = replace(question, costs=ResizeCosts(move=ResizeCost(base_s=move_s)))

    assert place(question).workers_by_job == {"a": expected}


def test_shrinking_keeps_the_smallest_domain_that_is_enough() -> None:
    """Of 2+2+3 workers four stay on two nodes, the fuller ones; of these three fit on one."""
    nodes, standing = cluster(4, 4, 4), {"a": {"n0": 2, "n1": 2, "n2": 3}}

    assert place(to_place({"a": 3}, nodes, standing)).workers_by_job == {"a": {"n2": 3}}
    assert place(to_place({"a": 4}, nodes, standing)).workers_by_job == {"a": {"n0": 1, "n2": 3}}


def test_a_full_cluster_gathers_a_job_by_changing_places() -> None:
    """No GPU free: a job on two nodes changes places with a part on one of them, and everybody has one node."""
    standing = {"a": {"n0": 2}, "b": {"n0": 1, "n1": 1}, "c": {"n1": 1}}
    sizes = {"a": 2, "b": 2, "c": 1, "d": 1}
    specs = [spec(job_id, (1, 4)) for job_id in sizes]

    placement = place(to_place(sizes, cluster(3, 3), standing, specs))

    assert sorted(len(nodes) for nodes in placement.workers_by_job.values()) == [1, 1, 1, 1]
    assert placement.unplaced == {}


def test_a_layout_takes_back_what_was_tried() -> None:
    """Whatever was put after a mark is gone, free GPUs and the index of the tightest node included."""
    layout = Layout(problem_of(to_place({"a": 2, "b": 3}, cluster(4, 3))))
    layout.put(0, 0, 2)
    mark = layout.mark()
    layout.put(1, 1, 3)
    layout.put(0, 0, -1)

    layout.back(mark)

    assert layout.at == [{0: 2}, {}]
    assert layout.free == [2, 3]
    assert layout.tightest(2) == 0
    assert layout.tightest(3) == 1


def test_the_solver_says_nothing(capfd: pytest.CaptureFixture[str]) -> None:
    """Not a word reaches standard output or error, where the command line speaks."""
    place(to_place({"a": 3, "b": 3, "c": 2, "d": 2, "e": 2}, cluster(4, 4, 4)))

    assert capfd.readouterr() == ("", "")

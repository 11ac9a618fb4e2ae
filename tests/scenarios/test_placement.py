"""Placement by worked rows: jobs wider than a node, mixed nodes, growth, shrinking, and the one case that must move."""

from __future__ import annotations

from dataclasses import replace

import pytest

from scheduler_core.model.cluster import Cluster, Node
from scheduler_core.place.place import place
from tests.unit.core.builders import cluster, spec, to_place

#: Requests (GPUs by job), nodes, and the fewest spans (job-node pairs) there can be, counted by hand.
ROWS: dict[str, tuple[tuple[int, ...], tuple[int, ...], int]] = {
    "6+4+2 on 3x4 (the original never ends)": ((6, 4, 2), (4, 4, 4), 4),
    "3+3+2+2+2 on 3x4 (the original over-books)": ((3, 3, 2, 2, 2), (4, 4, 4), 6),
    "8+4 on 4+8 (the original puts 8 on 4)": ((8, 4), (4, 8), 2),
    "10+6 on 8+8": ((10, 6), (8, 8), 3),
    "6 on 4+4": ((6,), (4, 4), 2),
}


@pytest.mark.parametrize("row", ROWS.values(), ids=ROWS.keys())
def test_rows_are_placed_on_the_fewest_nodes(row: tuple[tuple[int, ...], tuple[int, ...], int]) -> None:
    """Everybody placed, no node over capacity, the fewest spans, and again without a move."""
    requests, nodes, fewest = row
    gpus_by_job = {f"j{index}": gpus for index, gpus in enumerate(requests)}
    question = to_place(gpus_by_job, cluster(*nodes))

    placement = place(question).check(question.allocation, question.specs, question.capacity_gpus)

    assert placement.unplaced == {}
    assert sum(len(placement.workers(job_id)) for job_id in gpus_by_job) == fewest
    assert place(to_place(gpus_by_job, cluster(*nodes), placement.workers_by_job)) == placement


def test_a_job_goes_where_it_fits_tightest() -> None:
    """Two GPUs go on the node with two, not on the one with four."""
    assert place(to_place({"a": 2}, cluster(4, 2))).workers_by_job == {"a": {"n1": 2}}


def test_growth_stays_on_the_jobs_own_nodes_first() -> None:
    """A job of 2 on n0 grows to 4: the two free slots of n0, although n1 would take them too."""
    placement = place(to_place({"a": 4}, cluster(4, 2), {"a": {"n0": 2}}))

    assert placement.workers_by_job == {"a": {"n0": 4}}


def test_growth_beyond_its_node_gathers_the_job_on_one_that_holds_it() -> None:
    """A job of 4 on n0 grows to 6 on 4+8: all six on n1, because an hour of less communication pays for four moves."""
    placement = place(to_place({"a": 6}, cluster(4, 8), {"a": {"n0": 4}}))

    assert placement.workers_by_job == {"a": {"n1": 6}}


def test_growth_of_a_job_near_its_end_adds_and_moves_nothing() -> None:
    """The same job with half a minute left: two more on n1, because four moves cost more than they would gain."""
    question = replace(to_place({"a": 6}, cluster(4, 8), {"a": {"n0": 4}}), remaining_s_by_job={"a": 30.0})

    assert place(question).workers_by_job == {"a": {"n0": 4, "n1": 2}}


def test_shrinking_leaves_the_node_with_fewest_workers() -> None:
    """A job of 3+1 shrinks to 3 and then to 2 on one node."""
    nodes = cluster(4, 4)

    assert place(to_place({"a": 3}, nodes, {"a": {"n0": 1, "n1": 3}})).workers_by_job == {"a": {"n1": 3}}
    assert place(to_place({"a": 2}, nodes, {"a": {"n1": 3}})).workers_by_job == {"a": {"n1": 2}}


def test_a_running_job_is_not_gathered_by_a_move() -> None:
    """A job that stands on two nodes stays there when one node would hold it: a move is not made for its span."""
    placement = place(to_place({"a": 2}, cluster(2, 2), {"a": {"n0": 1, "n1": 1}}))

    assert placement.workers_by_job == {"a": {"n0": 1, "n1": 1}}


def test_small_workers_move_only_where_a_large_one_has_no_node() -> None:
    """Two single GPUs on two nodes of two: a worker of two GPUs needs a whole node, so one of them moves."""
    specs = [spec("a"), spec("b"), spec("wide", (2, 2), gpus_per_worker=2)]
    standing = {"a": {"n0": 1}, "b": {"n1": 1}}

    placement = place(to_place({"a": 1, "b": 1, "wide": 2}, cluster(2, 2), standing, specs))

    assert placement.workers_by_job == {"a": {"n1": 1}, "b": {"n1": 1}, "wide": {"n0": 1}}
    assert placement.unplaced == {}


def test_who_does_not_fit_is_named_with_the_reason() -> None:
    """Four GPUs on 3+2 leave one: the later job, whose worker has two, is unplaced; the earlier one has all four."""
    specs = [spec("a", (4, 4)), spec("wide", (2, 2), gpus_per_worker=2, submitted_s=1.0)]

    placement = place(to_place({"a": 4, "wide": 2}, cluster(3, 2), None, specs))

    assert placement.workers_by_job == {"a": {"n0": 2, "n1": 2}}
    assert placement.unplaced == {
        "wide": "1 workers with 2 GPUs each need a node for each of them, and the nodes have room for 0"
    }


def test_nobody_moves_when_leaving_somebody_out_is_enough() -> None:
    """Six GPUs asked of five: the last in order has no place, and the running small job stays where it is."""
    specs = [spec("a"), spec("b", (2, 2), submitted_s=1.0), spec("c", (3, 3), submitted_s=2.0)]

    placement = place(to_place({"a": 1, "b": 2, "c": 3}, cluster(2, 3), {"a": {"n1": 1}}, specs))

    assert placement.workers_by_job == {"a": {"n1": 1}, "b": {"n0": 2}}
    assert list(placement.unplaced) == ["c"]


def racks(*places: tuple[str, int]) -> Cluster:
    """Nodes n0, n1, ... with a rack and GPUs each."""
    nodes = tuple(Node(name=f"n{index}", gpus=gpus, labels={"rack": rack}) for index, (rack, gpus) in enumerate(places))
    return Cluster(nodes=nodes, levels=("rack",))


def test_a_job_on_several_nodes_stays_inside_a_rack() -> None:
    """Four GPUs on nodes of two: two nodes of one rack, not the first two by name."""
    placement = place(to_place({"a": 4}, racks(("x", 2), ("y", 2), ("y", 2), ("x", 1))))

    assert placement.workers_by_job == {"a": {"n1": 2, "n2": 2}}


def test_growth_goes_to_the_rack_where_the_job_stands() -> None:
    """A job on n0 of rack x grows by two: to n3 in its rack, not to n1."""
    placement = place(to_place({"a": 4}, racks(("x", 2), ("y", 2), ("y", 2), ("x", 2)), {"a": {"n0": 2}}))

    assert placement.workers_by_job == {"a": {"n0": 2, "n3": 2}}


def test_fewer_nodes_come_before_nearness() -> None:
    """Four GPUs: one node in another rack rather than two near ones."""
    placement = place(to_place({"a": 4}, racks(("x", 2), ("x", 2), ("y", 4))))

    assert placement.workers_by_job == {"a": {"n2": 4}}

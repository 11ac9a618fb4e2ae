"""Placement laws of the placer: what holds whatever the nodes, the jobs and where they stand."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scheduler_core.model.allocation import Allocation
from scheduler_core.model.cluster import Cluster, Node
from scheduler_core.model.placement import Placement
from scheduler_core.model.ports import PlacerInput
from scheduler_core.place.place import place
from tests.unit.core.builders import spec, to_place

#: Ten thousand cases take a minute on an idle core, more on a busy one.
pytestmark = pytest.mark.timeout(900)

LEVELS = ("zone", "rack")


#: GPUs, zone, rack, schedulable, GPUs of others.
DrawnNode = tuple[int, str, str, bool, int]
NODES = st.lists(
    st.tuples(
        st.integers(0, 8),
        st.sampled_from("ab"),
        st.sampled_from("xy"),
        st.sampled_from((True, True, True, False)),
        st.sampled_from((0, 0, 1)),
    ),
    min_size=1,
    max_size=6,
)
#: GPUs of a worker, workers, submit time, workers standing on the first nodes.
DrawnJob = tuple[int, int, int, list[int]]


def jobs(*sizes: int) -> st.SearchStrategy[list[DrawnJob]]:
    """Up to six jobs of 1..12 workers of these sizes, with workers standing wherever there may be some."""
    standing = st.lists(st.integers(0, 2), max_size=6)
    return st.lists(st.tuples(st.sampled_from(sizes), st.integers(1, 12), st.integers(0, 2), standing), max_size=6)


def question(drawn_nodes: list[DrawnNode], drawn_jobs: list[DrawnJob]) -> PlacerInput:
    """Nodes in two zones and four racks, some cordoned, some partly taken by others; and the jobs on them."""
    nodes = tuple(
        Node(
            name=f"n{index}",
            gpus=gpus,
            labels={"zone": zone, "rack": zone + rack},
            schedulable=schedulable,
            foreign_gpus=min(foreign, gpus),
        )
        for index, (gpus, zone, rack, schedulable, foreign) in enumerate(drawn_nodes)
    )
    specs = [
        spec(f"j{index}", (size, 12 * size), gpus_per_worker=size, submitted_s=float(submitted_s))
        for index, (size, _, submitted_s, _) in enumerate(drawn_jobs)
    ]
    gpus_by_job = {f"j{index}": size * workers for index, (size, workers, _, _) in enumerate(drawn_jobs)}
    current = {
        f"j{index}": {node.name: count for node, count in zip(nodes, standing, strict=False)}
        for index, (_, _, _, standing) in enumerate(drawn_jobs)
    }
    return to_place(gpus_by_job, Cluster(nodes=nodes, levels=LEVELS), current, specs)


def moves(asked: PlacerInput, placement: Placement) -> int:
    """Workers that could have stayed and stand elsewhere now, all jobs together."""
    moved = 0
    for one in asked.specs:
        before, after = asked.current.workers(one.id), placement.workers(one.id)
        stayed = sum(min(count, after.get(node, 0)) for node, count in before.items())
        moved += min(sum(before.values()), sum(after.values())) - stayed
    return moved


def cordoned_nodes_take_nothing_new(asked: PlacerInput, placement: Placement) -> None:
    """On a node that is not schedulable a job has at most the workers that it had there."""
    closed = [node.name for node in asked.cluster.nodes if not node.schedulable]
    for one in asked.specs:
        for node in closed:
            assert placement.workers(one.id).get(node, 0) <= asked.current.workers(one.id).get(node, 0)


def an_identical_request_moves_nothing(asked: PlacerInput, placement: Placement) -> None:
    """Placing again what was placed gives the same placement."""
    kept = {job_id: gpus for job_id, gpus in asked.allocation.gpus_by_job.items() if job_id not in placement.unplaced}
    again = replace(asked, allocation=Allocation(gpus_by_job=kept), current=placement)

    assert place(again) == Placement(workers_by_job=placement.workers_by_job)


def the_order_of_names_decides_nothing(asked: PlacerInput, placement: Placement) -> None:
    """The same question with its mappings in another order gets the same bytes."""
    permuted = PlacerInput(
        allocation=Allocation(gpus_by_job=dict(reversed(list(asked.allocation.gpus_by_job.items())))),
        specs=asked.specs,
        cluster=Cluster(nodes=tuple(reversed(asked.cluster.nodes)), levels=LEVELS),
        capacity_gpus=dict(reversed(list(asked.capacity_gpus.items()))),
        current=Placement(workers_by_job=dict(reversed(list(asked.current.workers_by_job.items())))),
    )

    assert repr(place(permuted)) == repr(placement)


def the_first_in_order_is_placed_if_it_fits_at_all(asked: PlacerInput, placement: Placement) -> None:
    """With sizes that divide one another and no cordoned node: who comes first is left out only if nothing helps."""
    for first in sorted(asked.specs, key=lambda one: (one.submitted_s, one.id))[:1]:
        slots = sum(gpus // first.gpus_per_worker for gpus in asked.capacity_gpus.values())
        fits = asked.allocation.gpus(first.id) // first.gpus_per_worker <= slots
        assert (first.id not in placement.unplaced) == fits


@given(drawn_nodes=NODES, drawn_jobs=jobs(1, 1, 2, 3, 4))
def test_a_placement_keeps_every_law(drawn_nodes: list[DrawnNode], drawn_jobs: list[DrawnJob]) -> None:
    """Every worker once or its job named unplaced, no node over capacity, cordons kept, repetition moves nothing."""
    asked = question(drawn_nodes, drawn_jobs)

    placement = place(asked).check(asked.allocation, asked.specs, asked.capacity_gpus)

    cordoned_nodes_take_nothing_new(asked, placement)
    an_identical_request_moves_nothing(asked, placement)
    the_order_of_names_decides_nothing(asked, placement)


@given(drawn_nodes=NODES, drawn_jobs=jobs(1, 1, 2, 4))
def test_nobody_is_left_out_who_fits(drawn_nodes: list[DrawnNode], drawn_jobs: list[DrawnJob]) -> None:
    """On open nodes, with sizes that divide one another, the first in order is always served."""
    asked = question([(gpus, zone, rack, True, taken) for gpus, zone, rack, _, taken in drawn_nodes], drawn_jobs)

    the_first_in_order_is_placed_if_it_fits_at_all(asked, place(asked))


@given(drawn_nodes=NODES, drawn_jobs=jobs(1))
def test_single_gpu_workers_never_move(drawn_nodes: list[DrawnNode], drawn_jobs: list[DrawnJob]) -> None:
    """While the nodes hold what stands there, jobs of single-GPU workers shrink without a move."""
    asked = question(drawn_nodes, drawn_jobs)
    standing = place(asked)
    wanted = {
        job_id: max(1, gpus - 1) for job_id, gpus in asked.allocation.gpus_by_job.items() if standing.workers(job_id)
    }
    smaller = replace(asked, allocation=Allocation(gpus_by_job=wanted), current=standing)

    placement = place(smaller)

    assert placement.unplaced == {}
    assert moves(smaller, placement) == 0

"""Placement laws of the first placer: what holds whatever the nodes, the jobs and where they stand."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from scheduler_core.model.allocation import Allocation
from scheduler_core.model.cluster import Cluster, Node
from scheduler_core.model.placement import Placement
from scheduler_core.model.ports import PlacerInput
from scheduler_core.place.pack import pack
from tests.unit.core.builders import spec, to_place

LEVELS = ("zone", "rack")


@st.composite
def clusters(draw: st.DrawFn) -> Cluster:
    """One to six nodes of 0..8 GPUs in two zones and four racks, some cordoned, some partly taken by others."""
    nodes = []
    for index in range(draw(st.integers(1, 6))):
        gpus = draw(st.integers(0, 8))
        zone, rack = draw(st.sampled_from("ab")), draw(st.sampled_from("xy"))
        nodes.append(
            Node(
                name=f"n{index}",
                gpus=gpus,
                labels={"zone": zone, "rack": zone + rack},
                schedulable=draw(st.sampled_from((True, True, True, False))),
                foreign_gpus=draw(st.sampled_from((0, 0, min(1, gpus)))),
            )
        )
    return Cluster(nodes=tuple(nodes), levels=LEVELS)


@st.composite
def questions(draw: st.DrawFn, sizes: tuple[int, ...] = (1, 1, 2, 4)) -> PlacerInput:
    """Up to six jobs of 1..12 workers, with workers standing wherever there may be some."""
    nodes = draw(clusters())
    specs, gpus_by_job, current = [], {}, {}
    for index in range(draw(st.integers(0, 6))):
        size, workers = draw(st.sampled_from(sizes)), draw(st.integers(1, 12))
        name = f"j{index}"
        specs.append(spec(name, (size, 12 * size), gpus_per_worker=size, submitted_s=float(draw(st.integers(0, 2)))))
        gpus_by_job[name] = workers * size
        current[name] = {node.name: draw(st.integers(0, 2)) for node in nodes.nodes if draw(st.booleans())}
    return to_place(gpus_by_job, nodes, current, specs)


def placed_gpus(asked: PlacerInput, placement: Placement) -> int:
    """GPUs of all placed workers."""
    return sum(sum(placement.workers(one.id).values()) * one.gpus_per_worker for one in asked.specs)


def moves(asked: PlacerInput, placement: Placement) -> int:
    """Workers that could have stayed and stand elsewhere now, all jobs together."""
    moved = 0
    for one in asked.specs:
        before, after = asked.current.workers(one.id), placement.workers(one.id)
        stayed = sum(min(count, after.get(node, 0)) for node, count in before.items())
        moved += min(sum(before.values()), sum(after.values())) - stayed
    return moved


@given(asked=questions((1, 1, 2, 3, 4)))
def test_every_worker_is_placed_once_and_no_node_is_over_capacity(asked: PlacerInput) -> None:
    """Each job has all its workers or is named unplaced; with any worker sizes, it ends."""
    pack(asked).check(asked.allocation, asked.specs, asked.capacity_gpus)


@given(asked=questions((1, 1, 2, 3, 4)))
def test_cordoned_nodes_take_nothing_new(asked: PlacerInput) -> None:
    """On a node that is not schedulable a job has at most the workers that it had there."""
    placement = pack(asked)

    for node in asked.cluster.nodes:
        for one in asked.specs:
            if not node.schedulable:
                assert placement.workers(one.id).get(node.name, 0) <= asked.current.workers(one.id).get(node.name, 0)


@given(asked=questions((1, 1, 2, 3, 4)))
def test_an_identical_request_moves_nothing(asked: PlacerInput) -> None:
    """Placing again what was placed gives the same placement."""
    first = pack(asked)
    kept = {job_id: gpus for job_id, gpus in asked.allocation.gpus_by_job.items() if job_id not in first.unplaced}
    again = replace(asked, allocation=Allocation(gpus_by_job=kept), current=first)

    assert pack(again).workers_by_job == first.workers_by_job


@given(asked=questions((1,)))
def test_single_gpu_workers_never_move(asked: PlacerInput) -> None:
    """While the nodes hold what stands there, jobs of single-GPU workers grow and shrink without a move."""
    standing = pack(asked)
    roomy = {node.name for node in asked.cluster.nodes if node.schedulable}
    wanted = {
        job_id: max(1, gpus - 1) for job_id, gpus in asked.allocation.gpus_by_job.items() if standing.workers(job_id)
    }
    placement = pack(replace(asked, allocation=Allocation(gpus_by_job=wanted), current=standing))

    assert placement.unplaced == {}
    assert moves(replace(asked, current=standing), placement) == 0
    assert all(set(placement.workers(job_id)) <= set(standing.workers(job_id)) | roomy for job_id in wanted)


@given(asked=questions())
def test_nobody_is_left_out_who_fits(asked: PlacerInput) -> None:
    """With worker sizes that divide one another, the first job in order is left out only if it fits on no empty node.

    Cordoned nodes are left to those who stand there, so the law is of clusters without any.
    """
    open_nodes = tuple(replace(node, schedulable=True) for node in asked.cluster.nodes)
    asked = replace(asked, cluster=Cluster(nodes=open_nodes, levels=LEVELS))
    placement = pack(asked)

    for first in sorted(asked.specs, key=lambda one: (one.submitted_s, one.id))[:1]:
        slots = sum(gpus // first.gpus_per_worker for gpus in asked.capacity_gpus.values())
        fits = asked.allocation.gpus(first.id) // first.gpus_per_worker <= slots
        assert (first.id not in placement.unplaced) == fits


@given(asked=questions((1, 1, 2, 3, 4)))
def test_the_order_of_names_in_the_input_decides_nothing(asked: PlacerInput) -> None:
    """The same question with its mappings in another order gets the same bytes."""
    permuted = PlacerInput(
        allocation=Allocation(gpus_by_job=dict(reversed(asked.allocation.gpus_by_job.items()))),
        specs=asked.specs,
        cluster=Cluster(nodes=tuple(reversed(asked.cluster.nodes)), levels=LEVELS),
        capacity_gpus=dict(reversed(asked.capacity_gpus.items())),
        current=Placement(workers_by_job=dict(reversed(asked.current.workers_by_job.items()))),
    )

    assert repr(pack(permuted)) == repr(pack(asked))

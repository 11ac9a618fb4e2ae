"""Area policies, where workers go: logged decisions, exact against heuristic, and placing in large clusters."""

from __future__ import annotations

import json
import statistics
import time
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from scheduler_core.model.allocation import Allocation
from scheduler_core.model.cluster import Cluster, Node
from scheduler_core.model.job import JobSpec
from scheduler_core.model.placement import Placement
from scheduler_core.model.ports import PlacerInput
from scheduler_core.place.exact import exact
from scheduler_core.place.keep import keep
from scheduler_core.place.place import heuristic, place
from scheduler_core.place.problem import problem_of
from tests.quality.shape import ROOT
from tests.show.policies_workload import Crowd, best_fit_decreasing, racked
from tests.show.registry import Row, at_most, exactly, figure, information

LOGGED = ROOT.parent / "shared" / "data" / "voda_placements.json"
OPTIMUM_MOVES = 128
INSTANCES, INSTANCES_QUICK = 500, 60
WITHIN = 0.02
SEED = 11


def asked_of(gpus_by_job: Mapping[str, int], nodes: Cluster, current: Mapping[str, Mapping[str, int]]) -> PlacerInput:
    """A question of elastic jobs with single-GPU workers of which nothing else is known."""
    return PlacerInput(
        allocation=Allocation(gpus_by_job=gpus_by_job),
        specs=tuple(
            JobSpec(id=job_id, namespace="d", workflow=job_id, name="t", submitted_s=0.0, min_gpus=1, max_gpus=64)
            for job_id in sorted(gpus_by_job)
        ),
        cluster=nodes,
        capacity_gpus={node.name: node.gpus for node in nodes.nodes},
        current=Placement(workers_by_job=current),
    )


def moved_workers(asked: PlacerInput, placement: Placement) -> int:
    """Workers that survive and stand elsewhere: per job, survivors less those that stay."""
    moved = 0
    for job_id, gpus in asked.allocation.gpus_by_job.items():
        before, after = asked.current.workers(job_id), placement.workers(job_id)
        stayed = sum(min(count, after.get(node, 0)) for node, count in before.items())
        moved += min(sum(before.values()), gpus) - stayed
    return moved


def spans_of(placement: Placement) -> int:
    """Nodes of each job, summed."""
    return sum(map(len, placement.workers_by_job.values()))


@figure(area="policies")
def logged_placements(quick: bool) -> Iterator[Row]:
    """Voda's own logged decisions, each from its logged start, with nothing known of the jobs and default settings."""
    decisions: list[Mapping[str, Any]] = [
        decision
        for run in json.loads(Path(LOGGED).read_text(encoding="utf-8"))["runs"]
        for decision in run["placements"]
    ]
    nodes = Cluster(nodes=tuple(Node(name=f"gpu{index}", gpus=4) for index in (3, 4, 5)))
    moved, spans, packed, worse, times_s = 0, 0, 0, 0, []
    for decision in decisions:
        asked = asked_of(decision["request"], nodes, decision["before"])
        began_s = time.perf_counter()
        placement = place(asked).check(asked.allocation, asked.specs, asked.capacity_gpus)
        times_s.append(time.perf_counter() - began_s)
        reference = best_fit_decreasing(decision["request"], asked.capacity_gpus)
        moved, spans, packed = moved + moved_workers(asked, placement), spans + spans_of(placement), packed + reference
        worse += spans_of(placement) > reference
    name = f"{len(decisions)} logged placements, default settings"
    yield at_most(f"{name}: moved workers", moved, OPTIMUM_MOVES, "workers")
    yield exactly(f"{name}: decisions with more spans than best-fit-decreasing", worse, 0)
    yield information(f"{name}: spans (best-fit-decreasing)", f"{spans} ({packed})")
    yield information(f"{name}: time of one", f"median {1e3 * statistics.median(times_s):.1f} ms")


def small_instance(rng: np.random.Generator) -> PlacerInput:
    """Two to eight nodes of 2..8 GPUs, flat or three in a rack, two to eight jobs; half of them placed before."""
    nodes = Cluster(
        nodes=tuple(
            Node(name=f"n{index}", gpus=int(rng.integers(2, 9)), labels={"rack": f"r{index // 3}"})
            for index in range(rng.integers(2, 9))
        ),
        levels=("rack",) if rng.random() < 0.5 else (),
    )
    first = asked_of(_sizes(rng, nodes), nodes, {})
    if rng.random() < 0.5:
        return first
    return asked_of(_sizes(rng, nodes), nodes, place(first).workers_by_job)


def _sizes(rng: np.random.Generator, nodes: Cluster) -> dict[str, int]:
    free = sum(node.gpus for node in nodes.nodes)
    gpus_by_job: dict[str, int] = {}
    for index in range(rng.integers(2, 9)):
        gpus = min(int(rng.integers(1, 13)), free)
        if gpus:
            gpus_by_job[f"j{index}"] = gpus
            free -= gpus
    return gpus_by_job


@figure(area="policies")
def exact_and_heuristic(quick: bool) -> Iterator[Row]:
    """Communication cost beyond that of computing alone, and moves, of both on the same small instances."""
    rng = np.random.default_rng(SEED)
    gaps, times_s = [], []
    number = INSTANCES_QUICK if quick else INSTANCES
    for _ in range(number):
        problem = problem_of(small_instance(rng))
        layout = heuristic(keep(problem, range(len(problem.ids))))
        began_s = time.perf_counter()
        best = exact(layout) or layout
        times_s.append(time.perf_counter() - began_s)
        work_s = sum(layout.problem.work_s)
        cost, least = layout.total_cost() - work_s, best.total_cost() - work_s
        gaps.append(cost / least - 1 if least > 0 else 0.0)
    name = f"heuristic above exact, {number} random small instances"
    yield at_most(f"{name}: mean", 100 * statistics.mean(gaps), 100 * WITHIN, "% of communication cost")
    yield at_most(f"{name}: worst", 100 * max(gaps), 100 * WITHIN, "% of communication cost")
    yield information(f"{name}: within 2 %", f"{sum(gap <= WITHIN for gap in gaps)} of {number}")
    yield information(
        f"{name}: time of exact", f"median {1e3 * statistics.median(times_s):.0f} ms, most {1e3 * max(times_s):.0f}"
    )


@figure(area="policies")
def large_placements(quick: bool) -> Iterator[Row]:
    """Placing alone: from nothing, and after a fifth of the jobs changed size, five times in a row, cluster full."""
    for num_jobs, num_nodes, bound_ms in ((4_000, 2_000, 200.0), (1_000, 256, 25.0)):
        crowd = Crowd(num_jobs=num_jobs, cluster=racked(num_nodes), rng=np.random.default_rng(SEED))
        asked = crowd.asked(Placement())
        name = f"place, {num_jobs} jobs on {num_nodes} nodes"
        placement, cold_ms = _timed(asked)
        yield at_most(f"{name}, from nothing", cold_ms, bound_ms, "ms")
        yield _above(f"{name}, from nothing: spans above best-fit-decreasing", asked, placement)
        times_ms, worst, moved = [], -1.0, []
        for _ in range(5):
            crowd.change()
            asked = crowd.asked(placement)
            placement, took_ms = _timed(asked)
            times_ms.append(took_ms)
            moved.append(moved_workers(asked, placement))
            worst = max(worst, _percent_above(asked, placement))
        yield at_most(f"{name}, a fifth changed, median of 5", statistics.median(times_ms), bound_ms, "ms")
        yield at_most(f"{name}, a fifth changed: spans above best-fit-decreasing, worst of 5", worst, 2.0, "%")
        yield information(f"{name}, a fifth changed: moved workers each time", ", ".join(map(str, moved)))
        again, again_ms = _timed(replace(asked, current=placement))
        yield exactly(
            f"{name}: an identical request changes", "nothing" if again == placement else "something", "nothing"
        )
        yield information(f"{name}: time of an identical request (the cycle skips it)", f"{again_ms:.0f} ms")


def _timed(asked: PlacerInput) -> tuple[Placement, float]:
    began_s = time.perf_counter()
    placement = place(asked)
    return placement, 1e3 * (time.perf_counter() - began_s)


def _percent_above(asked: PlacerInput, placement: Placement) -> float:
    placement.check(asked.allocation, asked.specs, asked.capacity_gpus)
    return 100 * (spans_of(placement) / best_fit_decreasing(asked.allocation.gpus_by_job, asked.capacity_gpus) - 1)


def _above(name: str, asked: PlacerInput, placement: Placement) -> Row:
    return at_most(name, _percent_above(asked, placement), 2.0, "%")

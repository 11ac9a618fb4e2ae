"""The first placer: running workers stay where they are, new ones go on the fewest nodes that have room.

In: GPUs by job, nodes, where workers stand. Out: workers by node. Third of the six steps (place).

1. Keep: a job's workers stay; one that shrinks leaves the nodes where it has fewest.
2. Add: the missing workers, larger workers first, then larger jobs (best-fit decreasing), each job by ``spread``; on
   nodes that it should avoid only where it finds no others.
3. Only when that leaves somebody out although there is room in all (small workers scattered over the nodes where a
   large one must go whole): let go of the smallest jobs, twice as many each time, and place again.

An identical request moves nothing. Where worker sizes divide one another (1, 2, 4, 8 GPUs) nobody who could be placed
is left out: large first, the free slots left for smaller sizes do not depend on the nodes chosen. With other sizes the
packing is a heuristic. Who is left out has its reason in ``unplaced``; those are the last in order of arrival, and the
cycle allocates their GPUs anew, so nothing lies idle.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from scheduler_core.model.job import JobSpec
from scheduler_core.model.placement import Placement
from scheduler_core.model.ports import PlacerInput
from scheduler_core.place.spread import spread


def pack(asked: PlacerInput) -> Placement:
    """Place every allocated worker, moving as little as possible.

    Args:
        asked: What to place, on what, and what stands where. Nodes that are not schedulable keep the workers they
            have (``current``) and take no new one.

    Returns:
        Workers by node; jobs that fit nowhere in ``unplaced``.
    """
    specs = [spec for spec in asked.specs if asked.allocation.gpus(spec.id)]
    best = _add(asked, specs, _keep(asked, specs))
    if not best.unplaced:
        return best
    specs = _fitting(asked, specs)
    for loose in _loosened(asked, specs, _keep(asked, specs)):
        attempt = _add(asked, specs, loose)
        if len(attempt.workers_by_job) == len(specs):
            best = attempt
            break
        best = max(best, attempt, key=lambda placed: len(placed.workers_by_job))
    return _with_reasons(asked, best)


def _keep(asked: PlacerInput, specs: Iterable[JobSpec]) -> dict[str, dict[str, int]]:
    """Workers that stay: at most what is asked for, what each node may hold, and what stands there now."""
    left = dict(asked.capacity_gpus)
    kept_by_job: dict[str, dict[str, int]] = {}
    for spec in specs:
        want = asked.allocation.gpus(spec.id) // spec.gpus_per_worker
        kept: dict[str, int] = {}
        standing = asked.current.workers(spec.id)
        for node in sorted(standing, key=lambda name: (-standing[name], name)):
            stay = min(standing[node], want, left.get(node, 0) // spec.gpus_per_worker)
            if stay:
                kept[node] = stay
                left[node] -= stay * spec.gpus_per_worker
                want -= stay
        kept_by_job[spec.id] = kept
    return kept_by_job


def _add(asked: PlacerInput, specs: Iterable[JobSpec], kept_by_job: Mapping[str, Mapping[str, int]]) -> Placement:
    """Place what is missing around what stays."""
    gpus_by_id = asked.allocation.gpus_by_job
    placed = {spec.id: dict(kept_by_job[spec.id]) for spec in specs}
    left = _left_for_new(asked, specs, placed)
    missing = {spec.id: gpus_by_id[spec.id] // spec.gpus_per_worker - sum(placed[spec.id].values()) for spec in specs}
    unplaced = {}
    for spec in sorted(specs, key=lambda one: (-one.gpus_per_worker, -missing[one.id], _arrival(one))):
        if not missing[spec.id]:
            continue
        slots = {node: gpus // spec.gpus_per_worker for node, gpus in left.items()}
        standing = placed[spec.id] or asked.current.workers(spec.id)
        good = {node: room for node, room in slots.items() if node not in asked.avoid_by_job.get(spec.id, ())}
        new = spread(missing[spec.id], good, standing, asked.cluster) or (
            spread(missing[spec.id], slots, standing, asked.cluster) if good != slots else {}
        )
        if not new:
            unplaced[spec.id] = _reason(spec, gpus_by_id[spec.id], slots)
            new = {node: -count for node, count in placed[spec.id].items()}
        for node, count in new.items():
            placed[spec.id][node] = placed[spec.id].get(node, 0) + count
            if node in left:
                left[node] -= count * spec.gpus_per_worker
    return Placement(workers_by_job=placed, unplaced=unplaced)


def _left_for_new(
    asked: PlacerInput, specs: Iterable[JobSpec], placed: Mapping[str, Mapping[str, int]]
) -> dict[str, int]:
    """GPUs by schedulable node that nobody keeps."""
    left = {node.name: asked.capacity_gpus.get(node.name, 0) for node in asked.cluster.nodes if node.schedulable}
    for spec in specs:
        for node, count in placed[spec.id].items():
            if node in left:
                left[node] -= count * spec.gpus_per_worker
    return left


def _fitting(asked: PlacerInput, specs: Iterable[JobSpec]) -> list[JobSpec]:
    """The jobs that fit together if everything may move, the earliest first; counted, not yet placed."""
    bound = [node.name for node in asked.cluster.nodes if not node.schedulable]
    rooms = [asked.capacity_gpus.get(node.name, 0) for node in asked.cluster.nodes if node.schedulable]
    chosen: list[JobSpec] = []
    workers_by_size: dict[int, int] = {}
    for spec in sorted(specs, key=_arrival):
        standing, size = asked.current.workers(spec.id), spec.gpus_per_worker
        num_workers = asked.allocation.gpus(spec.id) // size
        num_workers -= min(num_workers, sum(standing.get(node, 0) for node in bound))
        attempt = {**workers_by_size, size: workers_by_size.get(size, 0) + num_workers}
        if _fit_together(attempt, rooms):
            chosen.append(spec)
            workers_by_size = attempt
    return sorted(chosen, key=lambda spec: spec.id)


def _fit_together(workers_by_size: Mapping[int, int], rooms: Iterable[int]) -> bool:
    """Whether nodes with these free GPUs hold so many workers of each size; exact where sizes divide one another."""
    left = list(rooms)
    for size, wanted in sorted(workers_by_size.items(), reverse=True):
        missing = wanted
        for index, room in enumerate(left):
            taken = min(missing, room // size)
            left[index] -= taken * size
            missing -= taken
        if missing:
            return False
    return True


def _loosened(
    asked: PlacerInput, specs: list[JobSpec], kept_by_job: Mapping[str, dict[str, int]]
) -> Iterator[dict[str, dict[str, int]]]:
    """What stays, with none and then more and more jobs let go: smallest workers first, then fewest GPUs."""
    gpus = asked.allocation.gpus
    order = sorted(specs, key=lambda spec: (spec.gpus_per_worker, gpus(spec.id), spec.id))
    bound = {node.name for node in asked.cluster.nodes if not node.schedulable}
    num_loose = 0
    while True:
        loose = {spec.id for spec in order[:num_loose]}
        yield {
            job_id: {node: count for node, count in kept.items() if job_id not in loose or node in bound}
            for job_id, kept in kept_by_job.items()
        }
        if num_loose >= len(order):
            return
        num_loose = max(1, 2 * num_loose)


def _with_reasons(asked: PlacerInput, placed: Placement) -> Placement:
    """The placement, with a reason for every job that has no place in it."""
    room = _left_for_new(asked, [spec for spec in asked.specs if placed.workers(spec.id)], placed.workers_by_job)
    unplaced = {
        spec.id: _reason(
            spec,
            asked.allocation.gpus(spec.id),
            {node: gpus // spec.gpus_per_worker for node, gpus in room.items()},
        )
        for spec in asked.specs
        if asked.allocation.gpus(spec.id) and not placed.workers(spec.id)
    }
    return Placement(workers_by_job=placed.workers_by_job, unplaced=unplaced)


def _reason(spec: JobSpec, gpus: int, slots: Mapping[str, int]) -> str:
    return (
        f"{gpus // spec.gpus_per_worker} workers with {spec.gpus_per_worker} GPUs each need a node for each of them, "
        f"and the nodes have room for {sum(slots.values())}"
    )


def _arrival(spec: JobSpec) -> tuple[int, float, str]:
    return (-spec.priority, spec.submitted_s, spec.id)

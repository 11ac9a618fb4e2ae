"""A placement problem in integers: jobs and nodes by index, what each job's communication and moves cost.

In: ``PlacerInput``. Out: ``Problem``, the one form in which the parts of the placer see the world. Nodes are numbered
in the order of their paths, so every domain of the tree is a range of numbers.

Costs are GPU-seconds: what a job still has to do (GPU-seconds at one GPU's speed) times its slow-down, plus the
standing still of moved workers times the job's GPUs. So a move is worth it exactly when it makes the sum smaller.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from scheduler_core.model.communication import (
    GRADIENT_BYTES,
    STEP_S,
    Link,
    Shape,
    all_reduce_s,
    links_of,
    shape_of,
    slow_down,
)
from scheduler_core.model.job import JobSpec
from scheduler_core.model.ports import PlacerInput
from scheduler_core.model.resizes import ResizeKind

REMAINING_S = 3600.0
"""Work left, at one GPU, of a job of which nothing is known: an hour."""
LEAST_REMAINING_S = 1.0
"""Work left, at one GPU, that is always counted: workers that need a place anyhow get a good one."""

Workers = dict[int, int]
"""Workers by node number, each > 0."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """What is to be placed; jobs by number in order of id, nodes by number in order of path.

    Attributes:
        ids: Of the jobs that are to have workers.
        arrival: For each job, its place in the order of arrival: priority, time of submission, id.
        worker_gpus: GPUs of each of a job's workers.
        want: Workers of each job, >= 1.
        standing: Workers that stand now, by node.
        avoided: Nodes that a job's new workers go on only when no others do.
        work_s: Seconds of work left at one GPU, by job.
        step_s: Seconds of a step without communication, by job.
        gradient_bytes: Bytes reduced in a step, by job.
        move_s: GPU-seconds that each moved worker costs, by job; 0 where nothing can be moved in place.
        restart_s: GPU-seconds that moving any number of them costs, by job; 0 where they can be moved in place. That
            takes a free GPU somewhere, or a job above its minimum that can give one up for a while: the moves of all
            jobs can rotate through it.
        names: Of the nodes.
        paths: Of the nodes.
        capacity: GPUs that may be used in all, by node.
        is_open: Whether a node takes new workers, shape (num_nodes,).
        starts: For each depth of the tree from the root (depth 0) to the nodes, the first node of each domain.
        links: By height.
    """

    ids: tuple[str, ...]
    arrival: tuple[int, ...]
    worker_gpus: tuple[int, ...]
    want: tuple[int, ...]
    standing: tuple[Workers, ...]
    avoided: tuple[frozenset[int], ...]
    work_s: tuple[float, ...]
    step_s: tuple[float, ...]
    gradient_bytes: tuple[float, ...]
    move_s: tuple[float, ...]
    restart_s: tuple[float, ...]
    names: tuple[str, ...]
    paths: tuple[tuple[str, ...], ...]
    capacity: tuple[int, ...]
    is_open: npt.NDArray[np.bool_]
    starts: tuple[tuple[int, ...], ...]
    links: tuple[Link, ...]
    _slow_downs: dict[tuple[float, float, Shape], float] = field(default_factory=dict)

    def communication(self, job: int, workers: Mapping[int, int]) -> float:
        """GPU-seconds of work left times the slow-down with all workers placed so."""
        size = self.worker_gpus[job]
        if len(workers) == 1:
            gpus = self.want[job] * size
            shape = Shape(ranks=gpus, fanouts=(gpus, *(1,) * (len(self.starts) - 1)))
        else:
            shape = shape_of({self.paths[node]: count * size for node, count in workers.items()})
        return self.work_s[job] * self._slow_down(job, shape)

    def shape(self, job: int, nodes: Iterable[int], most: int) -> Shape:
        """The shape of a job on these nodes, with so many workers on the one that has most."""
        fanouts = shape_of(dict.fromkeys((self.paths[node] for node in nodes), 1)).fanouts
        size = self.worker_gpus[job]
        return Shape(ranks=self.want[job] * size, fanouts=(most * size, *fanouts[1:]))

    def seconds(self, job: int, shape: Shape) -> float:
        """GPU-seconds of work left times the slow-down in a shape."""
        return self.work_s[job] * self._slow_down(job, shape)

    def least_seconds(self, job: int) -> float:
        """No placement of the job costs fewer GPU-seconds: on any number of nodes that hold it, all near each other."""
        want, size = self.want[job], self.worker_gpus[job]
        rooms = sorted((gpus // size for gpus in self.capacity), reverse=True)
        shapes = [
            Shape(ranks=want * size, fanouts=(-(-want // nodes) * size, nodes, *(1,) * (len(self.starts) - 2)))
            for nodes in range(1, min(want, len(rooms)) + 1)
            if sum(rooms[:nodes]) >= want
        ]
        return min((self.seconds(job, shape) for shape in shapes), default=0.0)

    def _slow_down(self, job: int, shape: Shape) -> float:
        key = (self.step_s[job], self.gradient_bytes[job], shape)
        found = self._slow_downs.get(key)
        if found is None:
            seconds = all_reduce_s(self.gradient_bytes[job], shape, self.links)
            found = self._slow_downs[key] = slow_down(self.step_s[job], seconds)
        return found

    def moved(self, job: int, workers: Mapping[int, int]) -> int:
        """Workers that could have stayed and stand elsewhere."""
        standing = self.standing[job]
        if not standing:
            return 0
        stayed = sum(min(count, workers.get(node, 0)) for node, count in standing.items())
        return min(sum(standing.values()), self.want[job]) - stayed

    def cost(self, job: int, workers: Mapping[int, int]) -> float:
        """GPU-seconds of communication and moves with all workers placed so."""
        moved = self.moved(job, workers)
        return self.communication(job, workers) + moved * self.move_s[job] + bool(moved) * self.restart_s[job]


def problem_of(asked: PlacerInput) -> Problem:
    """Number jobs and nodes and put prices on them."""
    cluster = asked.cluster
    placed = sorted((cluster.path(node), node.schedulable) for node in cluster.nodes)
    paths = tuple(path for path, _ in placed)
    number = {path[-1]: index for index, path in enumerate(paths)}
    capacity = tuple(asked.capacity_gpus.get(path[-1], 0) for path in paths)
    gpus_by_job = asked.allocation.gpus_by_job
    specs = sorted((spec for spec in asked.specs if gpus_by_job.get(spec.id)), key=lambda spec: spec.id)
    gpus = [gpus_by_job[spec.id] for spec in specs]
    free_gpus = sum(capacity) - sum(gpus)
    in_place = any(
        free_gpus >= spec.gpus_per_worker or count > spec.min_gpus for spec, count in zip(specs, gpus, strict=True)
    )
    return Problem(
        ids=tuple(spec.id for spec in specs),
        arrival=_arrival(specs),
        worker_gpus=tuple(spec.gpus_per_worker for spec in specs),
        want=tuple(count // spec.gpus_per_worker for count, spec in zip(gpus, specs, strict=True)),
        standing=tuple(_numbered(asked.current.workers(spec.id), number) for spec in specs),
        avoided=tuple(
            frozenset(number[node] for node in asked.avoid_by_job.get(spec.id, ()) if node in number) for spec in specs
        ),
        work_s=tuple(_work_s(asked, spec.id, count) for count, spec in zip(gpus, specs, strict=True)),
        step_s=tuple(asked.step_s_by_job.get(spec.id) or STEP_S for spec in specs),
        gradient_bytes=tuple(asked.gradient_bytes_by_job.get(spec.id, GRADIENT_BYTES) for spec in specs),
        move_s=tuple(asked.costs.seconds(ResizeKind.MOVE, count) * count * in_place for count in gpus),
        restart_s=tuple(asked.costs.seconds(ResizeKind.RESTART, count) * count * (not in_place) for count in gpus),
        names=tuple(path[-1] for path in paths),
        paths=paths,
        capacity=capacity,
        is_open=np.array([is_open for _, is_open in placed], dtype=bool),
        starts=_starts(paths, len(cluster.levels) + 1),
        links=links_of(cluster.levels, asked.params.links),
    )


def _arrival(specs: Sequence[JobSpec]) -> tuple[int, ...]:
    """For each job its place in the order of arrival."""
    order = sorted(range(len(specs)), key=lambda job: (-specs[job].priority, specs[job].submitted_s, specs[job].id))
    places = [0] * len(specs)
    for place, job in enumerate(order):
        places[job] = place
    return tuple(places)


def _numbered(workers: Mapping[str, int], number: Mapping[str, int]) -> Workers:
    """Workers by node number, those on nodes that are gone left out."""
    return {number[node]: count for node, count in workers.items() if node in number}


def _work_s(asked: PlacerInput, job_id: str, gpus: int) -> float:
    """GPU-seconds that the job still holds its GPUs; where its speeds are not known, as many as on one GPU."""
    remaining_s = max(LEAST_REMAINING_S, asked.remaining_s_by_job.get(job_id, REMAINING_S))
    speeds = asked.speed_by_job.get(job_id, ())
    if len(speeds) > gpus and speeds[1] > 0 and speeds[gpus] > 0:
        return remaining_s * gpus * speeds[1] / speeds[gpus]
    return remaining_s


def _starts(paths: Sequence[tuple[str, ...]], depth: int) -> tuple[tuple[int, ...], ...]:
    """For each depth from the root, the first node of each domain."""
    return tuple(
        tuple(node for node, path in enumerate(paths) if not node or path[:level] != paths[node - 1][:level])
        for level in range(depth + 1)
    )

"""The sizes a job may have, as a ladder: which there are, how far up they are known to help, and what each is worth.

In: a job and its row of the speed table. Out: ascending GPU counts, and speed-ups at them. Every policy climbs these
ladders, so that none gives a size that is not allowed. Part of the second of the six steps (allocate).
"""

from __future__ import annotations

from collections.abc import Sequence

from scheduler_core.model.job import JobSpec


def rungs(spec: JobSpec) -> Sequence[int]:
    """The sizes that a job may have, GPUs in ascending order.

    Args:
        spec: The job.

    Returns:
        Multiples of ``gpus_per_worker`` from ``min_gpus`` to ``max_gpus``, of these only ``gpu_sizes`` where it names
        any; empty where it names none that is possible.

    >>> from scheduler_core.model.job import JobSpec
    >>> job = JobSpec(id="a", namespace="ml", workflow="a", name="train", submitted_s=0, min_gpus=2, max_gpus=8,
    ...               gpus_per_worker=2)
    >>> list(rungs(job))
    [2, 4, 6, 8]
    """
    every = range(spec.min_gpus, spec.max_gpus + 1, spec.gpus_per_worker)
    return [gpus for gpus in sorted(set(spec.gpu_sizes)) if gpus in every] if spec.gpu_sizes else every


def useful_rungs(spec: JobSpec, speed: Sequence[float]) -> Sequence[int]:
    """The sizes up to the best known one.

    Args:
        spec: The job.
        speed: Samples/s at 0, 1, 2, ... GPUs; may be empty or shorter than the job's maximum.

    Returns:
        All its sizes, or those up to the smallest of the highest speed where the table shows a larger one to be no
        faster; always the first, where there is one.
    """
    sizes = rungs(spec)
    known = [speed[gpus] for gpus in sizes if gpus < len(speed)]
    if not known:
        return sizes
    best = known.index(max(known))
    return sizes[: best + 1] if best + 1 < len(known) else sizes


def clipped(spec: JobSpec, gpus: int) -> int:
    """The largest allowed size of at most so many GPUs, else the smallest there is; 0 where none is allowed."""
    if not spec.gpu_sizes:
        return max(spec.min_gpus, min(spec.max_gpus, gpus - gpus % spec.gpus_per_worker))
    sizes = rungs(spec)
    if not sizes:
        return 0
    return next((size for size in reversed(sizes) if size <= gpus), sizes[0])


def speedups(sizes: Sequence[int], speed: Sequence[float]) -> list[float]:
    """How many times as fast as on one GPU a job is at each of its sizes.

    Args:
        sizes: Its sizes, ascending, GPUs.
        speed: Samples/s at 0, 1, 2, ... GPUs; may be empty or short.

    Returns:
        One speed-up for each size. Where one GPU has no known speed, the speed per GPU at the smallest size that has
        one stands for it. Beyond the table a job goes on as between its last two sizes in it; without a table each
        GPU counts as one.
    """
    known = [speed[gpus] for gpus in sizes if gpus < len(speed)]
    base = speed[1] if len(speed) > 1 else 0.0
    if base <= 0:
        base = next((value / gpus for value, gpus in zip(known, sizes, strict=False) if value > 0), 0.0)
    if not known or base <= 0:
        return [0.0 if known else float(gpus) for gpus in sizes]
    values = [value / base for value in known]
    if len(known) < len(sizes):
        last_gpus, before_gpus = sizes[len(known) - 1], sizes[len(known) - 2] if len(known) > 1 else 0
        slope = (values[-1] - (values[-2] if len(known) > 1 else 0.0)) / (last_gpus - before_gpus)
        values += [values[len(known) - 1] + slope * (gpus - last_gpus) for gpus in sizes[len(known) :]]
    return values

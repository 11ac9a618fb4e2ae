"""What jobs of one category learn from each other.

In: what is known of one job and of its category. Out: the category with what the job has shown, and the job with what
it has not shown itself. Jobs of a category are thought to scale alike; where both were seen at one size, the
category's speeds are scaled to the job's.
"""

from __future__ import annotations

from dataclasses import replace

from scheduler_core.estimate.rows import History
from scheduler_core.estimate.seen import SizeSeen, scale_between, scaled

#: What a job has shown stands for its category at least so long after its last word, seconds.
STANDS_S = 600.0


def with_job(category: History, before: History, job: History) -> History:
    """A category after one of its jobs has learned something.

    Args:
        category: What was known of the category.
        before: What was known of the job.
        job: What is known of it now.

    Returns:
        The category: at each size one job speaks, until more was seen of another, or enough of it a good while later.
    """
    old = {seen.gpus: seen for seen in before.sizes}
    sizes = {seen.gpus: seen for seen in category.sizes}
    for seen in job.sizes:
        if seen is not old.get(seen.gpus) and _speaks(seen, sizes.get(seen.gpus), old.get(seen.gpus)):
            others = [one for one in job.sizes if one.gpus != seen.gpus]
            sizes[seen.gpus] = scaled(seen, scale_between(category.sizes, others))
    return replace(
        category,
        sizes=tuple(sizes[gpus] for gpus in sorted(sizes)),
        samples_per_epoch=job.samples_per_epoch or category.samples_per_epoch,
        step_s=job.step_s or category.step_s,
        gradient_bytes=job.gradient_bytes or category.gradient_bytes,
        last_s=max(category.last_s, job.last_s),
    )


def _speaks(seen: SizeSeen, present: SizeSeen | None, before: SizeSeen | None) -> bool:
    """Whether what a job shows at a size stands for its category: jobs that differ must not take turns in it."""
    if present is None or (before is not None and before.last_s == present.last_s):  # it is its own
        return True
    is_old = seen.last_s - present.last_s >= STANDS_S
    return seen.fullness > present.fullness or (seen.is_enough and is_old)


def as_of_category(job: History, category: History) -> History:
    """A job with what its category shows where it has not shown enough itself."""
    own = {seen.gpus: seen for seen in job.sizes}
    factor = scale_between(job.sizes, category.sizes)
    sizes = {seen.gpus: scaled(seen, factor) for seen in category.sizes}
    sizes |= {gpus: seen for gpus, seen in own.items() if seen.is_enough or gpus not in sizes}
    return replace(
        job,
        sizes=tuple(sizes[gpus] for gpus in sorted(sizes)),
        samples_per_epoch=job.samples_per_epoch or category.samples_per_epoch,
        step_s=job.step_s or category.step_s,
        gradient_bytes=job.gradient_bytes or category.gradient_bytes,
    )

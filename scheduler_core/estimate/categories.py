"""What jobs of one category learn from each other.

In: what is known of one job and of its category. Out: the category with what the job has shown, and the job with what
it has not shown itself. Jobs of a category are thought to scale alike; where both were seen at one size, the
category's speeds are scaled to the job's.
"""

from __future__ import annotations

from dataclasses import replace

from scheduler_core.estimate.rows import History
from scheduler_core.estimate.seen import scale_between, scaled


def with_job(category: History, before: History, job: History) -> History:
    """A category after one of its jobs has learned something.

    Args:
        category: What was known of the category.
        before: What was known of the job.
        job: What is known of it now.

    Returns:
        The category: at each size the last job of which enough was seen speaks, else the first of which anything was.
    """
    old = {seen.gpus: seen for seen in before.sizes}
    sizes = {seen.gpus: seen for seen in category.sizes}
    for seen in job.sizes:
        if seen is old.get(seen.gpus) or (seen.gpus in sizes and not seen.is_enough and sizes[seen.gpus].is_enough):
            continue
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

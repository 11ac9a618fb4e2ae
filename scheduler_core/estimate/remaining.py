"""How long a job still takes at one GPU: R of the papers (Gu et al., NSDI'19; Hwang et al., NSDI'21)."""

from __future__ import annotations

from scheduler_core.estimate.rows import History
from scheduler_core.model.job import JobSpec


def remaining_s(spec: JobSpec, known: History, table: tuple[float, ...], epochs_done: float = 0.0) -> float | None:
    """Seconds that a job still needs at one GPU: samples left, by the speed there.

    Args:
        spec: The job.
        known: What is known of it, by its category where not by itself.
        table: Samples/s at 0, 1, 2, ... GPUs.
        epochs_done: Epochs that its driver calls done, where that is more than its rows say.

    Returns:
        Seconds >= 0, None where an epoch's samples or the speed are not known.
    """
    if known.samples_per_epoch <= 0 or len(table) < 2 or table[1] <= 0:
        return None
    left = max(0.0, spec.epochs - max(known.epochs_done, epochs_done))
    return left * known.samples_per_epoch / table[1]

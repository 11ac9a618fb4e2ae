"""What a job has had: the service that Tiresias (NSDI'19) and its kin order by."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Service:
    """GPU time and waiting of one job.

    A *start* is a grant to a job that had no GPUs because it waited for them; the segments that a resize or a move
    makes are no starts.

    Attributes:
        attained_gpu_s: GPU seconds held so far.
        since_start_gpu_s: Of these, those since its last start.
        running_s: Seconds since its last start in which it held GPUs.
        waiting_s: Seconds that it waits now; while it runs, how long it waited before its last start.
    """

    attained_gpu_s: float = 0.0
    since_start_gpu_s: float = 0.0
    running_s: float = 0.0
    waiting_s: float = 0.0

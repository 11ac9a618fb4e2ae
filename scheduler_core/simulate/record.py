"""What a run leaves: one flat record for each job and for each decision."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class JobRecord:
    """One job's life.

    Attributes:
        job_id: Its id.
        submitted_s: When it arrived.
        started_s: Its first grant, None if it never ran.
        ended_s: When its work was done, None if it was not by the time nothing more could happen.
        segments: Segments granted.
        documents: Allocation documents written: the first of each segment, and one for each step of a change.
        stops: Times it was stopped at a checkpoint by the scheduler.
        lost_workers: Workers lost with their nodes.
        attained_gpu_s: GPU seconds held.
        still_s: Seconds in which it held GPUs and stood still.
    """

    job_id: str
    submitted_s: float
    started_s: float | None
    ended_s: float | None
    segments: int
    documents: int
    stops: int
    lost_workers: int
    attained_gpu_s: float
    still_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class DecisionRecord:
    """One decision that made a new target, or failed to.

    Attributes:
        time_s: When.
        number: Number of the target's decision.
        kind: How much it could change.
        gpus: GPUs given in all.
        jobs: Jobs given any.
        live_jobs: Jobs that ran or waited.
        disturbed: Running jobs whose workers changed.
        fault: What a stage did wrong, empty otherwise.
    """

    time_s: float
    number: int
    kind: str
    gpus: int
    jobs: int
    live_jobs: int
    disturbed: int
    fault: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """A whole run.

    Attributes:
        jobs: In order of id.
        decisions: In order of time.
    """

    jobs: tuple[JobRecord, ...]
    decisions: tuple[DecisionRecord, ...]

"""What a job's life comes to in numbers: waiting, running, resizes, standing still, steps lost, the last metric."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from voda_flows.objects import Object
from voda_flows.report.events import RESIZES, Event
from voda_flows.report.lives import JobLife
from voda_flows.runtime.reports import last_metric


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """A job in numbers; times in seconds.

    ``jct_s`` is the sum of ``queue_s``, ``preempted_s``, ``starting_s`` and ``training_s``.

    Attributes:
        wait_s: At gates, all segments together.
        run_s: From grants to the ends of their segments.
        jct_s: From submission to end (or to now).
        queue_s: From submission to the first grant.
        preempted_s: From the end of a segment to the next grant: after a preemption, or after it broke.
        starting_s: From grants to first steps: pods come up, imports are done, a checkpoint is read.
        training_s: From first steps to the ends of their segments, standing still included.
        gpu_s: GPU seconds held.
        resizes: How often by kind; kinds that did not happen are left out.
        still_s: Standing still in in-place changes.
        steps_lost: Steps done twice.
        metric: Name of the last metric shown, empty when nothing was reported.
        value: Its last value.
    """

    wait_s: float
    run_s: float
    jct_s: float
    queue_s: float
    preempted_s: float
    starting_s: float
    training_s: float
    gpu_s: float
    resizes: Mapping[str, int]
    still_s: float
    steps_lost: int
    metric: str = ""
    value: float | None = None


def summary(life: JobLife, happened: tuple[Event, ...], rows: tuple[Object, ...], now_s: float) -> Summary:
    """Sum up a job.

    Args:
        life: The job.
        happened: Its events.
        rows: Its report rows of all segments, oldest first.
        now_s: Now, for jobs that have not ended.

    Returns:
        The numbers.
    """
    end_s = life.ended_s if life.ended_s is not None else now_s
    ran = [(segment.ended_s or end_s) - segment.granted_s for segment in life.segments if segment.granted_s is not None]
    held = [one for segment in life.segments for one in segment.holdings]
    metric, value = last_metric(rows)
    return Summary(
        wait_s=life.waited_s(now_s),
        run_s=sum(max(0.0, span_s) for span_s in ran),
        jct_s=end_s - life.submitted_s,
        **_parts(life, happened, end_s),
        gpu_s=sum(one.gpus * max(0.0, (one.end_s or end_s) - one.start_s) for one in held),
        resizes=dict(sorted(Counter(event.kind for event in happened if event.kind in RESIZES).items())),
        still_s=sum(event.still_s or 0.0 for event in happened),
        steps_lost=sum(event.steps_lost for event in happened),
        metric=metric,
        value=value,
    )


def _parts(life: JobLife, happened: tuple[Event, ...], end_s: float) -> dict[str, float]:
    """The life cut at its grants, first steps and segments' ends: each moment of it belongs to one part."""
    first_steps = {event.segment: event.at_s for event in happened if event.kind in ("start", "resume")}
    parts = {"queue_s": 0.0, "preempted_s": 0.0, "starting_s": 0.0, "training_s": 0.0}
    at_s, wait = life.submitted_s, "queue_s"

    def cut(part: str, moment_s: float | None) -> None:
        nonlocal at_s
        upto_s = min(max(at_s, end_s if moment_s is None else moment_s), max(at_s, end_s))
        parts[part] += upto_s - at_s
        at_s = upto_s

    for segment, following in zip(life.segments, [*life.segments[1:], None], strict=False):
        cut(wait, segment.granted_s)
        stops_s = segment.ended_s if following is not None else None
        first_s = first_steps.get(segment.number, stops_s)
        cut("starting_s", first_s)
        cut("training_s", stops_s)
        wait = "preempted_s"
    cut(wait if not life.segments else "training_s", None)
    return parts

"""What goes wrong with a job or with all decisions, as sentences: a piece of ``explain``.

In: the observation and the stored target. Out: sentences that say what, why, since when, and what to do.
"""

from __future__ import annotations

from scheduler_core.estimate.failing import avoided_nodes, early_failures, failed_growths, grows_from_s
from scheduler_core.model.job import Job, JobPhase
from scheduler_core.model.observation import Observation
from scheduler_core.model.quarantine import PLAN, quarantines
from scheduler_core.model.target import Target
from voda_flows.report.times import short, text

#: Failed workers that are named.
_NAMED = 3


def left_out(job: Job, observation: Observation, target: Target) -> list[str]:
    """That a job is quarantined, why, since when, and what to do."""
    held = quarantines(observation, target).get(job.id)
    if held is None:
        return []
    what = "Nothing is done to it" if held.stage == PLAN else "It is left out of decisions and keeps what it has"
    culprit = "the plan breaks a law" if held.stage == PLAN else f"policy {target.policy} fails"
    again = short(held.until_s - observation.now_s)
    times = "once" if held.tries == 1 else f"{held.tries} times"
    said = (
        f"It is quarantined since {text(held.since_s)}. {what}, because {culprit} with it ({times} up to now): "
        f"{held.reason}."
    )
    to_do = (
        f"It is tried again in {again}, or when its request, segment or speed changes. To do: delete it and submit it "
        "with other inputs, or set another policy; the fault itself is for the policy's author."
    )
    return [said, to_do]


def is_fenced(target: Target) -> bool:
    """Whether decisions fail at present."""
    return target.fence is not None or target.search is not None


def fenced(target: Target, now_s: float) -> list[str]:
    """That decisions fail, why, since when, and what to do."""
    if target.search is not None:
        search = target.search
        said = (
            f"Decisions fail since {text(search.began_s)} ({search.policy}): {search.fault}. Which jobs cause it is "
            "being found out; until then everybody keeps what the last decision gave."
        )
        return [said]
    if target.fence is None:
        return []
    fence = target.fence
    again = short(max(0.0, fence.until_s - now_s))
    said = (
        f"Decisions fail since {text(fence.since_s)} ({fence.policy}), and leaving out single jobs does not cure it: "
        f"{fence.fault}. Everybody keeps what the last decision gave; the next try comes in {again}. To do: set "
        "another policy; the scheduler's own logs have the traceback."
    )
    return [said]


def failing_workers(job: Job, now_s: float, start_limit_s: float, logs: str) -> list[str]:
    """Which of its workers failed soon after their start, and what that means for the next ones.

    Args:
        job: The job.
        now_s: Seconds since the epoch.
        start_limit_s: How long a start may take, seconds.
        logs: The command that shows its output.
    """
    failures = early_failures(job, start_limit_s)
    if not failures or job.phase is JobPhase.ENDED:
        return []
    named = ", ".join(
        f"{one.worker} on {one.node} {short(now_s - one.ended_s)} ago (lived {short(one.ended_s - one.started_s)})"
        for one in failures[-_NAMED:]
    )
    more = f", and {len(failures) - _NAMED} before" if len(failures) > _NAMED else ""
    said = [f"Workers failed soon after they were started: {named}{more}; see: {logs}"]
    if failures[-1].why:
        said.append(f"What is known of {failures[-1].worker}: {failures[-1].why}.")
    wait_s = grows_from_s(job, now_s, start_limit_s) - now_s
    if job.phase is JobPhase.RUNNING and wait_s > 0:
        times = failed_growths(job, now_s, start_limit_s)
        said.append(f"Growing it failed {times} times in a row; it may grow again in {short(wait_s)}.")
    avoided = avoided_nodes(job, now_s, start_limit_s)
    if avoided:
        said.append(f"Its next workers go to other nodes than {', '.join(avoided)} where there is room.")
    return said

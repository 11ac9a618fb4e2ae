"""What happens when a stage of a decision fails: jobs that cause it are quarantined by name, else the target stays.

In: the observation, the stored target and somebody who tries decisions. Out: a ``Decision`` that says what went wrong.
A policy or placer is foreign code and may raise anything, or not answer; whatever it does must stop neither the other
jobs nor the converge loop, so a search that takes long goes on in the next rounds from the stored target.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import replace

from scheduler_core.deciding.search import Found, Tries, Uncured, fault_text, go_on
from scheduler_core.model.decision import Decision, DecisionKind
from scheduler_core.model.job import JobPhase
from scheduler_core.model.observation import Observation
from scheduler_core.model.params import Params
from scheduler_core.model.plan import Plan
from scheduler_core.model.ports import Decider
from scheduler_core.model.quarantine import DECIDE, PLAN, next_fence, quarantines, with_quarantine
from scheduler_core.model.target import Fence, Search, Target


def fenced(observation: Observation, target: Target, params: Params, digest: str, decider: Decider) -> Decision:
    """Try a decision; where it fails, do without the jobs that make it fail.

    Args:
        observation: The world.
        target: The stored target, perhaps with a search under way.
        params: The settings.
        digest: Digest of the input.
        decider: Tries decisions.

    Returns:
        The decision; with a ``fault`` when jobs were quarantined for it, or when the previous target stays.
    """
    search = target.search
    if search is None:
        try:
            return decider.attempt(observation, target, params)
        except Exception as broken:  # noqa: BLE001  # the fence: see the module's docstring
            search = Search(policy=params.policy, fault=fault_text(broken), began_s=observation.now_s)
    left_out = quarantines(observation, target)
    suspects = [job.id for job in observation.jobs if job.id not in left_out and job.phase is not JobPhase.ENDED]

    def attempt(served: Collection[str]) -> Decision:
        chosen = set(served)
        without = {job_id: search.guilty.get(job_id, search.fault) for job_id in suspects if job_id not in chosen}
        return decider.attempt(
            observation,
            replace(target, search=None, quarantined=with_quarantine(observation, target, without, DECIDE)),
            params,
        )

    ended = go_on(search, Tries(jobs=suspects, attempt=attempt, has_time=decider.has_time))
    fence = next_fence(target, params.policy, digest, search.fault, observation.now_s)
    return _concluded(target, fence, ended)


def planned(
    observation: Observation, stored: Target, target: Target, plan_without: Callable[[Target, Collection[str]], Plan]
) -> tuple[Plan, Target, str]:
    """Make a plan that keeps the law; where it cannot be kept, do nothing to the jobs with which it is broken.

    Args:
        observation: The world.
        stored: The target before this round; knows who was left out until now.
        target: What was decided.
        plan_without: The checked plan that leaves these jobs alone.

    Returns:
        The plan (empty where no such jobs are found), the target with those jobs quarantined, and the fault.
    """
    left_out = set(quarantines(observation, target, PLAN))
    try:
        return plan_without(target, left_out), target, ""
    except Exception as broken:  # noqa: BLE001  # the fence: whatever is wrong with a plan, nothing of it is enforced
        fault = fault_text(broken)
    suspects = [job.id for job in observation.jobs if job.id not in left_out]

    def attempt(served: Collection[str]) -> Plan:
        return plan_without(target, left_out.union(suspects).difference(served))

    search = Search(policy=target.policy, fault=fault, began_s=observation.now_s)
    ended = go_on(search, Tries(jobs=suspects, attempt=attempt, has_time=lambda: True))
    if not isinstance(ended, Found):
        return Plan(), target, fault
    known = with_quarantine(observation, stored, ended.search.guilty, PLAN)
    added = {job_id: known[job_id] for job_id in ended.search.guilty}
    return ended.result, replace(target, quarantined=dict(sorted({**target.quarantined, **added}.items()))), fault


def _concluded(target: Target, fence: Fence, ended: Search | Found[Decision] | Uncured) -> Decision:
    """What a search's end, or its interruption, makes of the target."""
    fault = fence.fault
    if isinstance(ended, Found):
        told = ended.search.guilty
        quarantined = {
            job_id: replace(held, reason=told.get(job_id, held.reason))
            for job_id, held in ended.result.target.quarantined.items()
        }
        return replace(ended.result, target=replace(ended.result.target, quarantined=quarantined), fault=fault)
    if isinstance(ended, Uncured):
        return Decision(target=replace(target, fence=fence, search=None), kind=DecisionKind.FENCED, fault=fault)
    return Decision(target=replace(target, search=ended), kind=DecisionKind.FENCED, fault=fault)

"""One round of the scheduler, from what is there to what is done about it, in six steps.

    1 observe -> 2 estimate -> 3 allocate -> 4 place -> 5 plan (diff) -> 6 enforce

``decide`` (2, 3, 4) makes the target and is rate-limited where it disturbs running jobs; ``diff`` (5) compares target
and world on every change. The three worlds (simulator, this machine, Kubernetes) share this page.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from scheduler_core.allocate.pools import pools
from scheduler_core.allocate.registry import policy_named
from scheduler_core.deciding.conclude import conclude
from scheduler_core.deciding.fence import fenced, planned
from scheduler_core.deciding.inline import Inline
from scheduler_core.deciding.serve import Known, Served, Stages, serve
from scheduler_core.deciding.standing import Start, answered, avoided, start
from scheduler_core.diff import diff
from scheduler_core.errors import Conflict, NotFound
from scheduler_core.estimate.tables import speed_tables
from scheduler_core.model.decision import CycleResult, Decision, DecisionKind
from scheduler_core.model.job import JobPhase
from scheduler_core.model.observation import Observation
from scheduler_core.model.params import Params
from scheduler_core.model.plan import Action, Plan
from scheduler_core.model.ports import Decider, Enforcer, Observer, TargetStore
from scheduler_core.model.quarantine import for_policy, is_fenced
from scheduler_core.model.target import Target
from scheduler_core.place.place import place


def attempt(observation: Observation, target: Target, params: Params) -> Decision:
    """One decision without the jobs that the target quarantines.

    Raises:
        Exception: Whatever a stage raises.
    """
    begin = start(observation, target, params)
    return conclude(observation, target, begin, _serve_pools(observation, begin, params))


HERE = Inline(attempt)


def run_cycle(
    observer: Observer, enforcer: Enforcer, targets: TargetStore, params: Params, decider: Decider = HERE
) -> CycleResult:
    """Look, decide, and bring the world one step nearer to the target; may be repeated with no effect.

    Returns:
        All that was seen, decided and done.

    Raises:
        Conflict: Somebody else replaced the stored target; nothing was enforced, the next round looks again.
    """
    observation = observer.observe()  # 1. observe
    stored = targets.load()
    decision = decide(observation, stored, params, decider)  # 2. estimate, 3. allocate, 4. place

    def plan_without(target: Target, left_out: Collection[str]) -> Plan:
        return diff(observation, target, params, left_out).check(observation)

    plan, target, fault = planned(observation, stored, decision.target, plan_without)  # 5. plan
    decision = replace(decision, target=target)
    if target != stored:
        targets.save(target)
    done, conflicts = _enforce(enforcer, plan)  # 6. enforce
    return CycleResult(
        observation=observation, decision=decision, plan=plan, done=done, conflicts=conflicts, fault=fault
    )


def decide(observation: Observation, target: Target, params: Params, decider: Decider = HERE) -> Decision:
    """Make the target anew where the input changed, disturbing running jobs at most once in the interval.

    A stage that fails is fenced: the jobs that cause it are quarantined, else the previous target stays.
    """
    target = for_policy(target, params.policy)
    digest, is_answered = answered(observation, target, params)
    if target.search is None and is_answered:
        return Decision(target=target, kind=DecisionKind.KEPT)
    if target.fence and target.search is None and is_fenced(target, digest, observation.now_s):
        return Decision(target=target, kind=DecisionKind.FENCED, fault=target.fence.fault)
    return fenced(observation, target, params, digest, decider)


def _serve_pools(observation: Observation, begin: Start, params: Params) -> list[Served]:
    """Steps two to four for every job that is not fixed, one pool of GPUs after the other."""
    stages = Stages(policy_name=params.policy, policy=policy_named(params.policy), placer=place)
    known = Known(
        observation=observation,
        current=begin.current,
        speed_by_job=speed_tables(observation),  # 2. estimate
        params=params,
        avoid_by_job=avoided(observation, params),
    )
    free = [job.spec for job in observation.jobs if job.id not in begin.fixed and job.phase is not JobPhase.ENDED]
    return [  # 3. allocate, 4. place
        serve(pool, stages, known) for pool in pools(free, observation.cluster, begin.left_gpus, begin.current)
    ]


def _enforce(enforcer: Enforcer, plan: Plan) -> tuple[tuple[Action, ...], dict[str, str]]:
    """Apply the actions in order; a conflict ends that job's actions in this round only."""
    done: list[Action] = []
    conflicts: dict[str, str] = {}
    for action in plan.actions:
        if action.job_id in conflicts:
            continue
        try:
            enforcer.enforce(action)
        except (Conflict, NotFound) as moved:
            conflicts[action.job_id] = str(moved)
        else:
            done.append(action)
    return tuple(done), conflicts

"""A whole simulation: events of one moment happen, then the production cycle runs until it has nothing more to do."""

from __future__ import annotations

from math import inf, nextafter

from scheduler_core.cycle import run_cycle
from scheduler_core.errors import LawBroken
from scheduler_core.model.decision import CycleResult, DecisionKind
from scheduler_core.model.params import Params
from scheduler_core.model.plan import Announce
from scheduler_core.simulate.heap import EventKind
from scheduler_core.simulate.record import DecisionRecord, Outcome
from scheduler_core.simulate.scenario import Scenario
from scheduler_core.simulate.world import World

#: Rounds at one moment after which the cycle is taken to go round and round; a change takes three at most.
_MOST_ROUNDS = 1_000


def simulate(scenario: Scenario, params: Params) -> Outcome:
    """Run jobs through the production cycle on a virtual clock, until nothing more can happen.

    Args:
        scenario: What is simulated.
        params: The scheduler's settings.

    Returns:
        A record for each job and for each decision; equal input gives an equal outcome, in whatever order it is given.

    Raises:
        LawBroken: The cycle finds something to do at one moment for ever.
    """
    world = World(scenario)
    decisions: list[DecisionRecord] = []
    while (now_s := world.heap.next_s()) is not None:
        while world.heap.next_s() == now_s:
            world.happen(world.heap.pop())
        if not world.is_idle:
            _settle(world, params, decisions)
    return Outcome(jobs=world.records(), decisions=tuple(decisions))


def _settle(world: World, params: Params, decisions: list[DecisionRecord]) -> None:
    """Rounds of the cycle until one does nothing."""
    for _ in range(_MOST_ROUNDS):
        result = run_cycle(world, world, world, params)
        if result.decision.kind is not DecisionKind.KEPT:
            decisions.append(_record(result))
        _plan_wake(world, result, params)
        if result.decision.target.search is None and all(isinstance(action, Announce) for action in result.done):
            return
    raise LawBroken(f"expected the cycle to come to rest at {world.now_s} s, got {_MOST_ROUNDS} rounds")


def _plan_wake(world: World, result: CycleResult, params: Params) -> None:
    """Look again when the rate limit ends; when a failure may be tried again, only while something else happens too."""
    target, times_s = result.decision.target, []
    if result.decision.kind is DecisionKind.WAITING:
        times_s.append(target.disturbed_s + params.decide_interval_s)
    if world.heap.next_s() is not None and result.decision.fault:
        times_s += [quarantine.until_s for quarantine in target.quarantined.values()]
        times_s += [target.fence.until_s] if target.fence else []
    if times_s:
        world.heap.plan(max(min(times_s), nextafter(world.now_s, inf)), EventKind.WAKE)


def _record(result: CycleResult) -> DecisionRecord:
    target = result.decision.target
    return DecisionRecord(
        time_s=result.observation.now_s,
        number=target.decision,
        kind=result.decision.kind.value,
        gpus=target.allocation.total_gpus,
        jobs=len(target.allocation.gpus_by_job),
        live_jobs=len(result.observation.jobs),
        disturbed=len(result.decision.disturbed),
        fault=result.decision.fault or result.fault,
    )

"""The fence: a stage that fails changes nothing, the jobs that cause it are named, and the others are served."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field, replace

from scheduler_core.allocate.registry import policy_names
from scheduler_core.cycle import attempt, decide, run_cycle
from scheduler_core.errors import StageFailed
from scheduler_core.model.decision import Decision, DecisionKind
from scheduler_core.model.job import Job
from scheduler_core.model.observation import Observation
from scheduler_core.model.params import Params
from scheduler_core.model.plan import Grant, NewWorker
from scheduler_core.model.quarantine import quarantines
from scheduler_core.model.target import Fence, Quarantine, Search, Target
from tests.unit.core.builders import NOW_S, cluster, left_out, queued, running, seen, spec, workers
from tests.unit.core.test_cycle import Fixed

#: What the foreign policy's fault reads like.
FAULT = "LawBroken: job '{}': expected 0 or 2..2 GPUs in multiples of 1, got 1 (policy one_each)"
LATE = "no answer within 5 s"
PARAMS = Params()


@dataclass(kw_only=True)
class Poisoned:
    """Decides like the real one unless it is to serve one of these jobs; so many tries a round.

    Attributes:
        poison: Jobs that it gives no answer for.
        tries_a_round: How many tries a round bears.
        served: Whom each try served, in order.
    """

    poison: Collection[str]
    tries_a_round: int = 1_000
    served: list[str] = field(default_factory=list)
    tried: int = 0

    def attempt(self, observation: Observation, target: Target, params: Params) -> Decision:
        """No answer for some."""
        left_out_now = quarantines(observation, target)
        served = [job.id for job in observation.jobs if job.id not in left_out_now]
        self.served.append("".join(served))
        self.tried += 1
        if set(served) & set(self.poison):
            raise StageFailed(LATE)
        return attempt(observation, target, params)

    def has_time(self) -> bool:
        """Until the round's tries are used up."""
        return self.tried < self.tries_a_round


def waiting(names: str) -> list[Job]:
    """Jobs of one GPU, one for each letter."""
    return [queued(spec(name)) for name in names]


def test_an_unknown_policy_leaves_the_target() -> None:
    """The fault names what there is to choose from; the same input is tried again only after a while."""
    target = Target(decision=7)
    observation = seen(cluster(1), queued(spec("a")))

    decision = decide(observation, target, Params(policy="nonesuch"))

    fault = f"InvalidValue: policy: expected one of {', '.join(policy_names())}, got 'nonesuch'"
    fence = decision.target.fence
    assert fence is not None
    assert decision == Decision(target=replace(target, fence=fence), kind=DecisionKind.FENCED, fault=fault)
    assert fence == Fence(
        policy="nonesuch",
        digest=fence.digest,
        fault=fault,
        since_s=NOW_S,
        tried_s=NOW_S,
        until_s=NOW_S + 10.0,
        tries=1,
    )


def test_a_policy_that_breaks_the_law_for_every_job_leaves_the_target(foreign_policy: str) -> None:
    """Its result is never relied on, the fault names job, bounds and policy, and no job is blamed."""
    target = Target(decision=7, policy=foreign_policy)
    jobs = queued(spec("a", (2, 2))), queued(spec("b", (2, 2)))

    decision = decide(seen(cluster(4), *jobs), target, Params(policy=foreign_policy))

    assert (decision.kind, decision.fault) == (DecisionKind.FENCED, FAULT.format("a"))
    assert replace(decision.target, fence=None) == target


def test_the_jobs_that_a_policy_cannot_serve_are_quarantined(foreign_policy: str) -> None:
    """Each with its own fault; the others are served, and those stay out of the next decision too."""
    jobs = [queued(spec(name, (2, 2) if name in "ce" else (1, 1))) for name in "abcdef"]
    params = Params(policy=foreign_policy)
    observation = seen(cluster(8), *jobs)

    decision = decide(observation, Target(), params)
    again = decide(seen(cluster(7), *jobs), decision.target, params)

    assert (decision.kind, decision.fault) == (DecisionKind.FULL, FAULT.format("c"))
    assert dict(decision.target.quarantined) == {name: left_out(observation, name, FAULT.format(name)) for name in "ce"}
    assert dict(decision.target.allocation.gpus_by_job) == dict.fromkeys("abdf", 1)
    assert (again.fault, dict(again.target.allocation.gpus_by_job)) == ("", dict.fromkeys("abdf", 1))


def test_another_policy_starts_without_quarantine(foreign_policy: str) -> None:
    """What one policy could not serve the next one may."""
    observation = seen(cluster(8), queued(spec("c", (2, 2))))
    quarantined = decide(observation, Target(), Params(policy=foreign_policy)).target

    assert dict(quarantined.quarantined) == {"c": left_out(observation, "c", FAULT.format("c"))}
    assert dict(decide(observation, quarantined, PARAMS).target.allocation.gpus_by_job) == {"c": 2}


def test_the_search_halves() -> None:
    """All, none, then halves of those among whom one is guilty, it once more, and all but it."""
    decider = Poisoned(poison="c")

    decision = decide(seen(cluster(8), *waiting("abcdefgh")), Target(), PARAMS, decider)

    assert decider.served == ["abcdefgh", "", "abcd", "ab", "abc", "abdefgh"]
    assert dict(decision.target.allocation.gpus_by_job) == dict.fromkeys("abdefgh", 1)


def test_a_search_that_takes_long_goes_on_in_the_next_rounds() -> None:
    """One try a round: meanwhile the target stays, and a restart goes on from what is stored; then others are served.

    A job that came meanwhile is not blamed for what others do.
    """
    target, rounds = Target(decision=3, policy=PARAMS.policy), 0
    served: list[str] = []
    observation = seen(cluster(8), *waiting("abcdefgh"))
    while (target.search or not rounds) and rounds < 20:
        decider = Poisoned(poison="g", tries_a_round=1)
        decision = decide(observation, target, PARAMS, decider)
        if decision.target.search:
            assert (decision.kind, decision.fault) == (DecisionKind.FENCED, LATE)
            assert replace(decision.target, search=None) == Target(decision=3, policy=PARAMS.policy)
        target, rounds, served = decision.target, rounds + 1, [*served, *decider.served]
        observation = replace(observation, now_s=observation.now_s + 5.0, jobs=tuple(waiting("abcdefghi")))

    assert served == ["abcdefgh", "", "abcd", "abcdef", "abcdefg", "abcdefhi"]
    assert dict(target.allocation.gpus_by_job) == dict.fromkeys("abcdefhi", 1)
    assert list(target.quarantined) == ["g"]


def test_a_quarantine_ends_with_time_and_doubles() -> None:
    """A minute later the job is tried again; it fails again and is left out for two; then it works and is forgotten."""
    observation = seen(cluster(4), *waiting("ab"))
    first = decide(observation, Target(), PARAMS, Poisoned(poison="a"))
    kept = decide(replace(observation, now_s=NOW_S + 59.0), first.target, PARAMS, Poisoned(poison="a"))
    later = replace(observation, now_s=NOW_S + 60.0)
    second = decide(later, first.target, PARAMS, Poisoned(poison="a"))
    cured = decide(replace(observation, now_s=NOW_S + 180.0), second.target, PARAMS)

    assert kept.kind is DecisionKind.KEPT
    assert dict(second.target.quarantined) == {
        "a": left_out(later, "a", LATE, since_s=NOW_S, until_s=NOW_S + 180.0, tries=2)
    }
    assert (dict(cured.target.quarantined), dict(cured.target.allocation.gpus_by_job)) == ({}, {"a": 1, "b": 1})


def test_a_quarantine_ends_when_the_jobs_inputs_change() -> None:
    """Its next segment, or news of its speed, is a new chance; a clock that was set back is one too."""
    observation = seen(cluster(4), *waiting("ab"))
    target = decide(observation, Target(), PARAMS, Poisoned(poison="a")).target
    next_segment = replace(observation, jobs=(queued(spec("a"), segment=1), *waiting("b")))

    for changed in (
        next_segment,
        replace(observation, speed_by_job={"a": (0.0, 1.0)}),
        replace(observation, now_s=NOW_S - 3_600.0),
    ):
        decision = decide(changed, target, PARAMS)
        assert (decision.kind, dict(decision.target.quarantined)) == (DecisionKind.FULL, {})


def test_a_fence_waits_longer_each_time() -> None:
    """The same input after 10, then 20 s; another one after 10; meanwhile nothing is tried at all."""
    observation = seen(cluster(4), *waiting("ab"))
    target = decide(observation, Target(), PARAMS, Poisoned(poison="ab")).target

    def tries_at(seconds: float, names: str = "ab") -> tuple[int, Target]:
        decider = Poisoned(poison="abc")
        there = replace(observation, now_s=NOW_S + seconds, jobs=tuple(waiting(names)))
        decision = decide(there, target, PARAMS, decider)
        assert (decision.kind, decision.fault) == (DecisionKind.FENCED, LATE)
        return len(decider.served), decision.target

    assert tries_at(9.9) == (0, target)
    assert tries_at(9.9, "abc") == (0, target)
    num_tries, target = tries_at(10.0)
    assert num_tries == 5
    assert target.fence == replace(
        Fence(
            policy="elastic_fifo", digest="", fault=LATE, since_s=NOW_S, tried_s=NOW_S + 10, until_s=NOW_S + 30, tries=2
        ),
        digest=target.fence.digest if target.fence else "",
    )
    assert tries_at(29.9)[0] == 0
    assert tries_at(20.0, "abc")[0] > 0
    cured = decide(replace(observation, now_s=NOW_S + 30), target, PARAMS)
    assert (cured.kind, cured.target.fence) == (DecisionKind.FULL, None)


def test_a_plan_that_breaks_the_law_for_one_job_is_enforced_for_the_others() -> None:
    """A world that cannot be (one worker twice) makes one job's plan illegal: it is left alone and named."""
    strange = running(spec("a", (1, 4)), "n0")
    strange = strange.replace(workers=(*strange.workers, *workers("n0")), published=(), generation=0, acknowledged=0)
    observation = seen(cluster(4), strange, *waiting("b"))
    world = Fixed(observation=observation)

    result = run_cycle(world, world, world, PARAMS)
    again = run_cycle(world, world, world, PARAMS)

    granted = Grant(job_id="b", segment=0, workers=(NewWorker(id="w0", node="n0", gpus=1),))
    fault = "LawBroken: job 'a': expected every worker at most once in the document, got ('w0', 'w0')"
    assert (result.done, result.fault) == ((granted,), fault)
    assert dict(world.target.quarantined) == {"a": left_out(observation, "a", fault, stage="plan")}
    assert (again.done, again.fault) == ((granted,), "")
    assert "left out of decisions: LawBroken" in world.target.reasons["a"]


def test_what_a_restart_needs_is_in_the_stored_target() -> None:
    """A search's state names who was cleared, who is suspected, who was found and what went wrong."""
    target = decide(seen(cluster(8), *waiting("abcd")), Target(), PARAMS, Poisoned(poison="d", tries_a_round=3)).target

    assert target.search == Search(
        policy="elastic_fifo",
        fault=LATE,
        began_s=NOW_S,
        works_alone=True,
        cleared=("a", "b"),
        suspects=("c", "d"),
        guilty={},
    )
    assert isinstance(left_out(seen(cluster(1), *waiting("a")), "a", "x"), Quarantine)
